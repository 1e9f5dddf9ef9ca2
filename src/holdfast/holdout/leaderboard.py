"""A leaderboard that can't be overfitted."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Self

from numpy.typing import ArrayLike

from holdfast.check import printable, whole
from holdfast.errors import InputError
from holdfast.holdout.design import METERED, not_private
from holdfast.holdout.kept_predictions import KeptPredictions
from holdfast.holdout.ladder_board import LadderBoard
from holdfast.holdout.left import Left
from holdfast.holdout.looks import Place
from holdfast.holdout.metric import metric_named
from holdfast.holdout.predictions import Predictions
from holdfast.holdout.ranking import Standing, ranked
from holdfast.holdout.reusable import COMPARED, AnyMetric, ReusableHoldout
from holdfast.holdout.summary import Summary
from holdfast.ledger import Ledger
from holdfast.session.answer import Answer

LADDERS = ("ladder", "ladder-unproven")


class Leaderboard:
    """Scores for many teams from one set of labels, each with an interval that holds for all of them at once.

    Guarantee: as `ReusableHoldout`, over the submissions of all teams together; colluding gains nothing.
    mode="ladder" shows the best score so far only, with the certified error of `holdout.ladder`;
    mode="ladder-unproven" is the parameter-free Ladder: nothing is proved, and answers carry the whole range.
    Teams, not accounts, hold the budget: `per_team` submissions each, and `queries` for all together. With votes and
    gaussian noise a submission takes three looks: its score, and how far it is from the teams next above and next
    below, by the variance of the difference; so teams tie only if that is not certain. The arrays of each team's best
    submission are kept for this in `predictions`, a folder that only you can read (beside a ledger that is a file),
    until a better one comes or `forget_predictions` is called.
    The standings hold answers on this board's metric only; other metrics on the same labels share its looks.
    `units` and `rows_per_unit` are those of `ReusableHoldout`; a Ladder takes none.
    `queries` and `metric` may be left out when the ledger knows them.
    What is public (`standings`, `table`) holds released answers only. They are differentially private for the
    labels unless a mode that is not was named, a Ladder say, or private=False said; `private` tells.
    """

    def __init__(
        self,
        labels: ArrayLike,
        metric: AnyMetric | None = None,
        *,
        units: ArrayLike | None = None,
        rows_per_unit: int | None = None,
        queries: int | None = None,
        per_team: int | None = None,
        within: float | None = None,
        confidence: float = 0.95,
        mode: str | None = None,
        private: bool | None = None,
        failures: int | None = None,
        ledger: Place = None,
        anchors: Path | str | None = None,
        predictions: Path | str | None = None,
    ) -> None:
        self.per_team = None if per_team is None else whole("per_team", per_team)
        self._holdout: ReusableHoldout | LadderBoard
        self._each = 1
        """How many looks a submission takes."""
        if mode in LADDERS:
            if private:
                raise not_private(mode)
            if within is not None or failures is not None or units is not None or rows_per_unit is not None:
                raise InputError(
                    f"expected no within=, failures= or units= with mode={mode!r}, got one; leave it out"
                )
            self._holdout = LadderBoard(
                labels, metric="accuracy" if metric is None else metric, queries=whole("queries", queries),
                confidence=confidence, proven=mode == "ladder",
                ledger=ledger, anchors=anchors,
            )  # fmt: skip
        else:
            kind = metric_named("accuracy" if metric is None else metric)
            self._each = 1 + COMPARED if mode in (None, *METERED) and kind.plain else kind.looks
            self._holdout = ReusableHoldout(
                labels, units=units, rows_per_unit=rows_per_unit, metric=metric, within=within,
                queries=None if queries is None else self._each * whole("queries", queries),
                confidence=confidence, mode=mode, private=private, failures=failures, ledger=ledger, anchors=anchors,
            )  # fmt: skip
            opened = self._holdout
            self._each = (
                1 + COMPARED if opened.design.metered and opened.metric.plain else opened.metric.looks
            )
        self.metric = self._holdout.metric
        self._kept = KeptPredictions(_folder(ledger) if predictions is None else Path(predictions))
        self._summary = Summary(
            self._holdout.looks,
            question=self.metric.terms,
            greater_is_better=self.metric.greater_is_better,
        )

    @property
    def ledger(self) -> Ledger:
        """Where its looks are counted."""
        return self._holdout.looks.ledger

    @property
    def width(self) -> float:
        """The certified half-width, on the scale of [0,1]; inf where nothing is proved."""
        return self._holdout.width

    @property
    def proven(self) -> bool:
        """False for the parameter-free Ladder."""
        return math.isfinite(self.width)

    @property
    def private(self) -> bool:
        """Whether answers are differentially private; a Ladder's are not."""
        return isinstance(self._holdout, ReusableHoldout) and self._holdout.private

    def __repr__(self) -> str:
        return f"<holdfast board by {self.metric.name}>"

    def __str__(self) -> str:
        return self.table()

    @property
    def left(self) -> Left:
        """What is left to all together, in submissions; where they depend on guesses, how many of those may fail."""
        left = self._holdout.left
        return Left(left.looks // self._each, left.at_most // self._each, left.failures)

    def looks_left(self, team: str | None = None) -> int:
        """How many submissions will surely be answered, of all together or of a team."""
        left = self.left.looks
        if team is None or self.per_team is None:
            return left
        return max(0, min(left, self.per_team - self._holdout.looks.used_by(_name(team)) // self._each))

    def submit(self, team: str, predictions: Predictions, *, key: str | None = None) -> Answer:
        """Charge a look to the team, then score. BudgetError when the team or the board has none left.

        With Guess-and-Check the guess is the board's best value, so a submission that is not clearly
        different from it learns nothing else.
        """
        name = _name(team)
        most = None if self.per_team is None else self._each * self.per_team
        if isinstance(self._holdout, ReusableHoldout) and self._each == 1 + COMPARED:
            number, outcome = self._holdout.submit(
                predictions, lambda answer: self._rivals(name, answer), key=key, team=name, team_most=most
            )
            if not outcome.answer.repeated and self._summary.refresh().numbers.get(name) == number:
                self._kept.keep(name, number, predictions)
            return outcome.answer
        guess = None
        if isinstance(self._holdout, ReusableHoldout) and self._holdout.design.mode == "guess-and-check":
            best = self.best
            guess = None if best is None else best.value
        return self._holdout.score(predictions, guess=guess, key=key, team=name, team_most=most)

    @property
    def best(self) -> Answer | None:
        """The best score so far, with its interval; None before the first submission."""
        return self._summary.refresh().best

    def standings(self) -> tuple[Standing, ...]:
        """Every team with its rank; teams share it if nobody can be sure which is better.

        On a Ladder only submissions that moved the board are shown, so a team that never did has no line.
        """
        seen = self._summary.refresh()
        return ranked(
            [(team, answer, seen.counts[team]) for team, answer in seen.bests.items()],
            greater_is_better=self.metric.greater_is_better,
            differences=seen.differences(),
        )

    def forget_predictions(self) -> None:
        """Remove the predictions that were kept; ranks that were told stand."""
        self._kept.forget()

    def _rivals(self, team: str, answer: Answer) -> list[tuple[int, Predictions]]:
        """The teams next above and next below that can be compared with an answer."""
        found: list[tuple[int, Predictions]] = []
        for other, number in self._summary.refresh().neighbours(team, answer):
            array = self._kept.find(other, number)
            if array is not None:
                found.append((number, array))
        return found

    def table(self) -> str:
        """The public page as text: rank, team, best score, interval, submissions."""
        mark = "" if self.proven else "  (unproven: no interval is certified)"
        mark += "" if self.private else "  (not private)"
        lines = [f"{'rank':>4}  {'team':<20} {self.metric.name:>10}  interval{mark}"]
        for s in self.standings():
            span = f"[{s.best.low:.4f}, {s.best.high:.4f}]"
            count = f"{s.submissions} submission{'s' * (s.submissions != 1)}"
            lines.append(f"{s.rank:>4}  {s.team:<20} {s.best.value:>10.4f}  {span}  {count}")
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
        """Let go of the ledger."""
        self._holdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _folder(ledger: Place) -> Path | None:
    """Where predictions are kept: beside a ledger that is a file, else in memory."""
    if not isinstance(ledger, str | Path) or str(ledger).startswith(("postgresql://", "postgres://")):
        return None
    place = Path(ledger)
    return place / "predictions" if place.is_dir() else place.with_suffix(".predictions")


def _name(team: object) -> str:
    return printable("team", team, 200).strip()
