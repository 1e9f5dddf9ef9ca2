"""Factored models against the sum over all cells: junction trees, chances, rows."""

from __future__ import annotations

import math
import tracemalloc
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from holdfast.noise.bits import ReplayedBits
from holdfast.weights import factored
from holdfast.weights.array_module import HOST, ArrayModule
from holdfast.weights.factored import Factored
from holdfast.weights.junction_tree import JunctionTree, junction_tree
from tests.weights.elsewhere import ELSEWHERE

Random = np.random.Generator


def drawn_sets(draw: Random, d: int) -> list[tuple[int, ...]]:
    sizes = draw.integers(1, min(d, 3) + 1, draw.integers(0, 7))
    return [tuple(sorted(draw.choice(d, size, replace=False).tolist())) for size in sizes]


def product(tree: JunctionTree, potentials: list[Any], arrays: ArrayModule = HOST) -> Factored:
    return Factored(tree, dict(zip(tree.cliques, map(arrays.send, potentials), strict=True)), arrays)


def dense(tree: JunctionTree, potentials: list[Any]) -> Any:
    total = np.zeros(tree.shape)
    for clique, potential in zip(tree.cliques, potentials, strict=True):
        total = total + potential.reshape([s if i in clique else 1 for i, s in enumerate(tree.shape)])
    return total


def is_junction_tree(tree: JunctionTree, sets: list[tuple[int, ...]]) -> bool:
    """Every set and column has a clique; each stands after its parent; what holds a column is connected."""
    holds = all(tree.holder(one) is not None for one in [*sets, *((i,) for i in range(len(tree.shape)))])
    after = all(parent < place for place, parent in enumerate(tree.parents)) and tree.parents[0] == -1
    met: set[int] = set()
    connected = True
    for clique, shared, parent in zip(tree.cliques, tree.separators, tree.parents, strict=True):
        above = set(tree.cliques[parent]) if parent >= 0 else set()
        connected &= set(shared) == set(clique) & above == set(clique) & met
        met |= set(clique)
    return holds and after and connected


def test_a_junction_tree_carries_every_set() -> None:
    draw = np.random.default_rng(0)
    for _ in range(200):
        d = int(draw.integers(1, 12))
        sets = drawn_sets(draw, d)
        assert is_junction_tree(junction_tree([2] * d, sets), sets)
    ring = [(0, 1), (1, 2), (2, 3), (0, 3)]
    tree = junction_tree([2, 3, 2, 3], ring)
    assert sorted(map(len, tree.cliques)) == [3, 3]  # one chord
    assert tree.cells == 2 * 2 * 3 * 2 and tree.largest == 12  # between the two short columns
    twin = JunctionTree((2,) * 4, ((0, 1), (1, 2), (2, 3), (0, 3)), (-1, 0, 1, 2), ((), (1,), (2,), (3,)))
    assert not is_junction_tree(twin, ring)  # without the chord


def test_every_chance_is_that_of_all_cells() -> None:
    draw = np.random.default_rng(1)
    for _ in range(60):
        d = int(draw.integers(1, 7))
        tree = junction_tree(draw.integers(1, 5, d).tolist(), drawn_sets(draw, d))
        potentials = [draw.normal(0, 3, [tree.shape[axis] for axis in clique]) for clique in tree.cliques]
        whole = np.exp(dense(tree, potentials))
        arrays = ELSEWHERE if d % 2 else HOST
        model = product(tree, potentials, arrays)
        assert model.log_total == pytest.approx(math.log(whole.sum()), abs=1e-9)
        wanted = [axes for ways in range(1, 5) for axes in combinations(range(d), ways)]
        found = model.marginals(wanted)
        for axes in wanted:
            rest = tuple(axis for axis in range(d) if axis not in axes)
            assert np.allclose(found[axes], whole.sum(axis=rest) / whole.sum(), atol=1e-12)


def test_potentials_that_no_exponential_holds() -> None:
    """In log space: where every weight of a line underflows beside others, its own chances are still right."""
    tree = junction_tree([2, 2, 2], [(0, 1), (1, 2)])
    potentials = [np.array([[0.0, -2000.0], [-1.0, -2001.0]]), np.array([[-900.0, -901.0], [0.0, 1.0]])]
    if tree.cliques[0] != (0, 1):
        potentials = [potentials[1], potentials[0]]
    model = product(tree, potentials)
    whole = dense(tree, potentials)
    whole = np.exp(whole - whole.max())
    assert np.allclose(model.marginals([(0, 2)])[0, 2], whole.sum(axis=1) / whole.sum(), atol=1e-12)
    assert np.allclose(model.marginals([(0,)])[0,], [1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1))])
    with np.errstate(under="ignore"):
        assert (
            np.exp(dense(tree, potentials)[:, 1]).max() == 0.0
        )  # what a twin outside of log space would divide by


