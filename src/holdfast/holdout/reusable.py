"""A holdout that may be looked at again and again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import InputError, LedgerError
from holdfast.holdout import guess as guessing
from holdfast.holdout import thresholdout
from holdfast.holdout.design import Design, design, not_private
from holdfast.holdout.fingerprint import fingerprint
from holdfast.holdout.labels import Labels
from holdfast.holdout.left import Left
from holdfast.holdout.metric import GRID, Metric, RowValues, metric_named
from holdfast.holdout.predictions import Predictions, half_difference, refuse_labels, row_values
from holdfast.holdout.reading import difference, ratio, single
from holdfast.holdout.refusal import exhausted, overspent
from holdfast.holdout.release import Rows, mean, total
from holdfast.holdout.state import Look, Overspent, State
from holdfast.session.answer import Answer

AnyMetric = str | Metric | RowValues
STANDS = "the guess stands"
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

    `state` is a folder: the looks are kept there under the holdout's fingerprint, shared by all processes and
    by every later run. Without it they are forgotten with the object. Trust: this object holds the labels, so
    it guards an honest analyst from fooling themselves; to guard the labels from others, serve it elsewhere.
    The other parameters are those of `design`, and may be left out when the state knows them.
    """

    def __init__(
        self,
        labels: ArrayLike,
        *,
        metric: AnyMetric = "accuracy",
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
        state: Path | str | None = None,
        anchors: Path | str | None = None,
    ) -> None:
        self._labels = Labels(labels)
        self.metric = metric_named(metric)
        refuse_labels(self.metric, self._labels)
        self.features = features
        self._folders = state, anchors
        if features is not None and len(features) != len(self._labels):
            raise InputError(
                f"features must have {len(self._labels)} rows like the labels, got {len(features)}"
            )
        asked = None
        if queries is not None:
            asked = design(
                rows=len(self._labels), queries=queries, within=within, confidence=confidence, mode=mode,
                private=private, failures=failures, threshold=threshold, tolerance=tolerance, hits=hits,
            )  # fmt: skip
        self.state = open_state(self._labels, state, anchors)
        self.design = _agree(self.state, asked)
        if private and not self.design.private:  # as it was opened before
            self.state.close()
            raise not_private(self.design.mode)
        self._asker: thresholdout.Asker | None = None
        if self.design.thresholds is not None:
            self._asker = thresholdout.Asker(self.design.thresholds)
            if self.state.fact("secret") is None:
                self.state.fact("secret", thresholdout.open_vector(self.design.thresholds))

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
        """How many looks were charged, by all who share the state."""
        return self.state.used()

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
        plan, used = self.design, self.looks_used
        if plan.mode == "guess-and-check":
            return guessing.left(plan, used, self.state.settled(), self._failures())
        if plan.mode == "thresholdout":
            return thresholdout.left(self._secret(), plan.queries - used)
        return Left(plan.queries - used, plan.queries - used)

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

        return self._ask(kind.terms, sides, guessed, read, key, team, team_most)[0]

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
        answer, stood = self._ask(
            f"check {kind.terms}", sides, guess, lambda means: single(self.design, kind, means[0]), key, team
        )
        return Verdict(answer.low <= train_score <= answer.high if stood is None else stood, answer)

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
        )[0]  # fmt: skip

    def scorer(
        self, metric: AnyMetric | None = None, *, features: Any = None, method: str = "predict"
    ) -> Any:
        """A scikit-learn scorer: use it as `scoring=` in GridSearchCV or cross_val_score."""
        from holdfast.holdout.scorer import HoldoutScorer

        return HoldoutScorer(self, metric, self.features if features is None else features, method)

    def history(self) -> list[tuple[str, Answer]]:
        """(team, answer) of every answer, in the order given."""
        return [(team, Answer.from_json(text)) for _, team, text in self.state.answers()]

    def close(self) -> None:
        """Let go of the state file."""
        self.state.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """How it travels to worker processes: they open the same state file, so the looks stay one count."""
        folder, anchors = self._folders
        if folder is None:
            raise InputError(
                "a holdout whose looks are in memory cannot be shared; open it with state=FOLDER"
            )
        terms = {"metric": self.metric, "features": self.features, "state": folder, "anchors": anchors}
        return partial(type(self), **terms), (self._labels.values,)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _kind(self, metric: AnyMetric | None, plain_for: str | None = None) -> Metric:
        kind = self.metric if metric is None else metric_named(metric)
        if plain_for is not None and kind.parts:
            raise InputError(f"{plain_for} needs a mean over rows, got {kind.name}, a ratio; use score")
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
    ) -> tuple[Answer, bool | None]:
        """Charge, release, settle. The second part says whether the guess stood, where there was one."""
        plan = self.design
        if plan.mode in _NOISY:
            look = self._charge(team, question, len(sides), team_most, key)
            if look.answer is not None:
                return Answer.from_json(look.answer, repeated=True), None
            answer = read([mean(plan, side) for side in sides])
            return Answer.from_json(self.state.settle(look.id, answer.to_json())), None
        # The next look depends on which guesses failed, so looks are taken one at a time.
        with self.state.alone():
            known = None if key is None else self.state.answered(team, key)
            if known is None:
                self._refuse_beyond(len(sides))
            look = self._charge(team, question, len(sides), team_most, key)
            if look.answer is not None:
                answer = Answer.from_json(look.answer, repeated=True)
                return answer, answer.explanation.startswith(STANDS)
            answer, secret = self._guessed(sides, 0.5 if guess is None else guess, read)
            answer = Answer.from_json(self.state.settle(look.id, answer.to_json(), secret))
            return answer, answer.explanation.startswith(STANDS)

    def _guessed(
        self, sides: list[Rows], guess: float, read: Callable[[list[float]], Answer]
    ) -> tuple[Answer, str]:
        """The answer to a guess, and the secret state after it."""
        plan, secret, means, stood = self.design, self._secret(), [], True
        scale = plan.rows * GRID
        # Places count answers: a look that crashed released nothing, so it has none until it is resumed.
        for place, side in enumerate(sides, self.state.settled() + 1):
            if self._asker is not None:
                secret, noisy = self._asker.ask(secret, total(side), round(guess * scale))
                value = None if noisy is None else noisy / scale
            else:
                value = guessing.check_guess(plan, place, int(secret), total(side), guess)
                secret = str(int(secret) + (value is not None))
            stood = stood and value is None
            means.append(guess if value is None else value)
        answer = read(means)
        told = STANDS if stood else "the holdout spoke"
        return replace(answer, explanation=f"{told}; {answer.explanation}"), secret

    def _secret(self) -> str:
        return self.state.fact("secret") or "0"

    def _failures(self) -> int:
        return int(self._secret())

    def _charge(self, team: str, question: str, looks: int, team_most: int | None, key: str | None) -> Look:
        try:
            return self.state.charge(
                team, question, looks, most=self.design.queries, team_most=team_most, key=key
            )
        except Overspent as over:
            raise overspent(self.design.queries, looks, team, over) from None

    def _refuse_beyond(self, looks: int) -> None:
        """Before the charge, from public facts only: which guesses failed is in the answers."""
        plan = self.design
        if plan.mode == "thresholdout":
            left = thresholdout.hits_left(self._secret())
            if left < looks:
                raise exhausted(plan, looks, 0, left)
        elif not guessing.answerable(plan, self.state.settled(), self._failures(), looks):
            raise exhausted(plan, looks, self._failures(), self.looks_left)


