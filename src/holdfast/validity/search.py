"""One-dimensional search where every point that is tried gives a valid bound, so no result can be wrong."""

from __future__ import annotations

import math
from collections.abc import Callable

from holdfast.privacy.rounding import up

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def least(
    function: Callable[[float], float], low: float, high: float, steps: int = 50
) -> tuple[float, float]:
    """(value, place) of the smallest value met by a golden-section search; exact for unimodal functions.

    The value is one that `function` really took at `place`: where each value is a valid bound, so is this
    one.
    """
    c, d = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_c, at_d = function(c), function(d)
    best = min((at_c, c), (at_d, d))
    for _ in range(steps):
        if at_c <= at_d:
            high, d, at_d = d, c, at_c
            c = high - _GOLDEN * (high - low)
            at_c = function(c)
            best = min(best, (at_c, c))
        else:
            low, c, at_c = c, d, at_d
            d = low + _GOLDEN * (high - low)
            at_d = function(d)
            best = min(best, (at_d, d))
    return best


def least_power(holds: Callable[[float], bool], low: float, high: float, steps: int = 60) -> float:
    """The least e^x, low <= x <= high, where a condition that stays true as x grows holds, on the safe side.

    Requires: it holds at e^high.
    """
    for _ in range(steps):
        middle = (low + high) / 2.0
        low, high = (low, middle) if holds(math.exp(middle)) else (middle, high)
    return up(math.exp(high))


def tuned(
    best: Callable[[float], float], rows: int, standard_deviation: float | None, beyond: float = 2.0
) -> float:
    """The width at a noise whose logarithm `best` takes, or at the best noise; inf if it says nothing."""
    if standard_deviation is not None:
        value = best(math.log(standard_deviation))
    else:
        value = least(best, 0.0, math.log(rows) + beyond, 50)[0]
    return value if value < 1.0 else math.inf


def most(holds: Callable[[int], bool], most_bits: int = 10**6) -> int:
    """The largest k >= 1 at which a predicate that never turns true again holds; 0 if it fails at 1.

    Gallop over the number of bits, then bisect. Beyond 2^53 the result keeps its 53 leading bits: still a k
    at which `holds` was true.
    """
    if not holds(1):
        return 0
    low, high = 0, 1
    while holds(1 << high):
        low, high = high, 2 * high
        if low > most_bits:
            return 1 << low
    low, high = _halved(lambda bits: not holds(1 << bits), low, high)
    return _halved(lambda k: not holds(k), 1 << low, 1 << high)[0]


def first(holds: Callable[[int], bool], start: int = 1, ceiling: int = 10**15) -> int | None:
    """The least k >= start at which a predicate that never turns false again holds; None beyond the
    ceiling."""
    if holds(start):
        return start
    low, high = start, max(2 * start, 2)
    while not holds(high):
        low, high = high, 2 * high
        if high > ceiling:
            return None
    return _halved(holds, low, high)[1]


def _halved(holds: Callable[[int], bool], low: int, high: int) -> tuple[int, int]:
    """Neighbours (up to 53 bits) from low, where it fails, to high, where it holds."""
    while high - low > max(1, low >> 52):
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high