def test_a_message_that_is_forgotten_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(2)
    tree = junction_tree([3, 3, 3], [(0, 1), (1, 2)])
    potentials = [draw.normal(0, 1, (3, 3)) for _ in tree.cliques]
    right = product(tree, potentials).marginals([(0, 2)])[0, 2]
    monkeypatch.setattr(factored, "spread", lambda part, axes, clique: np.zeros((1, 1)))
    assert not np.allclose(product(tree, potentials).marginals([(0,)])[0,], right.sum(axis=1))


def test_rows_have_the_models_law_as_evenly_as_whole_rows_can() -> None:
    draw = np.random.default_rng(3)
    tree = junction_tree([3, 4, 2, 5], [(0, 1), (1, 2), (2, 3)])
    potentials = [draw.normal(0, 1, [tree.shape[a] for a in clique]) for clique in tree.cliques]
    model = product(tree, potentials)
    rows = model.sample(20_000, ReplayedBits(1))
    assert np.array_equal(product(tree, potentials, ELSEWHERE).sample(20_000, ReplayedBits(1)), rows)
    first = tree.cliques[0]
    counts = np.zeros([tree.shape[axis] for axis in first])
    np.add.at(counts, tuple(rows[:, axis] for axis in first), 1)
    assert np.abs(counts - 20_000 * model.marginals([first])[first]).max() < 1 + 1e-6
    for axes in combinations(range(4), 3):
        counts = np.zeros([tree.shape[axis] for axis in axes])
        np.add.at(counts, tuple(rows[:, axis] for axis in axes), 1)
        chances = model.marginals([axes])[axes]
        assert np.abs(counts / 20_000 - chances).max() < 6.5 * np.sqrt(chances.max() / 20_000)
    halves = [rows[:10_000, 1].mean(), rows[10_000:, 1].mean()]
    assert abs(halves[0] - halves[1]) < 0.1  # in no order
    assert model.sample(0, ReplayedBits(1)).shape == (0, 4)


def test_more_columns_than_there_are_letters() -> None:
    """A chain of 70 columns, against the product of its steps; NumPy names 52 axes."""
    draw, d = np.random.default_rng(4), 70
    chain = [(i, i + 1) for i in range(d - 1)]
    potentials = {axes: draw.normal(0, 0.2, (3, 3)) + 2 * np.eye(3) for axes in chain}
    model = Factored(junction_tree([3] * d, chain), potentials)
    ways = [
        np.linalg.multi_dot([np.exp(potentials[axes]) for axes in part]) for part in (chain[:60], chain[60:])
    ]
    after = ways[1].sum(axis=1)
    first_last, three = ways[0] @ ways[1], ways[0][:, :, None] * ways[1][None]
    found = model.marginals([(0, 60), (0, 69), (0, 60, 69)])
    for axes, truth in (((0, 60), ways[0] * after), ((0, 69), first_last), ((0, 60, 69), three)):
        assert np.allclose(found[axes], truth / truth.sum(), atol=1e-12)


def far_apart(size: int, memory: int) -> tuple[JunctionTree, Factored]:
    """Ten columns in as many pairs as a model of so many bytes carries; most of the others have no clique."""
    pairs = list(combinations(range(10), 2))
    np.random.default_rng(4).shuffle(pairs)
    sets: list[tuple[int, ...]] = [(axis, axis + 1) for axis in range(9)]
    for axes in map(tuple, pairs):
        if axes not in sets and junction_tree([size] * 10, [*sets, axes]).memory() <= memory:
            sets.append(axes)
    tree = junction_tree([size] * 10, sets)
    draw = np.random.default_rng(5)
    return tree, Factored(tree, {axes: draw.normal(0, 1, (size, size)) for axes in sets})


@pytest.mark.parametrize(("size", "memory"), [(12, 2**21), (33, 2**25)])
def test_pairs_that_no_clique_has_keep_within_the_stated_memory(
    size: int, memory: int, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(factored, "_AT_ONCE", size**2)
    request.addfinalizer(tracemalloc.stop)
    tracemalloc.start()
    tree, model = far_apart(size, memory)
    held, stated = tracemalloc.get_traced_memory()[0], tree.memory()
    assert 7.9 * tree.cells < held < 0.9 * stated
    wanted = [axes for axes in combinations(range(10), 2) if tree.holder(axes) is None]

    def peak() -> int:
        tracemalloc.reset_peak()
        model.marginals(wanted)
        return tracemalloc.get_traced_memory()[1]

    assert len(wanted) > 20 and peak() < 1.1 * stated
    kept, plain = [], factored._carried  # a twin that keeps what was on its way, for other columns to come
    monkeypatch.setattr(factored, "_carried", lambda *way: kept.append(plain(*way)) or kept[-1])  # type: ignore[func-returns-value]
    assert peak() > 1.1 * stated
