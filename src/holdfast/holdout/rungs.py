"""Labels behind a Ladder: the best score so far is all that is ever shown."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from holdfast.errors import InputError, LedgerError
from holdfast.holdout.labels import Labels
from holdfast.holdout.ladder import Ladder, climb, free_ladder, proven_ladder
from holdfast.holdout.left import Left
from holdfast.holdout.metric import GRID, metric_named
from holdfast.holdout.predictions import Predictions, refuse_labels, row_values
from holdfast.holdout.refusal import overspent
from holdfast.holdout.reusable import AnyMetric, open_state
from holdfast.holdout.state import Overspent
from holdfast.session.answer import Answer

MOVES = "moves the board"


class Rungs:
    """A Ladder at work on one set of labels; see `ladder.Ladder` for what is promised."""

    def __init__(
        self,
        labels: ArrayLike,
        *,
        metric: AnyMetric,
        queries: int,
        confidence: float,
        proven: bool,
        state: Path | str | None = None,
        anchors: Path | str | None = None,
    ) -> None:
        self._labels, self.metric = Labels(labels), metric_named(metric)
        refuse_labels(self.metric, self._labels)
        if self.metric.parts:
            raise InputError(
                f"a Ladder needs a mean over rows, got {self.metric.name}; use accuracy or a loss"
            )
        make = proven_ladder if proven else free_ladder
        self.ladder: Ladder = make(len(self._labels), queries, confidence)
        self.state = open_state(self._labels, state, anchors)
        terms = json.dumps({**asdict(self.ladder), "metric": self.metric.terms}, sort_keys=True)
        if self.state.fact("design", terms) != terms:
            self.state.close()
            raise LedgerError("these labels were opened before, on other terms; open them on the same ones")

    @property
    def width(self) -> float:
        """The certified error of the best score shown; inf for the unproven Ladder."""
        return self.ladder.width

    @property
    def left(self) -> Left:
        """How many more submissions are answered."""
        looks = self.ladder.queries - self.state.used()
        return Left(looks, looks)

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
        most = self.ladder.queries
        with self.state.alone():
            try:
                look = self.state.charge(team, self.metric.terms, 1, most=most, team_most=team_most, key=key)
            except Overspent as over:
                raise overspent(most, 1, team, over) from None
            if look.answer is not None:
                return Answer.from_json(look.answer, repeated=True)
            values = rows(None)
            losses = values.astype(np.int64) * GRID if values.dtype == np.bool_ else values
            if self.metric.greater_is_better:
                losses = GRID - losses
            secret, loss, moved = climb(self.ladder, self.state.fact("secret") or "", losses)
            answer = self._read(loss, moved)
            return Answer.from_json(self.state.settle(look.id, answer.to_json(), secret))

    def close(self) -> None:
        """Let go of the state file."""
        self.state.close()

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
            explanation=f"this submission {MOVES if moved else 'leaves the board as it was'}; {kind}",
        )
