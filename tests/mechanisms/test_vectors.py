"""The lecture's Laplace facts: sensitivities, sizes of noise, groups, composition; and repairs at no cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from holdfast.errors import InputError
from holdfast.mechanisms.laplace import laplace
from holdfast.mechanisms.magnitude import mean_magnitude, mean_worst, tail
from holdfast.mechanisms.repair import clamp, consistent_tree, non_negative, whole_with_total, with_total
from holdfast.mechanisms.vectors import (
    averages,
    averages_sensitivity,
    histogram,
    histogram_sensitivity,
    proportion,
)
from holdfast.noise.bits import ReplayedBits
from holdfast.privacy import basic_composition, group

SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(40)]


def mass(x: int, scale: Fraction) -> float:
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** abs(x)


def tables(rows: int, cells: int) -> list[tuple[int, ...]]:
    return list(product(range(cells), repeat=rows))


def moved(statistic: Callable[[tuple[int, ...]], np.ndarray], cells: int, *, remove: bool = False) -> int:
    """The largest L1 change over all tables of three rows and all their neighbours."""
    changes = []
    for table in tables(3, cells):
        if remove:
            neighbours = [table[:i] + table[i + 1 :] for i in range(3)]
        else:
            neighbours = [(*table[:i], v, *table[i + 1 :]) for i in range(3) for v in range(cells)]
        changes += [int(np.abs(statistic(table) - statistic(other)).sum()) for other in neighbours]
    return max(changes)


def test_sensitivities_are_what_all_small_tables_say() -> None:
    counts = lambda table: np.bincount(table, minlength=4)  # noqa: E731
    assert moved(counts, 4) == histogram_sensitivity() == 2
    assert moved(counts, 4, remove=True) == histogram_sensitivity("add-remove") == 1
    # Three queries on a value v of 0..3: v itself, its low bit times 3, and whether it is 3, times 3.
    answers = lambda table: np.array([[v, 3 * (v % 2), 3 * (v == 3)] for v in table]).sum(axis=0)  # noqa: E731
    assert moved(answers, 4) == averages_sensitivity(3, levels=3) == 9
    assert averages_sensitivity(5) == 5


def test_the_noise_is_calibrated_to_the_sensitivity(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.mechanisms import vectors

    asked: list[tuple[float, float]] = []

    def spy(values: object, *, sensitivity: float, epsilon: float, bits: object) -> object:
        asked.append((sensitivity, epsilon))
        return values

    monkeypatch.setattr(vectors, "laplace", spy)
    assert proportion(30, 120, epsilon=0.5) == 0.25
    assert histogram([1, 2, 3], epsilon=0.5).tolist() == [1, 2, 3]
    histogram([1, 2, 3], epsilon=0.5, neighbours="add-remove")
    assert averages([10, 20], 10, epsilon=0.5, levels=4).tolist() == [0.25, 0.5]
    assert asked == [(1, 0.5), (2, 0.5), (1, 0.5), (8, 0.5)]


@pytest.mark.parametrize("scale", SCALES)
def test_sizes_agree_with_sums_over_the_law(scale: Fraction) -> None:
    support = range(-int(60 * scale) - 60, int(60 * scale) + 61)
    assert mean_magnitude(scale) == pytest.approx(sum(abs(x) * mass(x, scale) for x in support), rel=1e-9)
    assert mean_magnitude(scale) <= scale, "the lecture's E|Z| = b"
    for t in (0, 1, 2, 5, int(3 * scale)):
        assert tail(scale, t) == pytest.approx(sum(mass(x, scale) for x in support if abs(x) >= t), rel=1e-9)
        assert tail(scale, t) <= math.exp(-t / scale) * 2 / (1 + math.exp(-1 / scale)) * (1 + 1e-9)
    assert tail(scale, 5) > math.exp(-5 / scale), "twin: the continuous tail is not a bound on the integers"


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("d", [1, 2, 30, 10_000])
def test_the_worst_coordinate_is_bounded_as_in_the_lecture(scale: Fraction, d: int) -> None:
    exact = sum(1 - (1 - tail(scale, h)) ** d for h in range(1, int(60 * scale * (1 + math.log(d))) + 60))
    assert exact <= mean_worst(scale, d) * (1 + 1e-9)
    assert mean_worst(scale, d) <= scale * (math.log(d) + 1) * (1 + 1e-9)
    assert d == 1 or mean_worst(scale, d) * 0.6 < exact, "the bound should not be far from the truth"


def test_mean_worst_never_exceeds_the_lecture_s_bound_anywhere() -> None:
    for b in np.geomspace(0.01, 1e6, 120):
        for d in (1, 2, 3, 7, 100, 12_345):
            assert mean_worst(float(b), d) <= b * (math.log(d) + 1) * (1 + 1e-9)


def test_noise_of_the_mechanism_has_these_sizes() -> None:
    noise = np.abs(laplace(np.zeros(200_000, dtype=int), epsilon=Fraction(1, 5), bits=ReplayedBits(2)))
    assert noise.mean() == pytest.approx(mean_magnitude(5), rel=0.02)
    assert (noise >= 15).mean() == pytest.approx(tail(5, 15), rel=0.1)
    worst = noise.reshape(-1, 100).max(axis=1).mean()
    assert 0.8 * mean_worst(5, 100) < worst < mean_worst(5, 100)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_group_privacy_is_exactly_size_times_epsilon(size: int) -> None:
    epsilon = Fraction(1, 2)
    worst = max(abs(math.log(mass(x, 1 / epsilon) / mass(x - size, 1 / epsilon))) for x in range(-40, 40))
    assert worst == pytest.approx(group(epsilon, size))
    assert size == 1 or worst > group(epsilon, 1) + 0.1, "twin: a group is not one row"


def test_adaptive_composition_adds_up_exactly() -> None:
    """The second question, and its scale, depend on the first answer; the joint law stays within the sum."""
    first, cheap, dear = Fraction(1, 2), Fraction(1, 4), Fraction(1, 3)

    def joint(count: int, other: int) -> dict[tuple[int, int], float]:
        out = {}
        for a in range(-30, 31):
            asked, epsilon = (count, cheap) if a > 0 else (other, dear)
            for b in range(-60, 61):
                out[a, b] = mass(a - count, 1 / first) * mass(b - asked, 1 / epsilon)
        return out

    here, there = joint(0, 0), joint(1, -1)
    worst = max(abs(math.log(here[o] / there[o])) for o in here)
    assert worst <= first + dear + 1e-9
    assert worst > max(first, dear) + 0.1, "twin: the larger of the two is not a bound"
    assert basic_composition(first, 3) == 1.5


def test_clamp_and_non_negative_come_no_farther_from_the_truth() -> None:
    rng = np.random.default_rng(0)
    truth, noisy = rng.uniform(0, 5, 1000), rng.normal(2, 5, 1000)
    assert np.all(np.abs(clamp(noisy, 0, 5) - truth) <= np.abs(noisy - truth))
    assert np.all(np.abs(non_negative(noisy) - truth) <= np.abs(noisy - truth))
    assert clamp(noisy, 0, 5).min() == 0
    assert clamp(noisy, 0, 5).max() == 5


def test_with_total_is_the_nearest_point_of_the_simplex() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        truth = rng.multinomial(30, rng.dirichlet(np.ones(6))).astype(float)
        noisy = truth + rng.normal(0, 8, 6)
        near = with_total(noisy, 30)
        assert near.sum() == pytest.approx(30)
        assert near.min() >= 0
        assert np.linalg.norm(near - truth) <= np.linalg.norm(noisy - truth) + 1e-9
        # No other point of the simplex is nearer: the first-order condition at its corners.
        for corner in 30 * np.eye(6):
            assert (noisy - near) @ (corner - near) <= 1e-7
        whole = whole_with_total(noisy, 30)
        assert whole.sum() == 30
        assert whole.min() >= 0
        assert np.abs(whole - near).max() <= 1 + 1e-9
    assert with_total([3.0, -1.0], 0).tolist() == [0, 0]


def test_consistent_tree_is_the_least_squares_fit() -> None:
    rng, height = np.random.default_rng(2), 4
    levels = [rng.normal(0, 3, 1 << depth) for depth in range(height)]
    leaves = 1 << (height - 1)
    rows = [
        [int(i * (leaves >> depth) <= leaf < (i + 1) * (leaves >> depth)) for leaf in range(leaves)]
        for depth in range(height)
        for i in range(1 << depth)
    ]
    design = np.array(rows, dtype=float)
    fit = design @ np.linalg.lstsq(design, np.concatenate(levels), rcond=None)[0]
    out = consistent_tree(levels)
    assert np.concatenate(out) == pytest.approx(fit)
    for parent, child in pairwise(out):
        assert child.reshape(-1, 2).sum(axis=1) == pytest.approx(parent)
    assert consistent_tree([[3.0]])[0].tolist() == [3.0]


@pytest.mark.parametrize(
    "refused",
    [
        lambda: histogram([1.5], epsilon=1.0),
        lambda: histogram(3, epsilon=1.0),
        lambda: histogram([], epsilon=1.0),
        lambda: histogram([1], epsilon=0),
        lambda: histogram([1], epsilon=math.nan),
        lambda: histogram([1], epsilon=1.0, neighbours="none"),
        lambda: proportion(1, 0, epsilon=1.0),
        lambda: proportion(True, 5, epsilon=1.0),
        lambda: averages([1], 5, epsilon=1.0, levels=0),
        lambda: averages_sensitivity(0),
        lambda: mean_magnitude(0),
        lambda: tail(1, -1),
        lambda: mean_worst(1, 0),
        lambda: clamp([1.0], 2, 1),
        lambda: clamp([math.nan], 0, 1),
        lambda: with_total([1.0], -1),
        lambda: with_total([1.0], math.nan),
        lambda: consistent_tree([[1.0], [1.0]]),
        lambda: consistent_tree([]),
    ],
)
def test_bad_parameters_are_refused(refused: Callable[[], object]) -> None:
    with pytest.raises(InputError):
        refused()
