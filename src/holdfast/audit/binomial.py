"""Exact limits for an unknown proportion."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.check import probability
from holdfast.errors import InputError

_OUTWARD = 1e-9
"""Relative margin that covers the rounding of the inverse beta function; limits move apart by it."""


def least_proportion(successes: ArrayLike, trials: ArrayLike, miss: float) -> NDArray[np.float64]:
    """Lower Clopper-Pearson limit: the true proportion is below it with probability at most `miss`.

    Requires: independent trials; 0 < miss < 1. Vectorised.
    Reference: Clopper and Pearson 1934.
    """
    from scipy.special import betaincinv

    x, n = _counts(successes, trials, miss)
    limit = betaincinv(np.maximum(x, 1), n - x + 1, miss)
    return np.where(x == 0, 0.0, limit * (1 - _OUTWARD))


def most_proportion(successes: ArrayLike, trials: ArrayLike, miss: float) -> NDArray[np.float64]:
    """Upper Clopper-Pearson limit: the true proportion is above it with probability at most `miss`."""
    from scipy.special import betainccinv

    x, n = _counts(successes, trials, miss)
    limit = betainccinv(x + 1, np.maximum(n - x, 1), miss)
    return np.where(x == n, 1.0, np.minimum(1.0, limit * (1 + _OUTWARD)))


def proportion_interval(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The two-sided Clopper-Pearson interval."""
    miss = (1 - confidence) / 2
    return float(least_proportion(successes, trials, miss)), float(most_proportion(successes, trials, miss))


def loss_bound(
    hits: ArrayLike, other_hits: ArrayLike, trials: int, miss: float, delta: float
) -> NDArray[np.float64]:
    """ln((p - delta)/q) with p at its lower limit and q at its upper one; minus infinity where p is not above delta.

    Guarantee: above the epsilon of an (epsilon, delta)-DP pair with probability at most 2 miss. Vectorised.
    """
    p = least_proportion(hits, trials, miss) - delta
    q = most_proportion(other_hits, trials, miss)
    return np.where(p > 0.0, np.log(np.maximum(p, 1e-300)) - np.log(q), -np.inf)


def _counts(
    successes: ArrayLike, trials: ArrayLike, miss: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    x, n = np.asarray(successes), np.asarray(trials)
    probability("miss", miss, hint="0.05 is usual")
    if (
        x.dtype.kind not in "iu"
        or n.dtype.kind not in "iu"
        or np.any(x < 0)
        or np.any(x > n)
        or np.any(n < 1)
    ):
        raise InputError("expected counts with 0 <= successes <= trials >= 1, got others; count again")
    return x.astype(np.int64), n.astype(np.int64)
