"""A holdout that may be looked at again and again."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import BudgetError, InputError, LedgerError
from holdfast.holdout import guess as guessing
from holdfast.holdout import thresholdout
from holdfast.holdout.design import Design, design
from holdfast.holdout.fingerprint import fingerprint, labels_array
from holdfast.holdout.metric import GRID, Metric, RowValues, metric_named, on_grid
from holdfast.holdout.reading import difference, ratio, single
from holdfast.holdout.release import Rows, mean, total
from holdfast.holdout.state import Look, Overspent, State
from holdfast.noise.bits import Bits
from holdfast.session.answer import Answer

Predictions = ArrayLike | Callable[[NDArray[np.int64]], ArrayLike]
"""One prediction for each row of the holdout, or a function from row numbers to their predictions."""

AnyMetric = str | Metric | RowValues


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
    labels are read, never refunded. With votes a look takes the same time on 1e7 rows as on 1e5.

    `state` is a folder: the looks are kept there under the holdout's fingerprint, shared by all processes and
    by every later run. Without it they are forgotten with the object. Trust: this object holds the labels, so
    it guards an honest analyst from fooling themselves; to guard the labels from others, serve it elsewhere.
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
        private: bool = False,
        failures: int | None = None,
        threshold: float | None = None,
        tolerance: float | None = None,
        hits: int | None = None,
        features: Any = None,
        state: Path | str | None = None,
        anchors: Path | str | None = None,
        bits: Bits | None = None,
    ) -> None:
        self._labels = labels_array(labels)
        self._bits = bits
        self.metric = metric_named(metric)
        self.features = features
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
        self._state = _open(self._labels, state, anchors)
        self.design = _agree(self._state, asked)
        if self.design.mode == "thresholdout" and self._state.fact("secret") is None:
            assert self.design.thresholds is not None
            self._state.fact("secret", thresholdout.open_vector(self.design.thresholds, bits))

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
        return self._state.used()

    @property
    def looks_left(self) -> int:
        """How many looks can still be answered; for Guess-and-Check, if no further guess fails."""
        plan, used = self.design, self.looks_used
        if plan.mode == "guess-and-check":
            return guessing.looks_left(plan, used, self._failures())
        if plan.mode == "thresholdout" and not thresholdout.hits_left(self._secret()):
            return 0
        return plan.queries - used

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
        back while the holdout agrees, and take the middle of the range if none is given. A repeated
        `key` returns the stored answer at no cost, whatever the predictions.
        """
        kind = self.metric if metric is None else metric_named(metric)
        sides = [self._rows(predictions, part) for part in kind.parts or (kind.values,) if part is not None]
        guessed = None if guess is None else (_number("guess", guess) - kind.low) / (kind.high - kind.low)

        def read(means: list[float]) -> Answer:
            return ratio(self.design, kind, means) if kind.parts else single(self.design, kind, means[0])

        return self._ask(kind.name, sides, guessed, team, team_most, key, read)[0]

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
        kind = self.metric if metric is None else metric_named(metric)
        if kind.values is None:
            raise InputError(f"check needs a mean over rows, got {kind.name}, a ratio; use score")
        claimed = _number("train_score", train_score)
        guess = (claimed - kind.low) / (kind.high - kind.low)
        answer, stood = self._ask(
            f"check {kind.name}", [self._rows(predictions, kind.values)], guess, team, None, key,
            lambda means: single(self.design, kind, means[0]),
        )  # fmt: skip
        fine = stood if stood is not None else answer.low <= claimed <= answer.high
        return Verdict(fine, answer)

    def compare(
        self,
        first: Predictions,
        second: Predictions,
        *,
        metric: AnyMetric | None = None,
        key: str | None = None,
        team: str = "",
    ) -> Answer:
        """By how much the first score exceeds the second, in one look; better if `low` is above 0."""
        kind = self.metric if metric is None else metric_named(metric)
        if kind.values is None:
            raise InputError(f"compare needs a mean over rows, got {kind.name}, a ratio; use score twice")
        a, b = self._rows(first, kind.values), self._rows(second, kind.values)

        def half_difference(ids: NDArray[np.int64] | None) -> NDArray[Any]:
            left, right = (x * GRID if x.dtype == np.bool_ else x for x in (a(ids), b(ids)))
            values: NDArray[Any] = (GRID + left.astype(np.int64) - right) // 2
            return values

        answer, _ = self._ask(
            f"compare {kind.name}", [half_difference], None, team, None, key,
            lambda means: difference(self.design, kind, means[0]),
        )  # fmt: skip
        return answer

    def scorer(
        self, metric: AnyMetric | None = None, *, features: Any = None, method: str = "predict"
    ) -> Any:
        """A scikit-learn scorer: use it as `scoring=` in GridSearchCV or cross_val_score."""
        from holdfast.holdout.scorer import HoldoutScorer

        return HoldoutScorer(self, metric, self.features if features is None else features, method)

    def history(self) -> list[tuple[str, Answer]]:
        """(team, answer) of every look, oldest first."""
        return [(team, Answer.from_json(text)) for _, team, text in self._state.answers()]

    def close(self) -> None:
        """Let go of the state file."""
        self._state.close()

    def __enter__(self) -> ReusableHoldout:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ask(
        self,
        question: str,
        sides: list[Rows],
        guess: float | None,
        team: str,
        team_most: int | None,
        key: str | None,
        read: Callable[[list[float]], Answer],
    ) -> tuple[Answer, bool | None]:
        """Charge, release, settle. The second part says whether the guess stood, where there was one."""
        plan = self.design
        if plan.mode in ("votes", "gaussian", "discretised"):
            look = self._charge(team, question, len(sides), team_most, key)
            if look.answer is not None:
                return Answer.from_json(look.answer, repeated=True), None
            answer = read([mean(plan, side, self._bits) for side in sides])
            return Answer.from_json(self._state.settle(look.id, answer.to_json())), None
        with self._state.alone():
            self._refuse_beyond(plan, len(sides))
            look = self._charge(team, question, len(sides), team_most, key)
            if look.answer is not None:
                answer = Answer.from_json(look.answer, repeated=True)
                return answer, "guess stands" in answer.explanation
            secret, means, stood = self._secret(), [], True
            for place, side in enumerate(sides, look.total - len(sides) + 1):
                offered = self._guess(guess)
                secret, value = self._checked(secret, place, total(side), offered)
                stood = stood and value is None
                means.append(offered if value is None else value)
            answer = read(means)
            told = "the guess stands" if stood else "the holdout spoke"
            answer = replace(answer, explanation=f"{told}; {answer.explanation}")
            return Answer.from_json(self._state.settle(look.id, answer.to_json(), secret)), stood

    def _checked(self, secret: str, place: int, held: int, guess: float) -> tuple[str, float | None]:
        plan = self.design
        if plan.mode == "guess-and-check":
            failures = int(secret)
            if not guessing.certified(plan, place, failures):
                raise BudgetError("the second half of this look can no longer be certified; ask for a mean")
            value = guessing.check_guess(plan, place, failures, held, guess)
            return str(failures + (value is not None)), value
        assert plan.thresholds is not None
        scale = plan.rows * GRID
        after, noisy = thresholdout.ask_vector(
            plan.thresholds, secret, held, round(guess * scale), self._bits
        )
        return after, None if noisy is None else noisy / scale

    def _guess(self, guess: float | None) -> float:
        return 0.5 if guess is None else min(1.0, max(0.0, guess))

    def _secret(self) -> str:
        return self._state.fact("secret") or "0"

    def _failures(self) -> int:
        return int(self._secret())

    def _charge(self, team: str, question: str, looks: int, team_most: int | None, key: str | None) -> Look:
        try:
            return self._state.charge(
                team,
                question,
                looks,
                most=self.design.queries,
                team_most=team_most,
                key=key or uuid.uuid4().hex,
            )
        except Overspent as over:
            raise _refusal(self.design, looks, team, over) from None

    def _refuse_beyond(self, plan: Design, looks: int) -> None:
        """Before the charge, from public facts only."""
        if plan.mode == "thresholdout":
            if thresholdout.hits_left(self._secret()) < looks:
                raise BudgetError(
                    "all disagreements that this Thresholdout can tell were told; a further look would end "
                    "the guarantee. Collect a fresh holdout, or open one with more hits",
                    requested=looks, remaining=0,
                )  # fmt: skip
        elif not guessing.certified(plan, self.looks_used + looks, self._failures() + looks - 1):
            raise BudgetError(
                f"{self._failures()} guesses failed, and a further look could not be certified within "
                f"{plan.width:.4g}; collect a fresh holdout, or open the next one wider",
                requested=looks, remaining=self.looks_left,
            )  # fmt: skip

    def _rows(self, predictions: Predictions, values: RowValues) -> Rows:
        """Row values of some predictions; an array is indexed only at the rows that are read."""
        if callable(predictions):
            given = predictions
        else:
            array = np.asarray(predictions)
            if array.shape[:1] != self._labels.shape:
                raise InputError(
                    f"predictions must have one entry for each of {self.rows} rows, got shape {array.shape}"
                )
            given = None

        def rows(ids: NDArray[np.int64] | None) -> NDArray[Any]:
            labels = self._labels if ids is None else self._labels.take(ids)
            if given is not None:
                said = np.asarray(given(np.arange(self.rows) if ids is None else ids))
            else:
                said = array if ids is None else array[ids]
            return on_grid(values(_like(said, labels), labels), len(labels))

        return rows


