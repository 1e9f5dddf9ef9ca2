"""Bounds by margins: against the full search, against each other, and against truth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from oracles.statistics import FALSE_ALARM
from scipy import stats

from holdfast.learn.margin_bounds import breiman_bound, kl_inverse, kth_margin_bound, schapire_bound


def by_hand(margins: Any) -> float:
    """The printed formula at every level and every N up to 400."""
    levels, counts = np.unique(margins, return_counts=True)
    below = (np.cumsum(counts) - counts) / len(margins)
    best = 1.0
    for N in range(1, 400):
        room = math.sqrt(
            (math.log(N * (N + 1) ** 2) + N * math.log(20) - math.log(0.05)) / (2 * len(margins))
        )
        for theta, share in zip(levels, below, strict=True):
            if theta > 0:
                best = min(best, share + 2 * math.exp(-N * theta**2 / 8) + room)
    return best


def test_schapire_bound_is_near_the_full_search_and_never_below() -> None:
    draw = np.random.default_rng(4)
    margins = np.clip(draw.normal(0.8, 0.1, 40), -1, 1)
    margins = np.concatenate([np.repeat(margins, 2000), [-0.1]])
    slow = by_hand(margins)
    found = schapire_bound(margins, math.log(20), 0.05)
    assert slow <= found * (1 + 1e-9) <= 1.1 * slow
    assert found < 0.2


def test_kth_margin_bound_is_never_above_schapire() -> None:
    draw = np.random.default_rng(5)
    sharper = 0
    for _ in range(8):
        margins = np.clip(draw.normal(draw.uniform(0.2, 0.9), 0.2, 20_000), -1, 1)
        ours, k = kth_margin_bound(margins, math.log(50), 0.05)
        assert ours <= schapire_bound(margins, math.log(50), 0.05) + 1e-12
        assert 1 <= k <= 20_000
        sharper += ours < 0.9
    assert sharper


def test_kl_inverse_is_the_chernoff_bound() -> None:
    for p, room in ((0.0, 0.1), (0.1, 0.01), (0.5, 0.3), (0.99, 0.2), (1.0, 0.1)):
        q = kl_inverse(p, room)
        assert p <= q <= 1
        if q < 1 - 1e-9:
            kl = stats.entropy([p, 1 - p], [q, 1 - q])
            assert kl == pytest.approx(room, rel=1e-6)
    assert kl_inverse(0.0, 0.1) == pytest.approx(1 - math.exp(-0.1))


def test_bounds_cover_the_population_when_the_class_is_searched() -> None:
    """The best of 64 coordinates, all coins: f = one member, margin +-1; the truth is that half of all err."""
    draw = np.random.default_rng(6)
    naive = missed = 0
    for _ in range(200):
        x = draw.random((60, 64)) < 0.5
        errors = (~x).mean(axis=0)  # the truth is "all true"
        margins = np.where(x[:, int(errors.argmin())], 1.0, -1.0)
        value, _ = kth_margin_bound(margins, math.log(64), 0.05)
        missed += value < 0.5
        naive += (
            float(np.mean(margins <= 0)) + math.sqrt(math.log(20) / 120) < 0.5
        )  # the twin ignores the search
    assert missed <= stats.binom.ppf(1 - FALSE_ALARM, 200, 0.05)
    assert naive > stats.binom.ppf(1 - FALSE_ALARM, 200, 0.05)


def test_breiman_checks_its_conditions() -> None:
    value, why = breiman_bound(0.9, 100_000, math.log(1000), 0.05)
    R = 32 * math.log(2000) / (100_000 * 0.81)
    exact = R * (math.log(200_000) + math.log(1 / R) + 1) + math.log(1000 / 0.05) / 100_000
    assert why == ""
    assert value == pytest.approx(exact)
    assert breiman_bound(0.1, 100_000, math.log(1000), 0.05) == (
        1.0,
        "needs a smallest margin above 4 sqrt(2/|H|)",
    )
    assert breiman_bound(-0.1, 100_000, math.log(1000), 0.05)[0] == 1.0
    assert breiman_bound(0.005, 10, 50.0, 0.05) == (1.0, "needs R <= 2n")
