"""Running totals by the binary tree."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.noise.bits import Bits
from holdfast.noise.gaussian import gaussian as draw_gaussian
from holdfast.noise.laplace import laplace as draw_laplace
from holdfast.privacy import events
from holdfast.stream.tail import laplace_sum_half_width


class Tree:
    """A counter made of the noisy sums of finished blocks of 2^i arrivals, one for each bit of the time.

    Each arrival is in one block of each of h = floor(log2(T)) + 1 sizes, so all noisy block sums together
    have sensitivity h*largest in L1 and h*largest^2 in squared L2.
    Guarantee: epsilon-DP with Laplace noise, rho-zCDP with Gaussian noise, for the sequence of all totals.
    Reference: Dwork, Naor, Pitassi and Rothblum 2010; Chan, Shi and Song 2011.
    Cost: `event`. O(1) amortised for an arrival, h numbers of state.
    """

    __slots__ = ("_draw", "_noises", "_total", "event", "height", "parameter", "pure", "seen")

    def __init__(
        self,
        horizon: int,
        *,
        epsilon: Fraction | None,
        rho: Fraction | None,
        largest: int,
        bits: Bits | None = None,
    ) -> None:
        self.height = h = horizon.bit_length()
        self.pure = epsilon is not None
        if epsilon is not None:
            self.parameter = h * largest / epsilon
            self.event: events.Event = events.Laplace(h * largest, self.parameter)
            self._draw = partial(draw_laplace, self.parameter, bits)
        else:
            assert rho is not None
            self.parameter = h * largest**2 / (2 * rho)
            self.event = events.Gaussian(h * largest**2, self.parameter)
            self._draw = partial(draw_gaussian, self.parameter, bits)
        self.seen = 0
        self._noises = [0] * h
        self._total = 0

    def add(self, value: int) -> None:
        """One arrival: it closes the block of the size of the lowest bit of the time.

        The noisy sums of the blocks in use add up to the exact total and their noises, so the new total is
        the old one, less the noises of the blocks swallowed, plus the value and a fresh noise.
        """
        self.seen += 1
        level = (self.seen & -self.seen).bit_length() - 1
        fresh = self._draw()
        self._total += value + fresh
        if level:
            self._total -= sum(self._noises[:level])
        self._noises[level] = fresh

    def total(self) -> int:
        """The noisy number so far; the same until the next arrival."""
        return self._total

    def extend(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Many arrivals at once, and the noisy total after each."""
        out = np.empty(values.size, dtype=np.int64)
        for i, value in enumerate(values.tolist()):
            self.add(value)
            out[i] = self._total
        return out

    def half_width(self, beta: float) -> float:
        """At this moment the total is off by more with probability at most beta."""
        blocks = max(1, self.seen.bit_count())
        if self.pure:
            return laplace_sum_half_width(self.parameter, blocks, beta)
        return math.sqrt(2 * blocks * float(self.parameter) * math.log(2 / beta)) * (1 + 2.0**-40)

    def state(self) -> dict[str, Any]:
        """The noisy total and the noise in it: secret."""
        return {"seen": self.seen, "total": self._total, "noises": list(self._noises)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`, with the same noise."""
        noises = [int(z) for z in state["noises"]]
        self.seen, self._total = int(state["seen"]), int(state["total"])
        if len(noises) != self.height or not 0 <= self.seen < 1 << self.height:
            raise ValueError("state does not fit the horizon")
        self._noises = noises
