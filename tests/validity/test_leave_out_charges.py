"""Each charge of the leave-out meter against its own definition, by enumeration of small tables; with twins that break.

A (p)-step: a reference law of mass at most 1 on the rows that stay, whose logarithm falls short of the true one by at
most the charge, on average over which rows stay.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from holdfast.validity.leave_out import kappa
from holdfast.validity.leave_out_charges import (
    comparison_charge,
    gaussian_charge,
    groups_radius_squared,
    information_of,
    quantile_charge,
    rare_charge,
    selection_charge,
    tilted_share,
)

SIZES = [(n, m) for n in (3, 4, 5, 8) for m in range(1, n)]


def stays(n: int, m: int, yes: int) -> Iterator[tuple[float, float]]:
    """(share of yes among n - m rows that stay, its chance), `yes` of n rows saying yes."""
    for kept in range(max(0, yes - m), min(yes, n - m) + 1):
        yield kept / (n - m), math.comb(yes, kept) * math.comb(n - yes, n - m - kept) / math.comb(n, n - m)


def shortfall(
    n: int, m: int, yes: int, reference: Callable[[float], float], truth: Callable[[float], float]
) -> float:
    """ln law on all rows - E_J ln reference on those that stay."""
    return truth(yes / n) - sum(chance * reference(share) for share, chance in stays(n, m, yes))


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_a_gaussian_answer_costs_its_flat_charge_at_most(n: int, m: int) -> None:
    sigma = 0.4
    for yes, answer in itertools.product(range(n + 1), (-0.5, 0.0, 0.37, 1.2)):

        def log(share: float, a: float = answer) -> float:
            return -((a - share) ** 2) / (2 * sigma**2)

        assert shortfall(n, m, yes, log, log) <= gaussian_charge(n, m, sigma) + 1e-12


@pytest.mark.parametrize(("n", "m"), [(n, m) for n, m in SIZES if m <= n - 2])
def test_a_rare_answer_costs_what_is_read_off_it(n: int, m: int) -> None:
    k = kappa(n, m)
    if 2 * k >= 1:
        assert rare_charge(n, m, 0.5, 0.1) == math.inf
        return
    for sigma in (0.2, 1.0):
        more = k / (1 - 2 * k)
        constant = math.log(1 - 2 * k) / 2 - k * k / (2 * sigma**2 * (1 - 2 * k))

        def log(share: float, a: float, s: float = sigma, c: float = constant, w: float = more) -> float:
            moved = (w * (share - share**2) - k * (a - a * a)) / s**2
            return -((a - share) ** 2) / (2 * s**2) - math.log(s * math.sqrt(2 * math.pi)) + moved + c

        line = np.linspace(-12 * sigma - 12, 12 * sigma + 13, 60_001)
        for share in (0.0, 0.3, 1.0):
            mass = np.exp([log(share, a) for a in line.tolist()[::20]]).sum() * (line[20] - line[0])
            assert mass <= 1 + 1e-6
        for yes, answer in itertools.product(range(n + 1), (-0.3, 0.0, 0.1, 0.5, 0.9, 1.4)):

            def law(share: float, a: float = answer, s: float = sigma) -> float:
                return -((a - share) ** 2) / (2 * s**2) - math.log(s * math.sqrt(2 * math.pi))

            lost = shortfall(n, m, yes, lambda x, a=answer: log(x, a), law)
            assert lost <= rare_charge(n, m, sigma, answer) + 1e-9
    assert rare_charge(1000, 100, 0.1, 0.01) < gaussian_charge(1000, 100, 0.1) / 10


@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("rate", [0.5, 3.0, 20.0])
def test_lemma_e_and_its_twin_without_the_one(n: int, m: int, rate: float) -> None:
    theta = comparison_charge(n, m, rate)
    for yes in range(n + 1):
        mean = sum(chance * math.exp(rate * (share - yes / n)) for share, chance in stays(n, m, yes))
        assert math.log(mean) <= theta + 1e-12


def test_a_smaller_share_breaks_lemma_e() -> None:
    broken = 0
    for (n, m), rate in itertools.product(SIZES, (0.5, 3.0)):
        theta = rate**2 * (tilted_share(n, m) - 1) / (8 * (n - m) ** 2)
        for yes in range(n + 1):
            mean = sum(chance * math.exp(rate * (share - yes / n)) for share, chance in stays(n, m, yes))
            broken += math.log(mean) > theta + 1e-9
    assert broken > 10


@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("rate", [1.0, 8.0])
def test_a_quiet_comparison_is_free_and_an_alarm_costs_its_charge(n: int, m: int, rate: float) -> None:
    theta = comparison_charge(n, m, rate)
    for yes, threshold in itertools.product(range(n + 1), (0.0, 0.4, 1.0)):

        def odds(share: float, t: float = threshold) -> float:
            return math.exp(rate * (share - t))

        quiet = shortfall(
            n, m, yes, lambda x: -math.log1p(math.exp(-theta) * odds(x)), lambda x: -math.log1p(odds(x))
        )
        alarm = shortfall(
            n,
            m,
            yes,
            lambda x: math.log(math.exp(-theta) * odds(x) / (1 + math.exp(-theta) * odds(x))),
            lambda x: math.log(odds(x) / (1 + odds(x))),
        )
        assert quiet <= 1e-12 and alarm <= theta + 1e-12


def subsets(n: int, m: int) -> list[tuple[int, ...]]:
    return list(itertools.combinations(range(n), n - m))


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("rate", [1.0, 6.0])
def test_a_selection_costs_its_charge_at_most(m: int, rate: float) -> None:
    n = 4
    rows = np.array(list(itertools.product((0, 1), repeat=3)))
    theta = selection_charge(n, m, rate)
    for table in itertools.combinations_with_replacement(range(8), n):
        scores = rows[list(table)]

        def law(kept: tuple[int, ...] | list[int], values: np.ndarray = scores) -> np.ndarray:
            weights = np.exp(rate * values[list(kept)].mean(axis=0))
            return np.log(weights / weights.sum())

        references = np.mean([law(kept) for kept in subsets(n, m)], axis=0)
        assert np.all(law(list(range(n))) - references <= theta + 1e-12)


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize(("rate", "smoothing"), [(2.0, 2.0), (6.0, 3.0), (12.0, 12.0)])
def test_a_quantile_costs_its_charge_at_most(m: int, rate: float, smoothing: float) -> None:
    n, grid, rank = 4, np.arange(4), 0.5
    charge = quantile_charge(n, m, rate, smoothing)
    for table in itertools.combinations_with_replacement(range(4), n):
        values = np.array(table)

        def law(kept: tuple[int, ...] | list[int], rows: np.ndarray = values) -> np.ndarray:
            stay = rows[list(kept)]
            at_most = (stay[:, None] <= grid).mean(axis=0)
            below = (stay[:, None] < grid).mean(axis=0)
            soft = 1 + np.exp(smoothing * (rank - at_most)) + np.exp(smoothing * (below - rank))
            weights = soft ** (-rate / smoothing)
            return np.log(weights / weights.sum())

        references = np.mean([law(kept) for kept in subsets(n, m)], axis=0)
        assert np.all(law(list(range(n))) - references <= charge + 1e-12)
    assert quantile_charge(n, m, 1.0, 2.0) == math.inf


def test_vectors_are_charged_by_the_ball_that_holds_their_rows() -> None:
    assert information_of(0.25, 0.1) == pytest.approx(100)
    assert groups_radius_squared(1) == 0.25
    for groups, most in ((2, 1), (5, 1), (7, 3), (4, 4)):
        points = [np.array(bits) for bits in itertools.product((0, 1), repeat=groups) if sum(bits) <= most]
        centre = np.full(groups, min(most, groups / 2) / groups)
        furthest = max(float(((point - centre) ** 2).sum()) for point in points)
        assert furthest <= groups_radius_squared(groups, most) <= furthest * (1 + 1e-9)
