"""Labels behind a Ladder: the best score so far is all that is ever shown."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from holdfast.errors import InputError
from holdfast.holdout.label_release import Rows
from holdfast.holdout.labels import Labels
from holdfast.holdout.ladder import Ladder, climb, free_ladder, proven_ladder
from holdfast.holdout.left import Left
from holdfast.holdout.looks import Looks, Place, Transcript
from holdfast.holdout.metric import GRID, metric_named
from holdfast.holdout.outcome import Outcome
from holdfast.holdout.predictions import Predictions, refuse_labels, row_values
from holdfast.holdout.refusal import forgotten
from holdfast.holdout.reusable import AnyMetric
from holdfast.session.answer import Answer


class LadderBoard:
    """A Ladder at work on one set of labels; see `ladder.Ladder` for what is promised."""

    def __init__(
        self,
        labels: ArrayLike,
        *,
        metric: AnyMetric,
        queries: int,
        confidence: float,
        proven: bool,
        ledger: Place = None,
        anchors: Path | str | None = None,
    ) -> None:
        self._labels, self.metric = Labels(labels), metric_named(metric)
        refuse_labels(self.metric, self._labels)
        if not self.metric.plain:
            raise InputError(
                f"expected a mean over rows for a Ladder, got {self.metric.name}; use accuracy or a loss"
            )
        make = proven_ladder if proven else free_ladder
        self.ladder: Ladder = make(len(self._labels), queries, confidence)
        self.looks = Looks(self._labels, ledger, anchors)
        try:
            width = self.ladder.width if proven else None
            self.looks.agree("Ladder", asdict(self.ladder) | {"width": width, "metric": self.metric.terms})
            if self.looks.lost:
                raise forgotten("Ladder")
        except BaseException:
            self.looks.abandon()
            raise

    @property
    def width(self) -> float:
        """The certified error of the best score shown; inf for the unproven Ladder."""
        return self.ladder.width

    @property
    def left(self) -> Left:
        """How many more submissions are answered."""
        return Left(self.looks.left, self.looks.left)

    def score(
        self,
        predictions: Predictions,
        *,
        guess: float | None = None,
        key: str | None = None,
        team: str = "",
        team_most: int | None = None,
    ) -> Answer:
        """The board's best score after this submission. `guess` is not used."""
        (rows,) = row_values(predictions, self._labels, self.metric)
        with self.looks.ledger.turn():
            look = self.looks.charge(team, self.metric.terms, 1, team_most=team_most, key=key)
            if look.answer is not None:
                return Outcome.from_json(look.answer, repeated=True).answer
            return self.looks.settle_in_turn(look, lambda seen: self._climbed(rows, seen)).answer

    def close(self) -> None:
        """Let go of the ledger."""
        self.looks.close()

    def _climbed(self, rows: Rows, seen: Transcript) -> Outcome:
        values = rows(None)
        losses = values.astype(np.int64) * GRID if values.dtype == np.bool_ else values
        if self.metric.greater_is_better:
            losses = GRID - losses
        state, loss, moved = climb(self.ladder, seen.state or "", losses)
        return Outcome(self._read(loss, moved), moved=moved, state=state if moved else None)

    def _read(self, loss: float, moved: bool) -> Answer:
        ladder, metric = self.ladder, self.metric
        span = metric.high - metric.low
        width = min(1.0, ladder.width + metric.rounding)

        def on_scale(part: float) -> float:
            part = min(1.0, max(0.0, part))
            return metric.low + span * (1.0 - part if metric.greater_is_better else part)

        low, high = sorted((on_scale(loss - width), on_scale(loss + width)))
        step = 1.0 / ladder.cells if ladder.proven else 0.0
        kind = "the certified Ladder" if ladder.proven else "the parameter-free Ladder, unproven"
        return Answer(
            question=f"best {metric.name} so far",
            value=on_scale(loss),
            low=low,
            high=high,
            confidence=ladder.confidence if ladder.proven else 0.0,
            noise=0.0,
            sampling=span * step,
            population=span * (width - step),
            target="population",
            rho=math.inf,
            epsilon=None,
            rows_read=ladder.rows,
            mechanism="ladder" if ladder.proven else "ladder-unproven",
            explanation=f"this submission {'moves the board' if moved else 'leaves the board as it was'}; {kind}",
        )
