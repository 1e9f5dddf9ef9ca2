"""A holdout that may be looked at again and again."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from numpy.typing import ArrayLike, NDArray

from holdfast.check import between
from holdfast.errors import InputError
from holdfast.holdout import guess as guessing
from holdfast.holdout import thresholdout
from holdfast.holdout.design import Design, design, not_private
from holdfast.holdout.label_release import Rows, mean, total
from holdfast.holdout.labels import Labels
from holdfast.holdout.left import Left
from holdfast.holdout.looks import Looks, Place, Transcript
from holdfast.holdout.metric import GRID, METRICS, Metric, RowValues, metric_named
from holdfast.holdout.outcome import Outcome
from holdfast.holdout.predictions import Predictions, half_difference, refuse_labels, row_values
from holdfast.holdout.refusal import exhausted, forgotten
from holdfast.holdout.scores import difference, ratio, single
from holdfast.ledger import Ledger
from holdfast.privacy.rounding import up
from holdfast.session.answer import Answer

AnyMetric = str | Metric | RowValues
_NOISY = ("votes", "gaussian", "discretised")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `check` says: the training score is fine, or what the holdout says instead."""

    fine: bool
    answer: Answer

    def __str__(self) -> str:
        return f"fine: {self.answer}" if self.fine else f"not fine, the holdout says {self.answer}"


