"""Limits, checked by exact sums over all outcomes; unlike coins included."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from holdfast.local.interval import binomial_limits, bounded_limits, collision_slack

Limits = Callable[[np.ndarray, int, float], tuple[np.ndarray, np.ndarray]]


def sum_law(parts: list[list[float]]) -> np.ndarray:
    """The law of a sum of independent non-negative integers, each given by its probabilities."""
    law = np.ones(1)
    for part in parts:
        law = np.convolve(law, part)
    return law


def misses(limits: Limits, chances: list[float], miss: float) -> tuple[float, float]:
    """The exact chance that the lower limit is too high, and that the upper is too low, for these coins."""
    law, users = sum_law([[1 - p, p] for p in chances]), len(chances)
    low, high = limits(np.arange(users + 1), users, miss)
    truth = math.fsum(chances) / users
    return float(law[low > truth].sum()), float(law[high < truth].sum())


def wald(counts: np.ndarray, users: int, miss: float) -> tuple[np.ndarray, np.ndarray]:
    mean = counts / users
    width = 1.96 * np.sqrt(mean * (1 - mean) / users)
    return mean - width, mean + width


def as_mean(counts: np.ndarray, users: int, miss: float) -> tuple[np.ndarray, np.ndarray]:
    return bounded_limits(counts / users, users, miss)


POPULATIONS = [
    [high] * k + [low] * (n - k)
    for n in (1, 2, 5, 30, 200)
    for high, low in ((0.55, 0.45), (0.9, 0.1), (0.5, 0.01), (1.0, 0.0), (0.02, 0.001), (0.999, 0.5))
    for k in sorted({0, 1, n // 3, n - 1, n})
]


@pytest.mark.parametrize("miss", [0.5, 0.05, 1e-4])
def test_limits_hold_on_each_side(miss: float) -> None:
    for chances in POPULATIONS:
        for limits in (binomial_limits, as_mean):
            assert max(misses(limits, chances, miss)) <= miss / 2, (limits, chances)
    assert any(max(misses(wald, chances, 0.05)) > 0.025 for chances in POPULATIONS)


def test_the_extra_count_is_needed() -> None:
    """One coin of 0.01 among impossible ones is likelier to show heads than a binomial of the same mean."""
    from scipy.special import betainccinv, betaincinv

    def plain(counts: np.ndarray, users: int, miss: float) -> tuple[np.ndarray, np.ndarray]:
        low = np.where(counts == 0, 0.0, betaincinv(np.maximum(counts, 1), users - counts + 1.0, miss / 2))
        high = np.where(
            counts == users, 1.0, betainccinv(counts + 1.0, np.maximum(users - counts, 1), miss / 2)
        )
        return low, high

    chances, miss = [0.01] + [0.0] * 9, 2 * 0.00998
    assert max(misses(plain, chances, miss)) > miss / 2
    assert max(misses(binomial_limits, chances, miss)) <= miss / 2


def at_least(users: int, p: mpmath.mpf, x: int) -> mpmath.mpf:
    """Pr[Bin(users, p) >= x] for x above the mean, term by term."""
    log = mpmath.log(mpmath.binomial(users, x)) if users < 100 else _log_binomial(users, x)
    term = mpmath.exp(log + x * mpmath.log(p) + (users - x) * mpmath.log(1 - p))
    total, odds = mpmath.mpf(0), p / (1 - p)
    while term > total * mpmath.mpf(10) ** -15:
        total += term
        term *= odds * (users - x) / (x + 1)
        x += 1
    return total


def _log_binomial(n: int, x: int) -> mpmath.mpf:
    return mpmath.loggamma(n + 1) - mpmath.loggamma(x + 1) - mpmath.loggamma(n - x + 1)


@pytest.mark.parametrize("users", [10, 10**4, 10**7])
@pytest.mark.parametrize("miss", [0.05, 1e-9])
def test_inverse_beta_rounds_outward(users: int, miss: float) -> None:
    """The limits against the tail of the binomial in 30 digits: never inside, and not far outside."""
    counts = np.unique([2, users // 3, users // 2, users - 2])
    low, high = binomial_limits(counts, users, miss)
    with mpmath.workdps(30):
        for x, lo, hi in zip(counts.tolist(), low.tolist(), high.tolist(), strict=True):
            sides = (mpmath.mpf(lo), x - 1), (1 - mpmath.mpf(hi), users - x - 1)
            tails = [at_least(users, p, count) for p, count in sides if p]
            assert all(tail <= miss / 2 for tail in tails)
            # Near 1 a float limit cannot be closer than 2^-53.
            assert all(
                tail >= 0.98 * miss / 2 for tail, (p, _) in zip(tails, sides, strict=False) if p > 1e-9
            )


@pytest.mark.parametrize("share", [0.3, 1 / 256])
@pytest.mark.parametrize("rows", [1, 20, 500])
def test_collision_slack(rows: int, share: float) -> None:
    """Collisions of one value: a binomial. The slack holds on both sides; a third of it does not."""
    law, mean = sum_law([[1 - share, share]] * rows), np.arange(rows + 1) / rows

    def missed(factor: float, miss: float) -> float:
        below, above = (factor * part for part in collision_slack(share, rows, miss))
        return max(law[mean < share - below].sum(), law[mean > share + above].sum())

    assert all(missed(1.0, miss) <= miss / 2 for miss in (0.5, 0.05, 1e-4))
    if rows > 1:
        assert missed(1 / 3, 0.05) > 0.025
