"""Privacy of a unit that owns several rows."""

from __future__ import annotations

import math
from typing import overload

from holdfast.check import Number, exact, integer, probability
from holdfast.privacy.loss import Approx
from holdfast.privacy.rounding import float_up, up


@overload
def group(epsilon: Number, size: int) -> float: ...
@overload
def group(epsilon: Number, size: int, delta: Number) -> float | Approx: ...
def group(epsilon: Number, size: int, delta: Number = 0.0) -> float | Approx:
    """The loss of `size` rows at once under an (epsilon, delta)-DP mechanism: a float when delta is 0.

    Guarantee: size*epsilon, and delta * (e^(size*epsilon) - 1)/(e^epsilon - 1), capped at 1.
    Reference: Dwork and Roth 2014, Thm 2.2; the geometric sum of Vadhan 2017, Lemma 2.2. Cost: O(1).
    """
    m = integer("size", size)
    total = float_up(exact("epsilon", epsilon) * m)
    if exact("delta", delta) == 0:
        return total
    return Approx(total, group_delta(float_up(exact("epsilon", epsilon)), m, probability("delta", delta)))


def group_delta(epsilon: float, size: int, delta: float) -> float:
    """delta * (e^(size*epsilon) - 1)/(e^epsilon - 1), rounded up, at most 1."""
    total = up(epsilon * size)
    if epsilon == 0.0 or total < 1e-300:
        return min(1.0, up(delta * size))
    if total > 700.0:
        return 1.0
    return min(1.0, up(delta * math.expm1(total) / math.expm1(epsilon)))
