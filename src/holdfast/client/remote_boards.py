"""Leaderboards and holdouts behind a gateway: predictions travel, labels do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import numpy as np

from holdfast.client.json_values import answers_of, key_of
from holdfast.client.wire import Wire
from holdfast.errors import InputError
from holdfast.holdout.reusable import Verdict
from holdfast.session import Answer


@dataclass(frozen=True, slots=True)
class RemoteStanding:
    """A team's place. Teams whose intervals overlap share a rank."""

    rank: int
    team: str
    value: float
    low: float
    high: float
    submissions: int


class _Board:
    """What leaderboards and holdouts have in common: public terms, and charged calls."""

    _kind: str
    _charged: str

    def __init__(self, wire: Wire, key: str) -> None:
        self._wire, self._path = wire, f"/v1/{self._kind}/{quote(key, safe='')}"
        declared = self._seen()
        self.id: str = declared["id"]
        self.rows: int = declared["rows"]
        self.metric: str = declared["metric"]
        self.queries: int = declared["queries"]
        self.confidence: float = declared["confidence"]
        self.private: bool = declared["private"]
        """Whether answers are differentially private for the labels."""
        self.width: float | None = declared["width"]
        """The certified half-width, on the scale of [0,1]; None where nothing is proved."""

    def __repr__(self) -> str:
        return f"<holdfast {self._kind[:-1]} {self.id!r} at {self._wire.place.host}>"

    def _seen(self) -> dict[str, Any]:
        seen: dict[str, Any] = self._wire.get(self._path)
        return seen

    def _put(self, predictions: Any, key: str | None, **more: Any) -> dict[str, Any]:
        """A charged look."""
        body = {"predictions": self._listed(predictions)} | more
        call = None if key is None else key_of(self._charged, key)
        told: dict[str, Any] = self._wire.charge(f"{self._path}/{self._charged}", body, call)
        return told

    def _listed(self, predictions: Any) -> list[Any]:
        if callable(predictions):
            raise InputError("expected an array of predictions, got a function: no code travels to a gateway")
        array = np.asarray(predictions)
        if array.shape[:1] != (self.rows,) or array.ndim > 2:
            raise InputError(
                f"expected one prediction for each of {self.rows:,} rows, got an array of shape {array.shape}"
            )
        listed: list[Any] = (array.astype(np.uint8) if array.dtype == np.bool_ else array).tolist()
        return listed


class RemoteLeaderboard(_Board):
    """A leaderboard that can't be overfitted; your team is the one that the owner put you in."""

    _kind, _charged = "leaderboards", "submissions"

    def submit(self, predictions: Any, *, key: str | None = None) -> Answer:
        """Charge a look to your team, then score. BudgetError when the team or the board has none left."""
        return answers_of(self._put(predictions, key))[0]

    def standings(self) -> tuple[RemoteStanding, ...]:
        """Every team with its rank."""
        return tuple(RemoteStanding(**place) for place in self._seen()["standings"])

    @property
    def looks_left(self) -> int:
        """How many submissions of your team will surely be answered."""
        return int(self._seen()["team_looks_left"])


class RemoteHoldout(_Board):
    """A holdout that may be looked at again and again."""

    _kind, _charged = "holdouts", "scores"

    def score(
        self,
        predictions: Any,
        *,
        metric: str | None = None,
        guess: float | None = None,
        sample_weight: Any = None,
        most_weight: float = 1.0,
        key: str | None = None,
    ) -> Answer:
        """The metric on the population, with its interval. Chances for each class are an array of a column for each."""
        more = _given(metric=metric, guess=guess)
        if sample_weight is not None:
            more |= {"sample_weight": self._listed(sample_weight), "most_weight": most_weight}
        return answers_of(self._put(predictions, key, **more))[0]

    def check(
        self, train_score: float, predictions: Any, *, metric: str | None = None, key: str | None = None
    ) -> Verdict:
        """Is the training score true of the population? "Fine", or what the holdout says instead."""
        told = self._put(predictions, key, train_score=train_score, **_given(metric=metric))
        return Verdict(told["fine"], answers_of(told)[0])

    def compare(
        self,
        first: Any,
        second: Any,
        *,
        metric: str | None = None,
        expect: float | None = None,
        key: str | None = None,
    ) -> Answer:
        """By how much the first score exceeds the second, in one look; narrow where they agree on most rows."""
        more = _given(metric=metric, expect=expect)
        return answers_of(self._put(first, key, against=self._listed(second), **more))[0]

    @property
    def alarms_left(self) -> int | None:
        """How many guesses may still fail with all looks answered; None where looks do not depend on guesses."""
        left: int | None = self._seen()["failures_left"]
        return left

    @property
    def looks_left(self) -> int:
        """How many looks will surely be answered, whatever is asked."""
        return int(self._seen()["looks_left"])


def _given(**more: Any) -> dict[str, Any]:
    """What was said; what was not is left to the gateway."""
    return {name: value for name, value in more.items() if value is not None}
