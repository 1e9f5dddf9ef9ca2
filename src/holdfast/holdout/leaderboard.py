"""A leaderboard that can't be overfitted."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import BudgetError, InputError, LedgerError
from holdfast.holdout.fingerprint import fingerprint, labels_array
from holdfast.holdout.ladder import Ladder, climb, free_ladder, proven_ladder
from holdfast.holdout.metric import GRID, RowValues, on_grid
from holdfast.holdout.reusable import AnyMetric, Predictions, ReusableHoldout
from holdfast.holdout.standing import Standing, ranked
from holdfast.holdout.state import Overspent
from holdfast.noise.bits import Bits
from holdfast.session.answer import Answer
from holdfast.validity.argument import whole

LADDERS = ("ladder", "ladder-unproven")


class Leaderboard:
    """Scores for many teams from one set of labels, each with an interval that holds for all of them at once.

    Guarantee: as `ReusableHoldout`, over the submissions of all teams together; colluding gains nothing.
    mode="ladder" shows the best score so far only, with the certified error of `holdout.ladder`;
    mode="ladder-unproven" is the parameter-free Ladder, whose answers carry the interval [0, 1] of the metric.
    Teams, not accounts, hold the budget: `per_team` looks each, and `queries` for all together.
    What is public (`standings`, `table`) holds released answers only.
    """

    def __init__(
        self,
        labels: ArrayLike,
        metric: AnyMetric = "accuracy",
        *,
        queries: int,
        per_team: int | None = None,
        within: float | None = None,
        confidence: float = 0.95,
        mode: str | None = None,
        private: bool = False,
        failures: int | None = None,
        state: Path | str | None = None,
        anchors: Path | str | None = None,
        bits: Bits | None = None,
    ) -> None:
        self.per_team = None if per_team is None else whole("per_team", per_team)
        self._ladder: Ladder | None = None
        if mode in LADDERS:
            if private or within is not None or failures is not None:
                raise InputError(f"mode={mode!r} takes no private=, within= or failures=; leave them out")
            make = proven_ladder if mode == "ladder" else free_ladder
            self._ladder = make(len(labels_array(labels)), queries, confidence)
        # A Ladder's looks are kept by a holdout of the least demanding design; it is never asked itself.
        self._holdout = (
            _Rungs(labels, metric, self._ladder, state, anchors)
            if self._ladder is not None
            else ReusableHoldout(
                labels, metric=metric, queries=queries, within=within, confidence=confidence, mode=mode,
                private=private, failures=failures, state=state, anchors=anchors, bits=bits,
            )
        )  # fmt: skip
        self.metric = self._holdout.metric

    @property
    def width(self) -> float:
        """The certified half-width, on the scale of [0,1]; inf where nothing is proved."""
        return self._holdout.width

    @property
    def proven(self) -> bool:
        """False for the parameter-free Ladder."""
        return math.isfinite(self.width)

    def looks_left(self, team: str | None = None) -> int:
        """How many submissions are left, to all together or to a team."""
        left = self._holdout.looks_left
        if team is None or self.per_team is None:
            return left
        return max(0, min(left, self.per_team - self._holdout._state.used(_name(team))))

    def submit(self, team: str, predictions: Predictions, *, key: str | None = None) -> Answer:
        """Charge a look to the team, then score. BudgetError when the team or the board has none left.

        With Guess-and-Check the guess is the board's best value, so a submission that is not clearly
        different learns nothing else.
        """
        guess = None
        holdout = self._holdout
        if isinstance(holdout, ReusableHoldout) and holdout.design.mode == "guess-and-check":
            best = self.best
            guess = None if best is None else best.value
        return holdout.score(predictions, guess=guess, key=key, team=_name(team), team_most=self.per_team)

    @property
    def best(self) -> Answer | None:
        """The best score so far, with its interval; None before the first submission."""
        sign = 1.0 if self.metric.greater_is_better else -1.0
        answers = [answer for _, answer in self._holdout.history()]
        return max(answers, key=lambda answer: sign * answer.value, default=None)

    def standings(self) -> tuple[Standing, ...]:
        """Every team with its rank; teams whose intervals overlap share it."""
        sign = 1.0 if self.metric.greater_is_better else -1.0
        bests: dict[str, tuple[Answer, int]] = {}
        for team, answer in self._holdout.history():
            best, count = bests.get(team, (answer, 0))
            bests[team] = (answer if sign * answer.value > sign * best.value else best, count + 1)
        return ranked(
            ((team, answer, count) for team, (answer, count) in bests.items()),
            greater_is_better=self.metric.greater_is_better,
        )

    def table(self) -> str:
        """The public page as text: rank, team, best score, interval, submissions."""
        mark = "" if self.proven else "  (unproven: no interval is certified)"
        lines = [f"{'rank':>4}  {'team':<20} {self.metric.name:>10}  interval{mark}"]
        for s in self.standings():
            span = f"[{s.best.low:.4f}, {s.best.high:.4f}]"
            lines.append(
                f"{s.rank:>4}  {s.team:<20} {s.best.value:>10.4f}  {span}  {s.submissions} submissions"
            )
        return "\n".join(lines)

    def __rich__(self) -> Any:
        from rich.markup import escape
        from rich.table import Table

        grid = Table("rank", "team", self.metric.name, "interval", "submissions")
        for s in self.standings():
            span = f"{s.best.low:.4f} … {s.best.high:.4f}"
            grid.add_row(str(s.rank), escape(s.team), f"{s.best.value:.4f}", span, str(s.submissions))
        return grid

    def close(self) -> None:
        """Let go of the state file."""
        self._holdout.close()


class _Rungs:
    """What a Ladder keeps: the labels, the state, and the loss shown last."""

    def __init__(
        self, labels: ArrayLike, metric: AnyMetric, ladder: Ladder, state: Path | str | None,
        anchors: Path | str | None,
    ) -> None:  # fmt: skip
        from holdfast.holdout.metric import metric_named
        from holdfast.holdout.state import State

        self._labels, self._ladder, self.metric = labels_array(labels), ladder, metric_named(metric)
        if self.metric.values is None:
            raise InputError(
                f"a Ladder needs a mean over rows, got {self.metric.name}; use accuracy or a loss"
            )
        self._values: RowValues = self.metric.values
        self._state = State(None) if state is None else State.open(state, fingerprint(self._labels), anchors)
        terms = str(sorted(asdict(ladder).items()))
        if self._state.fact("design", terms) != terms:
            raise LedgerError("these labels were opened before, on other terms; go on with those")
        self.width = ladder.width

    @property
    def looks_left(self) -> int:
        return self._ladder.queries - self._state.used()

    def history(self) -> list[tuple[str, Answer]]:
        """The submissions that moved the board; the others are counted with what was shown then."""
        return [(team, Answer.from_json(text)) for _, team, text in self._state.answers()]

    def score(
        self, predictions: Predictions, *, guess: float | None, key: str | None, team: str,
        team_most: int | None,
    ) -> Answer:  # fmt: skip
        said = predictions(np.arange(len(self._labels))) if callable(predictions) else predictions
        array = np.asarray(said)
        if array.shape[:1] != self._labels.shape:
            raise InputError(f"predictions must have {len(self._labels)} rows, got shape {array.shape}")
        with self._state.alone():
            try:
                look = self._state.charge(
                    team, self.metric.name, 1, most=self._ladder.queries, team_most=team_most, key=key
                )
            except Overspent as over:
                left = over.left if over.team_left is None else min(over.left, over.team_left)
                raise BudgetError(
                    f"one more submission would pass the cap; {team!r} has {left} left and the board {over.left}",
                    requested=1, remaining=max(0, left),
                ) from None  # fmt: skip
            if look.answer is not None:
                return Answer.from_json(look.answer, repeated=True)
            values = on_grid(self._values(_comparable(array, self._labels), self._labels), len(self._labels))
            losses = values.astype(np.int64) * GRID if values.dtype == np.bool_ else values
            if self.metric.greater_is_better:
                losses = GRID - losses
            secret, loss, moved = climb(self._ladder, self._state.fact("secret") or "", losses)
            answer = self._answer(loss, moved)
            return Answer.from_json(self._state.settle(look.id, answer.to_json(), secret))

    def _answer(self, loss: float, moved: bool) -> Answer:
        ladder, metric = self._ladder, self.metric
        span = metric.high - metric.low
        width = min(1.0, ladder.width + metric.rounding)

        def read(value: float) -> float:
            value = min(1.0, max(0.0, value))
            return metric.low + span * (1.0 - value if metric.greater_is_better else value)

        low, high = sorted((read(loss - width), read(loss + width)))
        kind = "the certified Ladder" if ladder.proven else "the parameter-free Ladder, unproven"
        did = "moves the board" if moved else "does not move the board"
        return Answer(
            question=f"best {metric.name} so far", value=read(loss), low=low, high=high,
            confidence=ladder.confidence if ladder.proven else 0.0, noise=span / ladder.cells if ladder.proven else 0.0,
            sampling=0.0, population=span * width, target="population", rho=math.inf, epsilon=None,
            rows_read=ladder.rows, mechanism="ladder" if ladder.proven else "ladder-unproven",
            explanation=f"this submission {did}; {kind}",
        )  # fmt: skip

    def close(self) -> None:
        self._state.close()


def _comparable(said: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    return said.astype(np.str_) if labels.dtype.kind == "U" else said


def _name(team: object) -> str:
    if not isinstance(team, str) or not team.strip() or len(team) > 200:
        raise InputError("team must be a name of 1 to 200 characters; choose one")
    return team.strip()
