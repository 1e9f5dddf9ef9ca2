"""How large a sum of independent Laplace noises is."""

from __future__ import annotations

import math
from fractions import Fraction


def laplace_sum_half_width(scale: Fraction, count: int, beta: float) -> float:
    """h with Pr[|Z_1 + ... + Z_m| > h] <= beta for discrete Laplace Z_i of this scale.

    Guarantee: Chernoff. E e^{sZ} = (1-q)^2/((1-q e^s)(1-q e^{-s})) = 1/(1 - r), q = e^{-1/b} and
    r = (sinh(s/2)/sinh(1/(2b)))^2, so any 0 < s < 1/b gives h = (ln(2/beta) - m ln(1-r))/s; the least over a
    grid of s is taken.
    """
    b = float(scale)
    need = math.log(2 / beta)
    if b < 1 / 700:
        return (need + count) / 690  # s = 690 < 1/b, where r < e^-10
    best = math.inf
    for i in range(1, 100):
        s = i / (100 * b)
        r = (math.sinh(s / 2) / math.sinh(1 / (2 * b))) ** 2
        best = min(best, (need - count * math.log1p(-r)) / s)
    return best * (1 + 2.0**-30)
