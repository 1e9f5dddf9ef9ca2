"""Which keys are shown: the exact laws on neighbouring tables, and broken twins."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from oracles.statistics import FALSE_ALARM
from scipy.stats import binom

from holdfast.mechanisms import shown_keys as module
from holdfast.mechanisms.shown_keys import shown_keys, unit_weights
from holdfast.privacy.event import KeysByGaussian, KeysByLogistic
from holdfast.privacy.rule import value

Law = list[float]
"""The chance that each key is shown; keys are shown independently of one another."""


def gaussian_tail(at_least: int, variance: Fraction) -> float:
    """Pr[N >= j] of discrete Gaussian noise, summed."""
    reach = 40 * math.ceil(math.sqrt(variance))
    weights = {x: math.exp(-x * x / (2 * float(variance))) for x in range(-reach, reach + 1)}
    return math.fsum(w for x, w in weights.items() if x >= at_least) / math.fsum(weights.values())


def law(counts: list[int], event: KeysByGaussian | KeysByLogistic) -> Law:
    """The chances by definition."""
    if isinstance(event, KeysByGaussian):
        return [gaussian_tail(event.threshold - c, event.variance) if c else 0.0 for c in counts]
    return [
        1 / (1 + math.exp(-float(event.rate) * (c - event.threshold))) if c >= event.least else 0.0
        for c in counts
    ]


def approximate_zcdp(first: Law, second: Law, delta: float) -> float:
    """The least rho of delta-approximate rho-zCDP that these laws show: what one table never shows is left to delta."""
    alone = [p for p, q in zip(first, second, strict=True) if p > 0 and q == 0]
    assert 1 - math.prod(1 - p for p in alone) <= delta * (1 + 1e-9)
    worst = 0.0
    for order in 1 + np.geomspace(1e-3, 1e3, 60):
        total = 0.0
        for p, q in zip(first, second, strict=True):
            if p and q:
                bits = [order * math.log(a) + (1 - order) * math.log(b) for a, b in ((p, q), (1 - p, 1 - q))]
                total += float(np.logaddexp(*bits)) / (order - 1)
        worst = max(worst, total / order)
    return worst


GAUSSIAN = KeysByGaussian(1, 1, 1, 3, 8)
LOGISTIC = KeysByLogistic(1, 1, 3, Fraction(3, 4), 12)
NEIGHBOURS = [
    ([1, 4, 0], [0, 4, 1]),
    ([3, 5, 1], [2, 6, 1]),
    ([3, 2, 9], [2, 3, 9]),
    ([7, 7], [8, 6]),
    ([1], [0]),
]


@pytest.mark.parametrize("event", [GAUSSIAN, LOGISTIC])
def test_the_charge_covers_every_neighbour_both_ways(event: KeysByGaussian | KeysByLogistic) -> None:
    rho, delta = float(value(event, "zcdp")), float(value(event, "failure"))
    for pair in NEIGHBOURS:
        for first, second in (pair, pair[::-1]):
            assert approximate_zcdp(law(first, event), law(second, event), delta) <= rho * (1 + 1e-9)


def test_twins_charge_too_little() -> None:
    """A threshold that is one too low for its delta; a rho of one unit that comes or goes, not one that is replaced."""
    low = KeysByGaussian(1, 1, 1, 3, 7)
    with pytest.raises(AssertionError):
        approximate_zcdp(law([1], low), law([0], low), float(value(GAUSSIAN, "failure")))
    low_logistic = KeysByLogistic(1, 1, 4, Fraction(3, 4), 12)
    with pytest.raises(AssertionError):
        approximate_zcdp(law([4], low_logistic), law([3], low_logistic), float(value(LOGISTIC, "failure")))
    worst = approximate_zcdp(law([12, 12], LOGISTIC), law([13, 11], LOGISTIC), 0.5)
    assert worst > float(value(LOGISTIC, "zcdp")) / 2


def test_several_keys_of_a_unit_weigh_less_and_are_covered() -> None:
    """Of up to four keys, on a grid of 8: 8, 5, 4, 4."""
    event = KeysByGaussian(4, 1, 8, 40, 30)
    rho, delta = float(value(event, "zcdp")), float(value(event, "failure"))
    for t in range(1, 5):
        weight = math.isqrt(64 // t)
        assert t * weight**2 <= 64
        mine = [weight] * t + [0] * t
        assert approximate_zcdp(law(mine, event), law(mine[::-1], event), delta) >= 0
        moved = [weight + 20] * t + [20] * t
        assert approximate_zcdp(law(moved, event), law(moved[::-1], event), delta) <= rho * (1 + 1e-9)


UNITS = [[], [0, 0, 0], [1, 2], [9, 9, 9], [0, 1, 2, 3, 0], [4, 3, 9]]
"""Codes of the events of some units; 9 is NULL."""


def weighed(units: list[list[int]], event: KeysByGaussian | KeysByLogistic) -> list[int]:
    codes = np.array([code for unit in units for code in unit], dtype=np.uint32)
    return unit_weights(codes, np.array([len(unit) for unit in units], dtype=int), 5, event).tolist()


def test_a_unit_counts_once_for_each_of_its_keys() -> None:
    gaussian, logistic = KeysByGaussian(4, 1, 8, 40, 30), KeysByLogistic(4, 1, 3, Fraction(3, 4), 12)
    assert weighed(UNITS, logistic) == [2, 2, 2, 2, 1]
    assert weighed(UNITS, gaussian) == [8 + 4, 5 + 4, 5 + 4, 4 + 5, 5]
    assert weighed([], gaussian) == [0] * 5 and weighed([[], []], gaussian) == [0] * 5


@pytest.mark.parametrize("most", [1, 2, 3])
def test_where_it_has_more_its_own_coins_choose(most: int) -> None:
    """No unit weighs more than the event says, and each of its keys is chosen as often as any other."""
    event, runs = KeysByGaussian(most, 1, 8, 40, 30), 2000
    weight = math.isqrt(64 // most)
    seen = np.zeros(5)
    for _ in range(runs):
        alone = np.array(weighed([[0, 1, 2, 3, 4, 4, 4]], event))
        assert sorted(alone[alone > 0]) == [weight] * most and (alone**2).sum() <= 64
        seen += alone > 0
    chances = [min(binom.cdf(k, runs, most / 5), binom.sf(k - 1, runs, most / 5)) for k in seen]
    assert min(chances) > FALSE_ALARM
    assert weighed([[2, 2, 2, 2]], event) == [0, 0, 8, 0, 0]


def test_every_unit_is_covered_and_a_twin_that_counts_rows_is_not() -> None:
    """Whatever a unit holds, beside others that weigh 20 on each key."""
    event = KeysByGaussian(3, 1, 8, 40, 30)
    rho, delta = float(value(event, "zcdp")), float(value(event, "failure"))
    held = [[0, 0, 0], [0, 1, 2], [3, 4], [9, 9], [2, 2, 2, 2], [4, 3, 2]]

    def worst(mine: Callable[[list[int]], list[int]]) -> float:
        laws = [law([20 + weight for weight in mine(unit)], event) for unit in held]
        return max(approximate_zcdp(a, b, delta) for a in laws for b in laws)

    assert worst(lambda unit: weighed([unit], event)) <= rho * (1 + 1e-9)
    assert worst(lambda unit: [8 * unit.count(key) for key in range(5)]) > rho


def test_rows_of_one_owner_are_covered() -> None:
    for event in (KeysByGaussian(1, 3, 1, 9, 14), KeysByLogistic(1, 3, 4, Fraction(1, 2), 16)):
        rho, delta = float(value(event, "zcdp")), float(value(event, "failure"))
        least = getattr(event, "least", 1)
        for parts in ((3,), (2, 1), (1, 1, 1)):
            alone = [least - 1 + part for part in parts]
            assert approximate_zcdp(law(alone, event), law([least - 1] * len(parts), event), delta) <= rho
            moved, back = [9 + part for part in parts] + [9], [9] * len(parts) + [12]
            assert approximate_zcdp(law(moved, event), law(back, event), delta) <= rho * (1 + 1e-9)


@pytest.mark.parametrize("event", [GAUSSIAN, LOGISTIC])
def test_it_shows_with_these_chances_and_the_test_sees_a_tenth(
    event: KeysByGaussian | KeysByLogistic,
) -> None:
    counts, runs = np.array([0, 2, 6, 11, 12, 14]), 3000
    seen = np.zeros(len(counts), dtype=int)
    for _ in range(runs):
        seen[shown_keys(counts, event)] += 1
    for k, p in zip(seen, law(counts.tolist(), event), strict=True):
        tails = binom.cdf(k, runs, p), binom.sf(k - 1, runs, p)
        assert min(tails) > FALSE_ALARM
    off = law((counts + 1).tolist(), event)
    assert (
        min(min(binom.cdf(k, runs, p), binom.sf(k - 1, runs, p)) for k, p in zip(seen, off, strict=True))
        < FALSE_ALARM
    )


def test_threat_13_a_key_of_one_unit_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain GROUP BY, the control, shows it always; and so it is caught."""
    event = KeysByGaussian(1, 1, 1, 4, 7)
    delta, runs = float(value(event, "failure")), 4000

    def caught() -> bool:
        shown = sum(len(shown_keys(np.array([1]), event)) for _ in range(runs))
        return bool(binom.sf(shown - 1, runs, delta) < FALSE_ALARM)

    assert 0.001 < delta < 0.01 and not caught()
    monkeypatch.setattr(module, "add_gaussian", lambda weights, variance, bits: weights + event.threshold)
    assert caught()