def open_state(labels: Labels, folder: Path | str | None, anchors: Path | str | None) -> State:
    """The state of these labels in a folder, or one that lives as long as the object."""
    return State(None) if folder is None else State.open(folder, fingerprint(labels.values), anchors)


def _unit(kind: Metric, name: str, value: object) -> float:
    """A score on the metric's scale as a number of [0,1], clipped."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | np.integer | np.floating)
        or not math.isfinite(value)
    ):
        raise InputError(f"{name} must be a finite number, got {type(value).__name__}; pass a float")
    return min(1.0, max(0.0, (float(value) - kind.low) / (kind.high - kind.low)))


def _agree(state: State, asked: Design | None) -> Design:
    """The design that stands: the first one that the holdout was opened with."""
    saved = state.fact("design", None if asked is None else asked.to_json())
    if saved is None:
        state.close()
        raise InputError(
            "queries= is needed when a holdout is opened for the first time; how many looks in all?"
        )
    if asked is not None and saved != asked.to_json():
        state.close()
        raise LedgerError(
            f"this holdout was opened before on other terms ({saved[:80]}…), and its looks count on those. "
            "Leave queries= out to go on, or collect a fresh holdout"
        )
    try:
        return Design.from_json(saved)
    except (KeyError, TypeError, ValueError):
        state.close()
        raise LedgerError("these labels are behind a Ladder; open them as that Leaderboard") from None
