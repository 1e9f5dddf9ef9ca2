"""How much noise a target needs. Every answer ends on the private side: its loss never exceeds the target."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import overload

from holdfast.check import Number, exact_positive, refusal, shown, written
from holdfast.errors import InputError
from holdfast.privacy.event import Event


def laplace_scale(sensitivity: Number, epsilon: Number) -> Fraction:
    """The scale for which Laplace(sensitivity, scale) is epsilon-DP, exactly; a float is read as written."""
    return exact_positive("sensitivity", sensitivity) / _target("epsilon", epsilon)


def gaussian_variance(sensitivity_squared: Number, *, rho: Number) -> Fraction:
    """The variance for which Gaussian(sensitivity_squared, variance) is exactly rho-zCDP."""
    return exact_positive("sensitivity_squared", sensitivity_squared) / (2 * _target("rho", rho))


def gaussian_variance_gdp(sensitivity_squared: Number, *, mu_squared: Number) -> Fraction:
    """The variance, in grid units, which makes discrete noise mu-GDP: 4 above that of continuous noise."""
    return exact_positive("sensitivity_squared", sensitivity_squared) / _target("mu_squared", mu_squared) + 4


@overload
def calibrate(
    make_event: Callable[[int], Event], loss_of: Callable[[Event], float], target: float, lo: int, hi: int
) -> int: ...
@overload
def calibrate(
    make_event: Callable[[float], Event],
    loss_of: Callable[[Event], float],
    target: float,
    lo: float,
    hi: float,
) -> float: ...
def calibrate(
    make_event: Callable[..., Event], loss_of: Callable[[Event], float], target: float, lo: float, hi: float
) -> float:
    """The parameter in [lo, hi] whose event comes nearest to the target without a loss above it.

    Guarantee: loss_of(make_event(result)) <= target, evaluated, not extrapolated. Whole bounds give a whole
    result.
    Requires: the loss is monotone between lo and hi (either way); one end at least meets the target.
    Cost: a bisection, at most some hundred evaluations.
    """
    bound = float(exact_positive("target", target))
    if not lo < hi:
        raise InputError(f"expected lo < hi, got {shown(lo)} and {shown(hi)}; swap or widen them")
    losses = loss_of(make_event(lo)), loss_of(make_event(hi))
    if not min(losses) <= bound:
        raise refusal("a loss that is reached between lo and hi", "target", target, "widen the range")
    safe, unsafe = (hi, lo) if losses[1] <= losses[0] else (lo, hi)
    if max(losses) <= bound:
        return unsafe
    while (middle := _between(safe, unsafe)) not in (safe, unsafe):
        if loss_of(make_event(middle)) <= bound:
            safe = middle
        else:
            unsafe = middle
    return safe


def _between(a: float, b: float) -> float:
    if isinstance(a, int) and isinstance(b, int):
        return (a + b) // 2
    low, high = min(a, b), max(a, b)
    # The geometric middle crosses many orders of magnitude in few steps.
    return math.sqrt(low) * math.sqrt(high) if low > 0.0 and high > 2.0 * low else low + (high - low) / 2


def _target(name: str, value: Number) -> Fraction:
    exact_positive(name, value)
    return written(name, value)
