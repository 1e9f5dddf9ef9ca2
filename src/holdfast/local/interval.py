"""Limits for a mean of independent reports."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_OUTWARD = 1e-9
"""Relative margin for the rounding of the inverse beta function; limits move apart by it."""


def binomial_limits(counts: NDArray[np.int64], users: int, miss: float) -> tuple[Floats, Floats]:
    """Limits for the mean success probability of `users` independent coins, of which `counts` showed heads.

    Guarantee: each pair covers the mean of the coins' probabilities with probability at least 1 - miss, even
    if no two coins are alike.
    Reference: Clopper, Pearson 1934, one count wider on both sides. For unlike coins: Hoeffding 1956, Theorem
    5, Pr[S >= c] <= Pr[Bin(n, mean) >= c] for c >= n*mean + 1. The wider limit misses from below only if S >=
    c + 1, where c is the least with Pr[Bin >= c] < miss/2; a c below n*mean is impossible, since the median
    of a binomial is at least floor(n*mean). Likewise on the other side.
    Cost: one inverse beta function per distinct count.
    """
    seen, place = np.unique(counts, return_inverse=True)
    low = _least(seen - 1, users, miss / 2)
    high = np.minimum(1.0, np.nextafter(1 - _least(users - seen - 1, users, miss / 2), 2.0))
    return low[place.ravel()], high[place.ravel()]


def _least(counts: NDArray[np.int64], users: int, miss: float) -> Floats:
    """Clopper and Pearson's lower limit: where so many heads or more have chance `miss`."""
    from scipy.special import betaincinv

    some = np.maximum(counts, 1)
    return np.where(counts < 1, 0.0, betaincinv(some, users - some + 1, miss) * (1 - _OUTWARD))


def bounded_limits(means: Floats, users: int, miss: float) -> tuple[Floats, Floats]:
    """Limits for the mean expectation of `users` independent numbers of [0, 1] with the given average.

    Guarantee: each pair covers with probability at least 1 - miss.
    Reference: Hoeffding 1963, Theorem 1 in its first form: Pr[average >= x] <= exp(-n KL(x || mean)).
    """
    bound = math.log(2 / miss) * (1 + _OUTWARD) / users
    low_in, low_out = np.copy(means), np.zeros_like(means)
    high_in, high_out = np.copy(means), np.ones_like(means)
    for _ in range(60):
        middle = (low_in + low_out) / 2
        outside = _divergence(means, middle) > bound
        low_out, low_in = np.where(outside, middle, low_out), np.where(outside, low_in, middle)
        middle = (high_in + high_out) / 2
        outside = _divergence(means, middle) > bound
        high_out, high_in = np.where(outside, middle, high_out), np.where(outside, high_in, middle)
    return low_out, high_out


def collision_slack(share: float, rows: int, miss: float) -> tuple[float, float]:
    """How far below and above its mean the average of `rows` independent numbers of [0, 1] may lie.

    Guarantee: outside with probability at most `miss`, if each has a mean of at most `share`.
    Reference: the multiplicative Chernoff bound below, Bernstein's above (variance <= share).
    """
    load = math.log(2 / miss) * (1 + _OUTWARD) / rows
    return math.sqrt(2 * share * load), load / 3 + math.sqrt(load * load / 9 + 2 * share * load)


def _divergence(x: Floats, mean: Floats) -> Floats:
    """KL(x || mean) between coins; infinite where the mean is 0 or 1 and x is not."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(x > 0, x * np.log(x / mean), 0.0)
        second = np.where(x < 1, (1 - x) * np.log((1 - x) / (1 - mean)), 0.0)
    return np.asarray(first + second)
