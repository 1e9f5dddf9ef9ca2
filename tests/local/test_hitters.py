"""Heavy hitters by prefix extension."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import holdfast.local as local
from holdfast.errors import InputError
from holdfast.noise.bits import ReplayedBits

HEAVY = {0xABCDEF: 0.2, 0x000001: 0.15, 0xABC000: 0.12}


def sample(users: int, seed: int) -> np.ndarray:
    """A population of 24-bit values in which three are heavy, two of them with a common prefix."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 1 << 24, users)
    owner = rng.random(users)
    start = 0.0
    for item, share in HEAVY.items():
        values[(owner >= start) & (owner < start + share)] = item
        start += share
    return values


def test_heavy_items_are_found_and_covered() -> None:
    finder = local.HeavyHitters(24, 4.0, first=6, step=6, keep=16)
    assert finder.lengths == (6, 12, 18, 24)
    found = finder.find(finder.randomize(sample(60_000, 1), ReplayedBits(1)), confidence=0.9)
    assert found.complete_above < 0.15
    assert set(found.items[:3].tolist()) == set(HEAVY)
    for item, share in HEAVY.items():
        one = found.estimate[item]
        assert one.low <= share <= one.high
        assert one.width < 0.05
    assert found.estimate.confidence == 0.9
    assert found.estimate.users == 60_000
    assert "missing" in str(found)
    assert len(found.items) == 16


def test_promise_of_completeness_is_kept_and_not_empty() -> None:
    """No item above the promise is missed in small runs; the twin that keeps one prefix misses some."""
    missed = twin_missed = 0
    for run in range(30):
        values = sample(20_000, run) >> 16
        finder = local.HeavyHitters(8, 4.0, first=4, step=2, keep=16)
        found = finder.find(finder.randomize(values, ReplayedBits(run)), confidence=0.8)
        assert found.complete_above < 0.2
        missed += any(
            share > found.complete_above and (item >> 16) not in found.items for item, share in HEAVY.items()
        )
        narrow = local.HeavyHitters(8, 4.0, first=4, step=2, keep=1)
        kept = narrow.find(narrow.randomize(values, ReplayedBits(run)), confidence=0.8)
        assert kept.complete_above == 1.0
        twin_missed += any((item >> 16) not in kept.items for item in HEAVY)
    assert missed <= stats.binom.isf(1e-9, 30, 0.2)
    assert twin_missed == 30


def test_one_user_one_report() -> None:
    """The report's length depends on coins only, so that the oracle's guarantee is the whole one."""
    finder = local.HeavyHitters(24, 1.0)
    first, second = (finder.randomize(np.full(1000, value), ReplayedBits(3)) for value in (0, 0xABCDEF))
    assert first.dtype == second.dtype
    assert np.array_equal(first["group"], second["group"])
    assert np.array_equal(first["hashed"]["a"], second["hashed"]["a"])
    assert not np.array_equal(first["hashed"]["y"], second["hashed"]["y"])
    assert finder.oracle.epsilon == finder.epsilon


def test_short_values_and_refusals() -> None:
    tiny = local.HeavyHitters(3, 3.0)
    assert tiny.lengths == (3,)
    assert tiny.find(tiny.randomize(np.full(4000, 5), ReplayedBits(1))).items[0] == 5
    finder = local.HeavyHitters(24, 1.0)
    with pytest.raises(InputError, match="group"):
        finder.find(finder.randomize([1, 2]))
    reports = finder.randomize(np.arange(1000))
    with pytest.raises(InputError, match="confidence"):
        finder.find(reports, confidence=1.0)
    with pytest.raises(InputError):
        finder.find(reports["hashed"])
    reports["group"][0] = 200
    with pytest.raises(InputError, match="forged"):
        finder.find(reports)
