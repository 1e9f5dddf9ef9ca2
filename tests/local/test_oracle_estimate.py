"""Whole estimates: all items covered together as often as promised, with twins that are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import holdfast.local as local
from holdfast.local.oracle_estimate import Estimate
from holdfast.noise.bits import ReplayedBits

RUNS, CONFIDENCE, FALSE_ALARM = 150, 0.8, 1e-9
MOST_MISSES = int(stats.binom.isf(FALSE_ALARM, RUNS, 1 - CONFIDENCE))
VALUES = np.repeat(np.arange(8), [700, 400, 300, 200, 100, 50, 50, 0])
TRUTH = np.bincount(VALUES, minlength=8) / VALUES.size


def missed(make: Callable[[int], Any], twin: Callable[[Estimate], Estimate] = lambda e: e) -> int:
    """In how many runs some item's truth lay outside its limits."""
    total = 0
    for run in range(RUNS):
        oracle = make(run)
        reports = oracle.randomize(VALUES, ReplayedBits(run))
        found = twin(oracle.estimate(reports, items=np.arange(8), confidence=CONFIDENCE))
        total += bool(np.any((found.low > TRUTH) | (found.high < TRUTH)))
    return total


def halved(found: Estimate) -> Estimate:
    return replace(found, low=found.value - found.width / 2, high=found.value + found.width / 2)


ORACLES = [
    local.KaryResponse,
    local.SymmetricUnary,
    local.OptimisedUnary,
    local.HadamardResponse,
    local.SubsetSelection,
    local.LocalHashing,
]


@pytest.mark.parametrize("kind", ORACLES)
def test_frequencies_are_covered_together(kind: type) -> None:
    assert missed(lambda run: kind(8, 1.0)) <= MOST_MISSES
    assert missed(lambda run: kind(8, 1.0), halved) > MOST_MISSES


SHARED = [
    lambda run: local.CountMeanSketch(4.0, width=4, hashes=4, seed=run),
    lambda run: local.HadamardSketch(4.0, width=4, hashes=4, seed=run),
    lambda run: local.Rappor(0.05, 0.1, 0.9, width=8, hashes=2, cohorts=4, seed=run),
]


@pytest.mark.parametrize("make", SHARED)
def test_shared_functions_are_paid_for(make: Callable[[int], Any]) -> None:
    """Few public functions, so that collisions outweigh the coins. The twin forgets them."""
    assert missed(make) <= MOST_MISSES

    def forgets(run: int) -> Any:
        return _Forgetful(make(run))

    assert missed(forgets) > MOST_MISSES


class _Forgetful:
    """An oracle which takes its public functions for perfect."""

    def __init__(self, oracle: Any) -> None:
        self._oracle, self.randomize = oracle, oracle.randomize

    def estimate(self, reports: np.ndarray, *, items: np.ndarray, confidence: float) -> Estimate:
        return replace(self._oracle.support, hashing=None).estimate(
            self._oracle.counts(reports, items),
            len(reports),
            epsilon=self._oracle.epsilon,
            confidence=confidence,
            items=items,
            votes=getattr(self._oracle, "hashes", 1) if isinstance(self._oracle, local.Rappor) else 1,
        )


@pytest.mark.parametrize(
    ("oracle", "values", "truth"),
    [
        (local.RandomizedResponse(0.55), VALUES < 2, float(np.mean(VALUES < 2))),
        (local.OneBitMean(10.0, 1.0), VALUES / 3, float(np.mean(VALUES / 3))),
        (local.OneBitMean(5, 0.5, lower=-5), VALUES, float(np.mean(np.minimum(VALUES, 5)))),
    ],
)
def test_single_numbers_are_covered(oracle: Any, values: np.ndarray, truth: float) -> None:
    runs = 4 * RUNS
    most = int(stats.binom.isf(FALSE_ALARM, runs, 1 - CONFIDENCE))
    found = [
        oracle.estimate(oracle.randomize(values, ReplayedBits(run)), confidence=CONFIDENCE)
        for run in range(runs)
    ]
    assert sum(not e.low <= truth <= e.high for e in found) <= most
    assert sum(not e.low <= truth <= e.high for e in map(halved, found)) > most
    # The values spread as `deviation` says: the sum of squares is chi-square, and 0.8 or 1.25 of it is not.
    squares = sum(((e.value - truth) / e.deviation) ** 2 for e in found)

    def plausible(ratio: float) -> bool:
        return bool(
            2 * min(stats.chi2.cdf(squares / ratio**2, runs), stats.chi2.sf(squares / ratio**2, runs))
            > FALSE_ALARM
        )

    assert plausible(1.0)
    assert not plausible(0.8)
    assert not plausible(1.25)


def test_half_width_is_known_before() -> None:
    """No interval is wider than Hoeffding promised, but for the one count that limits add."""
    oracle = local.OptimisedUnary(8, 1.0)
    found = oracle.estimate(oracle.randomize(VALUES, ReplayedBits(3)), confidence=CONFIDENCE)
    promised = oracle.support.half_width(VALUES.size, CONFIDENCE, items=8)
    slack = 1 / VALUES.size / float(oracle.support.p - oracle.support.q)
    assert np.all(found.high - found.value <= promised + 2 * slack)
    assert np.all(np.abs(found.value - TRUTH) <= promised)


@pytest.mark.parametrize("make", SHARED)
def test_half_width_pays_for_shared_functions(make: Callable[[int], Any]) -> None:
    """With few functions the promise is kept; without the collisions it would be broken often."""
    kept = broken = 0
    for run in range(RUNS):
        oracle = make(run)
        found = oracle.estimate(
            oracle.randomize(VALUES, ReplayedBits(run)), items=np.arange(8), confidence=CONFIDENCE
        )
        worst = np.max(np.abs(found.value - TRUTH))
        kept += bool(worst <= oracle.support.half_width(VALUES.size, CONFIDENCE, items=8))
        coins_only = replace(oracle.support, hashing=None)
        broken += bool(worst > coins_only.half_width(VALUES.size, CONFIDENCE, items=8))
    assert kept >= RUNS - MOST_MISSES
    assert broken > MOST_MISSES
