"""How large discrete Laplace noise is: mean, tail, the worst of many. b is the scale, q = e^{-1/b}."""

from __future__ import annotations

import math
from fractions import Fraction

from holdfast.mechanisms.values import ROUND_UP, positive
from holdfast.noise.parameter import natural


def mean_magnitude(scale: float | Fraction) -> float:
    """E|Z| = 2q/(1-q^2) = 1/sinh(1/b), rounded up. Below b: the lecture's E|Z| = b holds as a bound."""
    rate = float(1 / positive("scale", scale))
    return ROUND_UP / math.sinh(rate) if rate < 700 else 0.0


def tail(scale: float | Fraction, distance: int) -> float:
    """Pr[|Z| >= distance] = 2 q^distance/(1+q) for distance >= 1, rounded up.

    The lecture's Pr[|Z| > tb] = e^{-t} becomes Pr[|Z| >= tb] <= 2e^{-t}/(1+q), which is 1 + 1/(2b) times that
    for large b: rounding to the integers costs half a step.
    """
    t = natural("distance", distance)
    rate = float(1 / positive("scale", scale))
    return 1.0 if t == 0 else min(1.0, ROUND_UP * 2 * math.exp(-rate * t) / (1 + math.exp(-rate)))


def mean_worst(scale: float | Fraction, coordinates: int) -> float:
    """A bound on E max|Z_i| over d coordinates, never above the lecture's b(ln d + 1), rounded up.

    E max = sum over h >= 1 of Pr[max >= h] <= sum of min(1, d Pr[|Z| >= h]). The sum is closed: some
    terms that are 1, then a geometric series.
    """
    b = positive("scale", scale)
    d = natural("coordinates", coordinates, least=1)
    rate = float(1 / b)
    if rate > 700:
        return 0.0
    q = math.exp(-rate)
    log_first = math.log(d) + math.log(2) - math.log1p(q)
    whole = max(0, math.floor(log_first / rate))
    return ROUND_UP * (whole + math.exp(log_first - rate * (whole + 1)) / -math.expm1(-rate))
