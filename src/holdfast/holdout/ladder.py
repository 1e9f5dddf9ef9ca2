"""The Ladder: a board that moves only when a submission is clearly better."""

from __future__ import annotations

import base64
import json
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.check import whole
from holdfast.holdout.metric import GRID
from holdfast.privacy.rounding import miss
from holdfast.validity.ladder_bound import ladder as ladder_width


@dataclass(frozen=True, slots=True)
class Ladder:
    """Steps of 1/cells; `width` is the certified error of the best score shown, inf where none is proved.

    Guarantee: with probability `confidence`, at every time, the best loss shown is within `width` of the
    least population loss among the submissions so far. It is no interval for any other submission.
    Reference: Blum and Hardt 2015; `validity.ladder_bound.ladder` for the count of transcripts in nats.
    The parameter-free one (cells = 0) moves on a difference of more than its standard error and shows the
    loss to 1/n: a heuristic of the same paper. No error is proved for it.
    """

    rows: int
    queries: int
    confidence: float
    cells: int
    width: float

    @property
    def proven(self) -> bool:
        return self.cells > 0


def proven_ladder(rows: int, queries: int, confidence: float) -> Ladder:
    """The Ladder whose step gives the least certified error. Public numbers only."""
    n, k, beta = whole("rows", rows), whole("queries", queries), miss(confidence)
    most_cells = math.ceil(8.0 + 2.0 * (2.0 * n) ** (1.0 / 3.0))
    width, cells = min((ladder_width(n, k, beta, c), c) for c in range(1, most_cells + 1))
    return Ladder(n, k, confidence, cells, min(1.0, width))


def free_ladder(rows: int, queries: int, confidence: float) -> Ladder:
    """The parameter-free Ladder. Unproven: its answers have the interval [0, 1]."""
    return Ladder(whole("rows", rows), whole("queries", queries), confidence, 0, math.inf)


def climb(ladder: Ladder, secret: str, losses: NDArray[np.int64]) -> tuple[str, float, bool]:
    """(the secret state afterwards, the loss shown, whether the board moved) for row losses in 0..GRID."""
    if ladder.proven:
        return _step(ladder, secret, int(losses.sum()))
    return _free_step(ladder, secret, losses)


def _step(ladder: Ladder, secret: str, held: int) -> tuple[str, float, bool]:
    """Show the loss, rounded to the nearest step, iff it is below the last one by more than a step.

    In whole numbers: with c cells the mean times c is held*c/(n GRID).
    """
    whole_row, scaled = ladder.rows * GRID, held * ladder.cells
    shown = None if not secret else int(secret)
    if shown is not None and not scaled < (shown - 1) * whole_row:
        return secret, shown / ladder.cells, False
    step = (2 * scaled + whole_row) // (2 * whole_row)
    return str(step), step / ladder.cells, True


def _free_step(ladder: Ladder, secret: str, losses: NDArray[np.int64]) -> tuple[str, float, bool]:
    n, mean = ladder.rows, float(losses.mean()) / GRID
    shown = round(mean * n) / n
    if secret:
        saved = json.loads(secret)
        best = np.frombuffer(base64.b64decode(saved["losses"]), dtype="<i4")
        error = float(np.std(losses - best)) / GRID / math.sqrt(n)
        if not mean < saved["shown"] - error:
            return secret, saved["shown"], False
    text = base64.b64encode(losses.astype("<i4").tobytes()).decode()
    return json.dumps({"shown": shown, "losses": text}), shown, True
