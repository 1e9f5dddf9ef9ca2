"""Clopper-Pearson limits, by their definition and by exact coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from holdfast.audit.binomial import least_proportion, most_proportion, proportion_interval
from holdfast.errors import InputError

TRIALS = 37


def coverage(limits: np.ndarray, p: float, below: bool) -> float:
    """The exact chance that a limit which depends on Bin(TRIALS, p) lies on the right side of p."""
    weights = binom.pmf(np.arange(TRIALS + 1), TRIALS, p)
    return float(weights[(limits <= p) if below else (limits >= p)].sum())


@pytest.mark.parametrize("miss", [0.05, 1e-3, 1e-9])
def test_a_limit_is_the_proportion_at_which_the_count_is_just_surprising(miss: float) -> None:
    for x in range(1, TRIALS + 1):
        assert 0.99 * miss < binom.sf(x - 1, TRIALS, float(least_proportion(x, TRIALS, miss))) <= miss
    for x in range(TRIALS - 1):
        assert 0.99 * miss < binom.cdf(x, TRIALS, float(most_proportion(x, TRIALS, miss))) <= miss
    assert float(least_proportion(0, TRIALS, miss)) == 0.0
    assert float(most_proportion(TRIALS, TRIALS, miss)) == 1.0


def test_coverage_is_exact_and_the_textbook_interval_is_caught() -> None:
    counts, miss = np.arange(TRIALS + 1), 0.05
    grid = np.linspace(0.001, 0.999, 500)
    assert min(coverage(least_proportion(counts, TRIALS, miss), p, below=True) for p in grid) >= 1 - miss
    assert min(coverage(most_proportion(counts, TRIALS, miss), p, below=False) for p in grid) >= 1 - miss
    mean = counts / TRIALS
    wald = mean - 1.645 * np.sqrt(mean * (1 - mean) / TRIALS)
    assert min(coverage(wald, p, below=True) for p in grid) < 1 - miss


def test_vectors_and_scalars_agree() -> None:
    whole = least_proportion(np.arange(10), 20, 0.05)
    assert [float(least_proportion(x, 20, 0.05)) for x in range(10)] == whole.tolist()
    low, high = proportion_interval(0, 1000)
    assert (low, high) == (0.0, pytest.approx(1 - 0.025 ** (1 / 1000)))


@pytest.mark.parametrize(
    ("successes", "trials", "miss"),
    [(-1, 5, 0.1), (6, 5, 0.1), (0, 0, 0.1), (1, 5, 0.0), (1, 5, 1.0), (1, 5, math.nan), (0.5, 5, 0.1)],
)
def test_nonsense_is_refused(successes: float, trials: int, miss: float) -> None:
    with pytest.raises(InputError):
        least_proportion(successes, trials, miss)
