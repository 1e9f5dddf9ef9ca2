"""A running total of a stream whose length nobody knows."""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from typing import Any, Self

from holdfast.check import integer
from holdfast.errors import InputError
from holdfast.noise.bits import Bits
from holdfast.noise.gaussian import gaussian
from holdfast.noise.laplace import laplace
from holdfast.privacy import events
from holdfast.stream.counter import Counter, Method, counter_home, counter_terms, read_terms
from holdfast.stream.factorisation import LONGEST
from holdfast.stream.tail import laplace_sum_half_width

_FIRST = 1 << 10
_SHARE = {"sqrt": Fraction(1, 3), "tree": Fraction(1, 8)}
"""What the totals of finished stretches get; the rest goes to the stretch that runs. Near the best mixture
for some ten stretches."""


class UnboundedCounter:
    """`Counter` without a horizon: stretches of doubling length, one counter for each, noisy totals before.

    Guarantee: an arrival is in one stretch, whose running totals cost the larger share and whose final total,
    released once, the smaller one; together rho-zCDP or epsilon-DP for ever.
    Reference: Chan, Shi and Song 2011, section 4 (hybrid mechanism).
    Cost: `event`. The noise is about twice that of a counter which knew the horizon. Stretches of method
    "sqrt" stop doubling at 2^21 arrivals.
    """

    __slots__ = ("_before", "_bits", "_closed", "_counter", "_home", "_lock", "_stretch", "_sum", "_terms")

    def __init__(
        self,
        *,
        rho: float | Fraction | None = None,
        epsilon: float | Fraction | None = None,
        method: Method | None = None,
        largest: int = 1,
        bits: Bits | None = None,
    ) -> None:
        self._terms = counter_terms(rho, epsilon, method, largest)
        self._bits = bits
        self._lock = threading.Lock()
        self._home = counter_home()
        self._before = 0
        self._closed = 0
        self._stretch = 0
        self._sum = 0
        self._counter = self._open()

    @property
    def event(self) -> events.Event:
        """What all totals together cost, however long the stream."""
        if self._terms["rho"] is not None:
            return events.ConcentratedMechanism(Fraction(self._terms["rho"]))
        return events.PureMechanism(Fraction(self._terms["epsilon"]))

    @property
    def seen(self) -> int:
        """How many arrivals there were; public."""
        return self._before + self._counter.seen

    def add(self, value: int = 1) -> None:
        """One arrival."""
        self._home.check()
        with self._lock:
            if self._counter.seen == self._counter.horizon:
                self._closed += self._sum + self._noise()
                self._before += self._counter.horizon
                self._stretch += 1
                self._sum = 0
                self._counter = self._open()
            self._counter.add(value)
            self._sum += min(max(int(value), 0), self._terms["largest"])

    def total(self) -> int:
        """The noisy total so far; the same until the next arrival."""
        self._home.check()
        with self._lock:
            return self._closed + self._counter.total()

    def half_width(self, beta: float) -> float:
        """The total at this moment is off by more with probability at most beta. Public."""
        inner = self._counter.half_width(beta / 2 if self._stretch else beta)
        if not self._stretch:
            return inner
        if self._terms["rho"] is None:
            return inner + laplace_sum_half_width(self._parameter(), self._stretch, beta / 2)
        deviation = math.sqrt(2 * self._stretch * float(self._parameter()) * math.log(4 / beta))
        return inner + deviation * (1 + 2.0**-40)

    def to_json(self) -> dict[str, Any]:
        """The terms and the secret state."""
        self._home.check()
        with self._lock:
            secret = {
                "before": self._before,
                "closed": self._closed,
                "stretch": self._stretch,
                "sum": self._sum,
                "counter": self._counter.to_json(),
            }
        return {"terms": dict(self._terms), "secret": secret}

    @classmethod
    def from_json(cls, saved: dict[str, Any], bits: Bits | None = None) -> Self:
        """The counter as it was, with the same noise."""
        try:
            self, secret = cls(**read_terms(saved), bits=bits), saved["secret"]
            self._closed, self._sum = int(secret["closed"]), int(secret["sum"])
            self._stretch, self._before = (integer(k, secret[k], 0) for k in ("stretch", "before"))
            self._counter = Counter.from_json(secret["counter"], bits)
        except (KeyError, TypeError, AttributeError, ValueError) as problem:
            raise InputError("expected what to_json wrote, got something else") from problem
        return self

    def _open(self) -> Counter:
        share = 1 - self._share()
        rho, epsilon = self._terms["rho"], self._terms["epsilon"]
        length = _FIRST << self._stretch
        return Counter(
            min(length, LONGEST) if self._terms["method"] == "sqrt" else length,
            rho=None if rho is None else Fraction(rho) * share,
            epsilon=None if epsilon is None else Fraction(epsilon) * share,
            method=self._terms["method"],
            largest=self._terms["largest"],
            bits=self._bits,
        )

    def _share(self) -> Fraction:
        return _SHARE[self._terms["method"]]

    def _parameter(self) -> Fraction:
        """The noise of a finished stretch: a variance, or a scale."""
        largest = int(self._terms["largest"])
        if self._terms["rho"] is not None:
            return Fraction(largest**2) / (2 * Fraction(self._terms["rho"]) * self._share())
        return largest / (Fraction(self._terms["epsilon"]) * self._share())

    def _noise(self) -> int:
        draw = laplace if self._terms["rho"] is None else gaussian
        return draw(self._parameter(), self._bits)
