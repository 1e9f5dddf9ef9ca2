"""The Ladder: a leaderboard that moves only when a submission is clearly better."""

from __future__ import annotations

import math

from holdfast.privacy.rounding import up
from holdfast.validity.search import least


def ladder(rows: int, queries: int, beta: float, cells: int | None = None) -> float:
    """eta + sqrt(ln(2 T/beta)/(2n)), eta = 1/cells: the leaderboard error after k submissions.

    Guarantee: with probability 1 - beta, at every time, the best score shown is within the width of the least
    population loss among the submissions so far. It is not an interval for each submission.
    T = sum over j of C(k, j+1) C(G+1, j) counts the transcripts: scores shown are multiples of eta = 1/G and
    fall strictly, so j improvements are a choice of places and of values.
    Requires: losses in [0,1]; a score is shown, rounded to the nearest multiple of eta, iff it is below the
    last one by more than eta; eta fixed beforehand (tuned when not given). Not private.
    Reference: Blum and Hardt 2015, Theorem 3.1, whose union mixes bits and nats; this count:
    docs/theorems.md, 17.
    """

    def width(count: int) -> float:
        log = up(_log_transcripts(queries, count) + math.log(2.0 / beta))
        return up(1.0 / count + math.sqrt(log / (2.0 * rows)))

    if cells is not None:
        return width(cells)
    most_cells = 8.0 + 2.0 * (2.0 * rows) ** (1.0 / 3.0)
    return least(lambda x: width(round(math.exp(x))), 0.0, math.log(most_cells), 30)[0]


def _log_transcripts(k: int, cells: int) -> float:
    """ln of the number of nodes, by the ratios of neighbouring terms; rounded up."""
    log = math.log(k)
    logs = [log]
    for j in range(1, min(cells + 1, k - 1) + 1):
        log += math.log(k - j) - math.log(j + 1) + math.log((cells + 2 - j) / j)
        logs.append(log)
    top = max(logs)
    return up(top + math.log(sum(math.exp(x - top) for x in logs)), len(logs) * top)