class ReusableHoldout:
    """Scores on one holdout that stay true of the population, however often and adaptively they are asked.

    Guarantee: with probability `confidence`, all answers together have their population value between `low`
    and `high`. The population of a score is the law that the rows were drawn from; for predictions that
    belong to the row numbers of this holdout (an array) it is the law of the labels of these rows.
    Requires: independent rows; nobody learns about the labels in any other way. A function of row numbers is
    called with the rows drawn, which must stay secret from the analyst: use it on your own machine only.
    Cost: one look for a score, a check or a comparison, two for precision and recall. Charged before the
    labels are read, never refunded. With votes a look reads no more rows of 1e7 than of 1e5.
    Answers are differentially private for the labels, unless a mode that is not was named or private=False said;
    those say "not private". Which classes the labels have is public, and so is their number.

    `ledger` is where the looks are counted, shared by all processes and by every later run: a file, a folder,
    "postgresql://…#name" or a ledger; one for each set of labels. Without it they are forgotten with the object.
    Trust: this object holds the labels, so it guards an honest analyst from fooling themselves; to guard the labels
    from others, serve it elsewhere.
    The other parameters are those of `design`, and may be left out when the ledger knows them; so may `metric`.
    """

    def __init__(
        self,
        labels: ArrayLike,
        *,
        metric: AnyMetric | None = None,
        queries: int | None = None,
        within: float | None = None,
        confidence: float = 0.95,
        mode: str | None = None,
        private: bool | None = None,
        failures: int | None = None,
        threshold: float | None = None,
        tolerance: float | None = None,
        hits: int | None = None,
        features: Any = None,
        ledger: Place = None,
        anchors: Path | str | None = None,
    ) -> None:
        self._labels = Labels(labels)
        first = metric_named("accuracy" if metric is None else metric)
        refuse_labels(first, self._labels)
        self.features = features
        self._place = ledger, anchors
        if features is not None and len(features) != len(self._labels):
            raise InputError(
                f"expected features of {len(self._labels)} rows like the labels, got {len(features)}"
            )
        asked = None
        if queries is not None:
            asked = design(
                rows=len(self._labels), queries=queries, within=within, confidence=confidence, mode=mode,
                private=private, failures=failures, threshold=threshold, tolerance=tolerance, hits=hits,
            )  # fmt: skip
        self.looks = Looks(self._labels, ledger, anchors)
        try:
            name = first.name if METRICS.get(first.name) == first else None
            terms = None if asked is None else _terms(asked)
            found = self.looks.agree("holdout", terms, _first_state, metric=name)
            self.design = _design(found)
            if private and not self.design.private:  # as it was opened before
                raise not_private(self.design.mode)
            if self.looks.lost and self.design.mode not in _NOISY:
                raise forgotten(self.design.mode)
        except BaseException:
            self.looks.abandon()
            raise
        self.metric = first if metric is not None else metric_named(found["note"]["metric"] or "accuracy")
        self._asker = None if self.design.thresholds is None else thresholdout.Asker(self.design.thresholds)

    @property
    def rows(self) -> int:
        """How many rows the holdout has. Public."""
        return self.design.rows

    @property
    def width(self) -> float:
        """The certified half-width of every score, for values in [0,1]."""
        return self.design.width

    @property
    def looks_used(self) -> int:
        """How many looks were charged, by all who share the ledger."""
        return self.looks.used

    @property
    def ledger(self) -> Ledger:
        """Where the looks are counted."""
        return self.looks.ledger

    @property
    def private(self) -> bool:
        """Whether answers are differentially private for the labels."""
        return self.design.private

    @property
    def classes(self) -> NDArray[Any]:
        """The classes of the labels, in order: the columns of chances for each class. Public."""
        return self._labels.classes

    @property
    def left(self) -> Left:
        """What is left: looks, and where they depend on guesses, how many of those may fail."""
        plan, left = self.design, self.looks.left
        if plan.mode in _NOISY:
            return Left(left, left)
        seen = self.looks.transcript()
        if plan.mode == "thresholdout":
            return thresholdout.left(str(seen.state), left)
        return guessing.left(plan, plan.queries - left, seen.looks, seen.failures)

    @property
    def looks_left(self) -> int:
        """How many looks will surely be answered, whatever is asked: 0 when no further one can be.

        Where looks depend on guesses this is the number if every guess fails; `left` has the others.
        """
        return self.left.looks

    def score(
        self,
        predictions: Predictions,
        *,
        metric: AnyMetric | None = None,
        guess: float | None = None,
        key: str | None = None,
        team: str = "",
        team_most: int | None = None,
    ) -> Answer:
        """The metric on the population, with its interval.

        `guess` is your own estimate (from training data, say): Guess-and-Check and Thresholdout answer it
        back while the holdout agrees, and take the middle of the range if none is given. A repeated `key`
        returns the stored answer at no cost, whatever the predictions.
        """
        kind = self._kind(metric)
        sides = row_values(predictions, self._labels, kind)
        guessed = None if guess is None else _unit(kind, "guess", guess)

        def read(means: list[float]) -> Answer:
            return ratio(self.design, kind, means) if kind.parts else single(self.design, kind, means[0])

        return self._ask(kind.terms, sides, guessed, read, key, team, team_most).answer

    def check(
        self,
        train_score: float,
        predictions: Predictions,
        *,
        metric: AnyMetric | None = None,
        key: str | None = None,
        team: str = "",
    ) -> Verdict:
        """Is the training score true of the population? "Fine", or what the holdout says instead.

        Thresholdout and Guess-and-Check say nothing more than that. The other modes answer as `score` does,
        and call fine what lies inside the interval.
        """
        kind = self._kind(metric, plain_for="check")
        guess = _unit(kind, "train_score", train_score)
        sides = row_values(predictions, self._labels, kind)
        told = self._ask(
            f"check {kind.terms}", sides, guess, lambda means: single(self.design, kind, means[0]), key, team
        )
        inside = told.answer.low <= train_score <= told.answer.high
        return Verdict(inside if told.failed is None else not told.failed, told.answer)

    def compare(
        self,
        first: Predictions,
        second: Predictions,
        *,
        metric: AnyMetric | None = None,
        key: str | None = None,
        team: str = "",
    ) -> Answer:
        """By how much the first score exceeds the second, in one look. Its interval is twice as wide."""
        kind = self._kind(metric, plain_for="compare")
        (a,), (b,) = (row_values(side, self._labels, kind) for side in (first, second))
        return self._ask(
            f"compare {kind.terms}", [half_difference(a, b)], None,
            lambda means: difference(self.design, kind, means[0]), key, team,
        ).answer  # fmt: skip

    def scorer(
        self, metric: AnyMetric | None = None, *, features: Any = None, method: str = "predict"
    ) -> Any:
        """A scikit-learn scorer: use it as `scoring=` in GridSearchCV or cross_val_score."""
        from holdfast.holdout.scorer import HoldoutScorer

        return HoldoutScorer(self, metric, self.features if features is None else features, method)

    def history(self) -> list[tuple[str, Answer]]:
        """(team, answer) of every answer, in the order given."""
        return [(team, outcome.answer) for _, team, outcome in self.looks.outcomes()]

    def close(self) -> None:
        """Let go of the ledger."""
        self.looks.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """How it travels to worker processes: they open the same ledger, so the looks stay one count."""
        place, anchors = self._place
        if not isinstance(place, str | Path):
            raise InputError(
                "expected a ledger that other processes reach, got none; give ledger=, a file or an address"
            )
        terms = {"metric": self.metric, "features": self.features, "ledger": place, "anchors": anchors}
        return partial(type(self), **terms), (self._labels.values,)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _kind(self, metric: AnyMetric | None, plain_for: str | None = None) -> Metric:
        kind = self.metric if metric is None else metric_named(metric)
        if plain_for is not None and kind.parts:
            raise InputError(
                f"expected a mean over rows for {plain_for}, got {kind.name}, a ratio; use score"
            )
        return kind

    def _ask(
        self,
        question: str,
        sides: list[Rows],
        guess: float | None,
        read: Callable[[list[float]], Answer],
        key: str | None,
        team: str,
        team_most: int | None = None,
    ) -> Outcome:
        """Charge, release, settle."""
        looks = self.looks
        if self.design.mode in _NOISY:
            look = looks.charge(team, question, len(sides), team_most=team_most, key=key)
            if look.answer is not None:
                return Outcome.from_json(look.answer, repeated=True)
            return looks.settle(look, Outcome(read([mean(self.design, side) for side in sides])))
        # The next look depends on which guesses failed, so looks are taken one at a time.
        with looks.ledger.turn():
            known = None if key is None else looks.find(team, key)
            if known is None or known.answer is None:
                self._refuse_beyond(len(sides), looks.transcript())
            look = looks.charge(team, question, len(sides), team_most=team_most, key=key)
            if look.answer is not None:
                return Outcome.from_json(look.answer, repeated=True)
            guessed = 0.5 if guess is None else guess
            return looks.settle_in_turn(look, lambda seen: self._guessed(sides, guessed, read, seen))

    def _guessed(
        self, sides: list[Rows], guess: float, read: Callable[[list[float]], Answer], seen: Transcript
    ) -> Outcome:
        """What a guess comes to, after what was answered before."""
        self._refuse_beyond(len(sides), seen)
        plan, state, failed, means = self.design, seen.state, 0, []
        scale = plan.rows * GRID
        # Places count answers: a look that crashed released nothing, so it has none until it is resumed.
        for place, side in enumerate(sides, seen.looks + 1):
            if self._asker is not None:
                state, noisy = self._asker.ask(str(state), total(side), round(guess * scale))
                value = None if noisy is None else noisy / scale
            else:
                value = guessing.check_guess(plan, place, seen.failures + failed, total(side), guess)
            failed += value is not None
            means.append(guess if value is None else value)
        answer = read(means)
        told = "the holdout spoke" if failed else "the guess stands"
        return Outcome(
            replace(answer, explanation=f"{told}; {answer.explanation}"), failed=failed, state=state
        )

    def _refuse_beyond(self, looks: int, seen: Transcript) -> None:
        """Before the charge, from public facts only: which guesses failed is in the answers."""
        plan = self.design
        if plan.mode == "thresholdout":
            left = thresholdout.hits_left(str(seen.state))
            if left < looks:
                raise exhausted(plan, looks, 0, left)
        elif not guessing.answerable(plan, seen.looks, seen.failures, looks):
            raise exhausted(plan, looks, seen.failures, self.looks_left)


def _terms(plan: Design) -> dict[str, Any]:
    """What is promised, as JSON: the design, and what all looks together cost in zCDP; null where not private."""
    rho = up(plan.queries * plan.rho) if plan.private else None
    return {
        "queries": plan.queries,
        "rho": rho,
        "design": asdict(plan) | {"rho": plan.rho if plan.private else None},
    }


def _design(terms: dict[str, Any]) -> Design:
    parts = terms["design"]
    return Design.from_json(json.dumps(parts | {"rho": math.inf if parts["rho"] is None else parts["rho"]}))


def _first_state(terms: dict[str, Any]) -> str | None:
    """The secret state before the first look: where there is a sparse vector, its noisy threshold."""
    found = _design(terms).thresholds
    return None if found is None else thresholdout.open_vector(found)


def _unit(kind: Metric, name: str, value: object) -> float:
    """A score on the metric's scale as a number of [0,1], clipped."""
    return min(1.0, max(0.0, (between(name, value) - kind.low) / (kind.high - kind.low)))
