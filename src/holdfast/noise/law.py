"""Laws on the integers that fall off like exp(-(a|x| + bx^2))."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from holdfast.noise.exponential import exponential
from holdfast.noise.inversion import Cumulative

_GUARD = 40

LARGEST_SCALE = 1 << 52
"""Noise of a larger scale might not fit into 64 bits; up to here that has probability below 2**-2900."""


@dataclass(frozen=True, slots=True)
class Law:
    """Weight exp(-g(|x|)) with g(x) = (linear*x + quadratic*x^2)/denominator, on x >= 0 or on all integers.

    g is convex and grows, which is all that the tables need: within a block the increments of g lie between
    the first one and the mean one, and beyond a point the weights fall at least geometrically.
    """

    linear: int
    quadratic: int
    denominator: int
    two_sided: bool

    @staticmethod
    def of(linear: Fraction, quadratic: Fraction, *, two_sided: bool) -> Law:
        """The law with g(x) = linear*x + quadratic*x^2."""
        d = linear.denominator * quadratic.denominator
        return Law(int(linear * d), int(quadratic * d), d, two_sided)

    def exponent(self, x: int) -> Fraction:
        """g(x), for x >= 0."""
        return Fraction(self.rise(0, x), self.denominator)

    def rise(self, x: int, k: int) -> int:
        """denominator * (g(x + k) - g(x)), for x, k >= 0."""
        return k * (self.linear + self.quadratic * (2 * x + k))

    def reach(self, bits: int) -> int:
        """The least x > 0 with exp(-g(x)) < 2**-bits, or slightly more."""
        # 7/10 is a little more than ln 2.
        goal = 7 * bits * self.denominator // 10
        high = 1
        while self.rise(0, high) <= goal:
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            if self.rise(0, middle) <= goal:
                low = middle
            else:
                high = middle
        return high

    def edge(self, block: int, step: int) -> int:
        """The least |x| in a block of `step` integers; two-sided laws take turns: 0.., -1.., step.."""
        return (block >> 1) * step + (block & 1) if self.two_sided else block * step

    def cumulative(self, step: int, width: int) -> Cumulative:
        """The running sums of exp(-g(edge)) over blocks of `step` integers, to 2**-width of the total."""
        precision = width + _GUARD
        chains = [self._weights(start, step, precision) for start in range(1 + self.two_sided)]
        lows: list[int] = []
        highs: list[int] = []
        low = high = 0
        while True:
            for chain in chains:
                weight_low, weight_high = next(chain)
                if weight_high >> (_GUARD // 2) == 0:
                    edge = self.edge(len(lows), step)
                    slope = Fraction(self.rise(edge, step), self.denominator)
                    # sum of exp(-k*slope) over k >= 0 is at most 1 + 1/slope; the exponent grows no slower.
                    tail = len(chains) * weight_high * (1 + 1 / slope)
                    return Cumulative(lows, highs, low, high + int(tail) + 1)
                low += weight_low
                high += weight_high
                lows.append(low)
                highs.append(high)

    def _weights(self, start: int, step: int, precision: int) -> Iterator[tuple[int, int]]:
        """Brackets of 2**precision * exp(-g(start + h*step)) for h = 0, 1, ...

        The quotient of neighbours is multiplied by a constant from step to step, because g is quadratic.
        """
        first = self.exponent(start)
        low, high = exponential(first, precision)
        ratio_low, ratio_high = exponential(self.exponent(start + step) - first, precision)
        bend = Fraction(2 * self.quadratic * step * step, self.denominator)
        bend_low, bend_high = exponential(bend, precision)
        while True:
            yield low, high
            low = low * ratio_low >> precision
            high = (high * ratio_high >> precision) + 1
            if self.quadratic:
                ratio_low = ratio_low * bend_low >> precision
                ratio_high = (ratio_high * bend_high >> precision) + 1