def _like(said: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Predictions in a form that compares with the labels."""
    if labels.dtype.kind == "U":
        return said.astype(np.str_)
    if said.dtype.kind not in "buif":
        raise InputError(f"predictions must be numbers like the labels, got {said.dtype}")
    return said.astype(np.int64) if said.dtype == np.bool_ else said


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise InputError(f"{name} must be a finite number, got {type(value).__name__}")
    return float(value)


def _open(labels: NDArray[Any], folder: Path | str | None, anchors: Path | str | None) -> State:
    return State(None) if folder is None else State.open(folder, fingerprint(labels), anchors)


def _agree(state: State, asked: Design | None) -> Design:
    """The design that stands: the first one that the holdout was opened with."""
    saved = state.fact("design", None if asked is None else asked.to_json())
    if saved is None:
        raise InputError(
            "queries= is needed when a holdout is opened for the first time; how many looks in all?"
        )
    if asked is not None and saved != asked.to_json():
        raise LedgerError(
            f"this holdout was opened before, for {Design.from_json(saved)}; its looks count on those terms. "
            "Leave queries= out to go on, or collect a fresh holdout"
        )
    return Design.from_json(saved)


def _refusal(plan: Design, looks: int, team: str, over: Overspent) -> BudgetError:
    who, left = f"the holdout's {plan.queries:,}", over.left
    if over.team_left is not None and over.team_left < over.left:
        who, left = f"the looks of {team!r}", over.team_left
    if left > 0:
        more = f"{left} look is left: ask for a mean such as accuracy, which takes one"
    elif over.left > 0:
        more = f"the others have {over.left:,} left"
    else:
        more = "a further look would end the guarantee; go on with a fresh holdout"
    message = (
        f"{looks} more would pass {who} looks" if left == over.left else f"{looks} more would pass {who}"
    )
    return BudgetError(f"{message}; {more}", requested=looks, remaining=max(0, left))
