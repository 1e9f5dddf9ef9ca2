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


def last_within(width: Callable[[int], float], goal: float, ceiling: int = 10**18) -> int:
    """The largest k with width(k) <= goal, up to a part in 500; 0 if it fails at 1.

    For a width that is slow to compute and grows about like a power of k: the steps follow that power. What is
    returned was computed and fits.
    """
    good, at_good, bad, at_bad, aim = 1, width(1), 0, math.inf, 1.0
    if at_good > goal:
        return 0
    while good < ceiling and (not bad or bad - good > max(1, good >> 9)):
        if not bad:
            k = min(ceiling, max(2 * good, math.ceil(good * min(1e6, (goal / at_good) ** 4))))
        elif math.isinf(at_bad):
            k = math.isqrt(good * bad)
        else:
            share = math.log(goal / at_good) / max(math.log(at_bad / at_good), 1e-12)
            k = round(good * (bad / good) ** min(0.95, max(0.05, share)) * aim)
        k = max(good + 1, min(k, bad - 1)) if bad else k
        at_k = width(k)
        if at_k <= goal:
            good, at_good, aim = k, at_k, 1 + 2**-10
        else:
            bad, at_bad, aim = k, at_k, 1 - 2**-10
    return good


def first_within(
    width: Callable[[int], float], goal: float, start: int = 1, ceiling: int = 10**15
) -> int | None:
    """The least n >= start with width(n) <= goal, up to a part in 500, for a width that falls like 1/sqrt(n)."""
    bad, good = start, start
    at_bad = at_good = width(start)
    while at_good > goal:
        bad, at_bad = good, at_good
        good = max(
            2 * good, min(1000 * good, math.ceil(good * (min(at_good, 1.0) / goal) ** 2 * (1 + 2**-10)))
        )
        if good > ceiling:
            return None
        at_good = width(good)
    aim = 1 - 2**-10
    while good - bad > max(1, good >> 9):
        if math.isinf(at_bad):
            n = math.isqrt(bad * good)
        else:
            share = math.log(at_bad / goal) / max(math.log(at_bad / at_good), 1e-12)
            n = round(bad * (good / bad) ** min(0.95, max(0.05, share)) * aim)
        n = max(bad + 1, min(n, good - 1))
        at_n = width(n)
        if at_n <= goal:
            good, at_good, aim = n, at_n, 1 - 2**-10
        else:
            bad, at_bad, aim = n, at_n, 1 + 2**-10
    return good
