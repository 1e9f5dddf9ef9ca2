"""A running total that may be read after every arrival."""

from __future__ import annotations

import threading
from fractions import Fraction
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.check import exact_positive, integer, one_of, probability
from holdfast.errors import BudgetError, InputError, MechanismError
from holdfast.mechanisms.values import integers
from holdfast.noise.bits import Bits
from holdfast.privacy import events
from holdfast.process import Home
from holdfast.stream.square_root import SquareRoot
from holdfast.stream.tree import Tree

Method = Literal["tree", "sqrt"]


class Counter:
    """The total of a stream of whole numbers in 0..largest, after every one of at most `horizon` arrivals.

    Guarantee: the sequence of all totals costs `event`: rho-zCDP, or epsilon-DP. Neighbouring streams differ
    in one arrival; later arrivals may be chosen after seeing earlier totals. Values are clamped to
    0..largest, so that this needs no promise. The number of arrivals is public.
    Method "sqrt" (rho only, and the default there) has the least noise, about a quarter of the tree's, and
    keeps 8 bytes for each arrival; "tree" keeps O(log horizon) numbers.
    Reference: `tree`, `factorisation`; docs/stream.md. One noise vector is drawn and never drawn again:
    fresh noise for every prefix would cost `horizon` times as much.
    Cost: `event`, known before the first arrival; charge it then. About a microsecond an arrival.

    `to_json` holds the exact count and the noise, both secret: keep it with the data. In a forked child it refuses
    (MechanismError): the noise of two copies is the same, and the difference of their totals would be exact.
    """

    __slots__ = ("_home", "_inner", "_lock", "_terms")

    def __init__(
        self,
        horizon: int,
        *,
        rho: float | Fraction | None = None,
        epsilon: float | Fraction | None = None,
        method: Method | None = None,
        largest: int = 1,
        bits: Bits | None = None,
    ) -> None:
        length = integer("horizon", horizon, most=1 << 62)
        self._terms = {"horizon": length} | counter_terms(rho, epsilon, method, largest)
        self._lock = threading.Lock()
        self._home = counter_home()
        self._inner = _inner(self._terms, bits)

    @property
    def event(self) -> events.Event:
        """What all totals together cost."""
        return self._inner.event

    @property
    def horizon(self) -> int:
        """How many arrivals may come."""
        return int(self._terms["horizon"])

    @property
    def seen(self) -> int:
        """How many arrivals there were; public."""
        return self._inner.seen

    def add(self, value: int = 1) -> None:
        """One arrival. Time passes for every arrival, also for a value of 0."""
        self._home.check()
        if type(value) is not int:
            value = _whole(value)
        with self._lock:
            self._check(1)
            self._inner.add(min(max(value, 0), self._terms["largest"]))

    def extend(self, values: ArrayLike) -> NDArray[np.int64]:
        """Many arrivals at once; the noisy total after each of them."""
        self._home.check()
        array = np.atleast_1d(np.asarray(integers(values)))
        if array.ndim != 1:
            raise InputError(f"expected a flat list of integers, got shape {array.shape}")
        with self._lock:
            self._check(array.size)
            return self._inner.extend(np.clip(array, 0, self._terms["largest"]))

    def total(self) -> int:
        """The noisy total so far: unbiased but for rounding, the same until the next arrival."""
        self._home.check()
        with self._lock:
            return self._inner.total()

    def half_width(self, beta: float) -> float:
        """The total at this moment is off by more with probability at most beta. Public."""
        return self._inner.half_width(probability("beta", beta))

    def to_json(self) -> dict[str, Any]:
        """The terms and the secret state."""
        self._home.check()
        with self._lock:
            return {"terms": dict(self._terms), "secret": self._inner.state()}

    @classmethod
    def from_json(cls, saved: dict[str, Any], bits: Bits | None = None) -> Self:
        """The counter as it was, with the same noise."""
        try:
            counter = cls(**read_terms(saved), bits=bits)
            counter._inner.restore(saved["secret"])
        except (KeyError, TypeError, AttributeError, ValueError) as problem:
            raise InputError("expected what to_json wrote, got something else") from problem
        return counter

    def _check(self, arrivals: int) -> None:
        if self._inner.seen + arrivals > self._terms["horizon"]:
            raise BudgetError(
                f"expected at most {self._terms['horizon']} arrivals, got {self._inner.seen} and {arrivals} "
                "more; open a new counter, or UnboundedCounter"
            )


def counter_terms(
    rho: float | Fraction | None, epsilon: float | Fraction | None, method: Method | None, largest: int
) -> dict[str, Any]:
    """What a counter is opened with, as it can be saved; fractions as text."""
    if (rho is None) == (epsilon is None):
        raise InputError("expected either rho or epsilon, got both or neither; give exactly one")
    return {
        "rho": None if rho is None else str(exact_positive("rho", rho)),
        "epsilon": None if epsilon is None else str(exact_positive("epsilon", epsilon)),
        "method": one_of("method", method or ("tree" if rho is None else "sqrt"), ("tree", "sqrt")),
        "largest": integer("largest", largest, most=1 << 36),
    }


def read_terms(saved: dict[str, Any]) -> dict[str, Any]:
    """The terms of a saved counter."""
    return {
        name: Fraction(value) if name in ("rho", "epsilon") and value is not None else value
        for name, value in saved["terms"].items()
    }


def counter_home() -> Home:
    """Where a counter is opened, and may be used."""
    return Home("a counter", "count there, or open another here", MechanismError)


def _inner(terms: dict[str, Any], bits: Bits | None) -> Tree | SquareRoot:
    rho = None if terms["rho"] is None else Fraction(terms["rho"])
    epsilon = None if terms["epsilon"] is None else Fraction(terms["epsilon"])
    if terms["method"] == "tree":
        return Tree(terms["horizon"], epsilon=epsilon, rho=rho, largest=terms["largest"], bits=bits)
    if rho is None:
        raise InputError("expected rho with method 'sqrt', got epsilon; use method 'tree' or give rho")
    return SquareRoot(terms["horizon"], rho, terms["largest"], bits)


def _whole(value: object) -> int:
    number = integers(value)
    if not isinstance(number, int):
        raise InputError("expected one integer, got an array; use extend()")
    return number
