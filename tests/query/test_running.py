"""The square-root factorisation on whole numbers: what it tells, how far a row moves it, how long its weights are."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from holdfast.query.running import FINENESS, strategy

SIZES = (1, 2, 3, 7, 16, 33)


def columns(size: int) -> np.ndarray:
    """What a row of each group adds to the totals that are told."""
    return np.stack([strategy(size).encoded(row) for row in np.eye(size, dtype=np.int64)])


@pytest.mark.parametrize("size", SIZES)
def test_the_running_totals_come_back(size: int) -> None:
    totals = np.random.default_rng(size).integers(-(10**9), 10**9, 3 * size)
    found, slack = strategy(size).decoded(strategy(size).encoded(totals))
    wrong = np.abs(found - np.cumsum(totals.reshape(3, size), axis=1)).max()
    assert wrong <= slack < 1.0


@pytest.mark.parametrize("size", SIZES)
def test_the_distances_are_those_of_every_pair_of_groups(size: int) -> None:
    """Exactly. The twin that looks at neighbouring groups only is too near."""
    added, made = columns(size), strategy(size)
    apart = [int(((one - other) ** 2).sum()) for one in added for other in added]
    assert made.apart == max(apart)
    assert made.longest == int((added**2).sum(axis=1).max())
    if size > 2:
        assert max(int(((a - b) ** 2).sum()) for a, b in itertools.pairwise(added)) < made.apart


@pytest.mark.parametrize("size", SIZES)
def test_the_weights_are_those_of_the_inverse(size: int) -> None:
    """A total of e groups, less a rank of all; the twin forgets the last total."""
    made = strategy(size)
    exact = np.tril(np.ones((size, size))) @ np.linalg.inv(columns(size).T)
    lengths = (exact**2).sum(axis=1)
    assert made.norm(size) == pytest.approx(lengths[-1])
    assert all(made.norm(e + 1) >= lengths[e] * (1 - 1e-9) for e in range(size))
    for rank in (0.01, 0.5, 0.9):
        worst = ((exact - rank * exact[-1]) ** 2).sum(axis=1).max()
        assert made.rank_norm(rank) == pytest.approx(worst)
        assert size < 7 or rank < 0.9 or made.norm(size) < worst


@pytest.mark.parametrize("size", [2, 7, 30, 365, 4096])
def test_it_is_narrower_than_sums_of_noisy_groups_and_than_a_tree(size: int) -> None:
    """By the squared distance times the longest weights; of a tree with a root for all, levels times levels."""
    made, levels = strategy(size), math.ceil(math.log2(size)) + 1
    own = made.apart * made.norm(size)
    assert own < 2 * size
    assert own < 2 * levels * max(1, levels - 1)
    assert made.apart < 2 * made.longest and made.longest < FINENESS**2 * (1.1 + math.log(size) / math.pi)
