"""True probabilities, from mpmath."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction

import mpmath

from holdfast.noise.law import Law


def laplace_law(scale: Fraction) -> Law:
    return Law.of(1 / scale, Fraction(0), two_sided=True)


def gaussian_law(variance: Fraction) -> Law:
    return Law.of(Fraction(0), 1 / (2 * variance), two_sided=True)


def geometric_law(rate: Fraction) -> Law:
    return Law.of(rate, Fraction(0), two_sided=False)


def probabilities(law: Law, reach: int = 500) -> dict[Hashable, float]:
    """P(x) for |x| <= reach, beyond which nothing is left at 15 digits."""
    with mpmath.workdps(40):
        support = range(-reach if law.two_sided else 0, reach + 1)
        weights = {x: mpmath.exp(-_rational(law.exponent(abs(x)))) for x in support}
        total = mpmath.fsum(weights.values())
        return {x: float(w / total) for x, w in weights.items() if w / total > 1e-16}


def pairs(law: dict[Hashable, float]) -> dict[Hashable, float]:
    """The law of two independent draws."""
    return {(x, y): p * q for x, p in law.items() for y, q in law.items() if p * q > 1e-16}


def exp(rate: Fraction) -> float:
    with mpmath.workdps(40):
        return float(mpmath.exp(-_rational(rate)))


def _rational(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def block_probabilities(law: Law, step: int) -> dict[Hashable, float]:
    """The chance of each block when it is proportional to the weight of its edge."""
    with mpmath.workdps(30):
        weights = [mpmath.exp(-_rational(law.exponent(law.edge(i, step)))) for i in range(400)]
        total = mpmath.fsum(weights)
        return {i: float(w / total) for i, w in enumerate(weights)}
