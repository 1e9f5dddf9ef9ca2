"""The fit to noisy marginals: exact where they agree, of the largest entropy, and weighed by their noise."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import holdfast.weights.marginal_fit as room
from holdfast.weights.junction_tree import junction_tree
from holdfast.weights.marginal_fit import NoisyMarginal, fit
from tests.weights.elsewhere import ELSEWHERE

ROWS = 1000


def noisy(axes: tuple[int, ...], chances: Any, variance: float = 1.0) -> NoisyMarginal:
    counts = ROWS * np.asarray(chances, dtype=np.float64)
    return NoisyMarginal(axes, counts, np.full(counts.shape, variance))


def table(seed: int, shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(seed).dirichlet(np.ones(int(np.prod(shape)))).reshape(shape)


def test_marginals_that_agree_are_met_with_the_largest_entropy() -> None:
    """Against iterative proportional fitting on all cells, which has that limit."""
    truth = table(0, (3, 4, 2))
    sets = [(0, 1), (1, 2), (0, 2)]
    measured = [
        noisy(axes, truth.sum(axis=next(i for i in range(3) if i not in axes)), 0.01) for axes in sets
    ]
    found = fit(junction_tree(truth.shape, sets), measured, ROWS, steps=4000)
    dense = np.full(truth.shape, 1 / truth.size)
    for _ in range(2000):
        for axes in sets:
            rest = next(i for i in range(3) if i not in axes)
            dense = dense * np.expand_dims(truth.sum(axis=rest) / dense.sum(axis=rest), rest)
    assert np.abs(found.model.marginals([(0, 1, 2)])[0, 1, 2] - dense).max() < 1e-3
    assert np.abs(dense - truth).max() > 0.01  # which the pairs do not give away
    pairs = [(0, 1), (1, 2)]
    tree = fit(junction_tree(truth.shape, pairs), measured[:2], ROWS, steps=4000).model
    distant = fit(junction_tree(truth.shape, pairs), measured[:2], ROWS, steps=4000, arrays=ELSEWHERE).model
    assert np.array_equal(*(one.marginals([(0, 1, 2)])[0, 1, 2] for one in (tree, distant)))  # on a device
    given = truth.sum(axis=2)[:, :, None] * truth.sum(axis=0)[None] / truth.sum(axis=(0, 2))[None, :, None]
    assert np.abs(tree.marginals([(0, 1, 2)])[0, 1, 2] - given).max() < 1e-3


def test_the_less_noisy_of_two_counts_for_more() -> None:
    def fitted(first: float, second: float) -> Any:
        measured = [noisy((0,), [0.2, 0.8], first), noisy((0,), [0.4, 0.6], second)]
        return fit(junction_tree([2], [(0,)]), measured, ROWS, steps=500).model.marginals([(0,)])[0,][0]

    assert fitted(1.0, 1.0) == pytest.approx(0.3, abs=1e-4)
    assert fitted(1.0, 3.0) == pytest.approx(0.25, abs=1e-4)
    assert abs(fitted(1.0, 3.0) - 0.3) > 0.04  # what a twin without weights has


@pytest.mark.parametrize("even", [1.0, 0.01])
def test_it_is_the_least_of_what_it_says(monkeypatch: pytest.MonkeyPatch, even: float) -> None:
    """Against the problem itself over all cells: at its least its slope is the same in every cell."""
    monkeypatch.setattr(room, "EVEN", even)
    draw, truth, sets = np.random.default_rng(3), table(3, (3, 4, 2)), [(0, 1), (1, 2), (0,)]
    rests = [tuple(axis for axis in range(3) if axis not in axes) for axes in sets]
    measured = []
    for axes, rest in zip(sets, rests, strict=True):
        chances = truth.sum(axis=rest)
        measured.append(noisy(axes, chances + 0.02 * draw.standard_normal(chances.shape), 400.0))
    found = fit(junction_tree(truth.shape, sets), measured, ROWS, steps=500).model
    p = found.marginals([(0, 1, 2)])[0, 1, 2]

    def spread(entropy: float) -> float:
        slope = entropy * ROWS * np.log(p)
        for one, rest in zip(measured, rests, strict=True):
            off = ROWS * (ROWS * p.sum(axis=rest) - one.counts) / one.variance
            slope = slope + np.expand_dims(off, rest)
        return float(np.ptp(slope)) / ROWS

    assert spread(even) < 1e-3
    assert spread(2 * even) > 1e-2  # a twin that says another weight


def test_counts_below_nothing_and_a_wrong_total_are_made_a_distribution() -> None:
    measured = [noisy((0,), [-0.1, 0.5, 0.9])]
    found = fit(junction_tree([3], [(0,)]), measured, ROWS, steps=2000).model.marginals([(0,)])[0,]
    assert found.sum() == pytest.approx(1.0)
    assert found == pytest.approx([0.0, 0.3, 0.7], abs=2e-3)  # the nearest point of the simplex


def test_it_goes_on_from_factors_and_tells_how_far_it_is() -> None:
    truth, told = table(1, (4, 5)), []
    measured = [noisy((0, 1), truth)]
    tree = junction_tree([4, 5], [(0, 1)])
    first = fit(tree, measured, ROWS, steps=5, progress=lambda done, of: told.append((done, of)))
    again = fit(tree, measured, ROWS, start=first.factors, steps=5)
    assert told == [(i, 5) for i in range(5)]
    assert again.error < first.error < fit(tree, measured, ROWS, steps=0).error


@pytest.mark.parametrize("sets", [[(0, 1), (1, 2), (0, 2)], [(0, 1, 2), (1, 2, 3)]])
def test_a_fit_needs_the_memory_that_was_stated_and_not_a_tenth_more(sets: list[tuple[int, ...]]) -> None:
    shape = (64, 32, 64, 64)
    measured = [noisy(axes, table(2, tuple(shape[axis] for axis in axes))) for axes in sets]
    tree = junction_tree(shape, sets)
    assert tree.largest == 64 * 32 * 64
    fit(tree, measured, ROWS, steps=1)
    tracemalloc.start()
    fit(tree, measured, ROWS, steps=12)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.7 * tree.memory(sets) < peak < 1.1 * tree.memory(sets)
