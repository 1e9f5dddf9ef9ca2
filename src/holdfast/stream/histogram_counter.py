"""A histogram that may be read after every arrival."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from fractions import Fraction
from typing import Any, Self

from holdfast.check import exact_positive
from holdfast.errors import InputError
from holdfast.noise.bits import Bits
from holdfast.privacy import events
from holdfast.stream.counter import Counter, Method


class HistogramCounter:
    """One counter for each declared category; each arrival is in one of them, or in none.

    Guarantee: the sequence of all histograms costs `event`. Neighbouring streams differ in one arrival, which
    may move from one category to another: two counters change by one, so each gets half of the budget.
    Unknown categories count nowhere; time passes for every counter at every arrival.
    Cost: `event`, known before the first arrival. A microsecond for each category and arrival.
    """

    __slots__ = ("_categories", "_counters")

    def __init__(
        self,
        categories: Iterable[str | int],
        horizon: int,
        *,
        rho: float | Fraction | None = None,
        epsilon: float | Fraction | None = None,
        method: Method | None = None,
        bits: Bits | None = None,
    ) -> None:
        self._categories = tuple(categories)
        if not self._categories or len(set(self._categories)) < len(self._categories):
            raise InputError("expected at least one category, all different, got none or a repetition")
        if any(isinstance(c, bool) or not isinstance(c, str | int) for c in self._categories):
            raise InputError("expected names or integers for categories, got something else")
        half_rho = None if rho is None else exact_positive("rho", rho) / 2
        half_epsilon = None if epsilon is None else exact_positive("epsilon", epsilon) / 2
        self._counters = [
            Counter(horizon, rho=half_rho, epsilon=half_epsilon, method=method, bits=bits)
            for _ in self._categories
        ]

    @property
    def event(self) -> events.Event:
        """What all histograms together cost: two counters, however many categories there are."""
        return events.Repeat(self._counters[0].event, 2)

    @property
    def seen(self) -> int:
        """How many arrivals there were; public."""
        return self._counters[0].seen

    def add(self, category: Hashable) -> None:
        """One arrival."""
        for name, counter in zip(self._categories, self._counters, strict=True):
            counter.add(int(name == category))

    def totals(self) -> dict[str | int, int]:
        """The noisy histogram so far; the same until the next arrival."""
        return {name: c.total() for name, c in zip(self._categories, self._counters, strict=True)}

    def half_width(self, beta: float) -> float:
        """With probability 1 - beta no cell is off by more at this moment. Public."""
        return self._counters[0].half_width(beta / len(self._categories))

    def to_json(self) -> dict[str, Any]:
        """The categories and the secret state of every counter."""
        return {"categories": list(self._categories), "counters": [c.to_json() for c in self._counters]}

    @classmethod
    def from_json(cls, saved: dict[str, Any], bits: Bits | None = None) -> Self:
        """The histogram as it was, with the same noise."""
        try:
            self = cls.__new__(cls)
            self._categories = tuple(saved["categories"])
            self._counters = [Counter.from_json(c, bits) for c in saved["counters"]]
            if len(self._counters) != len(self._categories) or len({c.seen for c in self._counters}) != 1:
                raise ValueError("counters do not fit the categories")
        except (KeyError, TypeError, AttributeError, ValueError) as problem:
            raise InputError("expected what to_json wrote, got something else") from problem
        return self
