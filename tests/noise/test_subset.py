"""Row ids are uniform, with and without replacement."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations, product
from math import perm

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import statistics
from oracles.choice_tree import ChoiceBits, walk

from holdfast.errors import InputError
from holdfast.noise.bits import ReplayedBits
from holdfast.noise.subset import _last_of_each, _shuffled, with_replacement, without_replacement


def test_with_replacement_walked() -> None:
    walked = walk(lambda bits: tuple(with_replacement(5, 2, bits).tolist()))
    assert walked.leftover == 0
    assert walked.probabilities == {pair: Fraction(1, 25) for pair in product(range(5), repeat=2)}


@pytest.mark.parametrize(("n", "count"), [(1, 0), (2, 1), (4, 2), (5, 2), (6, 3), (7, 3)])
def test_every_ordered_selection_is_equally_likely(n: int, count: int) -> None:
    walked = walk(lambda bits: tuple(without_replacement(n, count, bits).tolist()), floor=1e-5)
    assert walked.leftover < 0.05
    assert set(walked.probabilities) == set(permutations(range(n), count))
    assert len(set(walked.probabilities.values())) == 1, "all orders must have been found equally often"


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_every_shuffle_is_equally_likely(n: int) -> None:
    walked = walk(lambda bits: tuple(_shuffled(n, bits, width=2).tolist()), floor=2**-9)
    assert set(walked.probabilities) == set(permutations(range(n)))
    assert len(set(walked.probabilities.values())) == 1


def test_a_shuffle_that_keeps_its_ties_is_caught() -> None:
    def careless(bits: ChoiceBits) -> tuple[int, ...]:
        return tuple(np.argsort(bits.chunks(3, 3), kind="stable").tolist())

    assert len(set(walk(careless).probabilities.values())) > 1


@given(st.lists(st.integers(0, 9) | st.integers(0, 2**62), min_size=1, max_size=60))
def test_each_value_stays_once_at_its_last_place(ids: list[int]) -> None:
    expected = [v for i, v in enumerate(ids) if v not in ids[i + 1 :]]
    assert _last_of_each(np.array(ids, dtype=np.int64)).tolist() == expected


@pytest.mark.parametrize(
    ("n", "count"), [(7, 3), (7, 7), (7, 5), (1, 1), (10, 5), (10**6, 1000), (10**18, 1000), (3000, 1500)]
)
def test_ids_are_distinct_and_in_range(n: int, count: int) -> None:
    ids = without_replacement(n, count)
    assert ids.dtype == np.int64
    assert ids.shape == (count,)
    assert len(set(ids.tolist())) == count
    assert 0 <= ids.min() <= ids.max() < n


@pytest.mark.parametrize(("n", "count"), [(7, 3), (7, 6), (7, 7)])
def test_first_and_last_places_are_uniform(n: int, count: int) -> None:
    bits = ReplayedBits(9)
    drawn = np.array([without_replacement(n, count, bits) for _ in range(5000)])
    for place in (0, count - 1):
        assert statistics.uniform(np.bincount(drawn[:, place], minlength=n)) > statistics.FALSE_ALARM
    assert statistics.uniform(np.bincount(np.sort(drawn)[:, 0], minlength=n)) < statistics.FALSE_ALARM


def test_subsets_are_uniform() -> None:
    bits = ReplayedBits(10)
    counts = Counter(frozenset(without_replacement(6, 3, bits).tolist()) for _ in range(20_000))
    assert len(counts) == perm(6, 3) // 6
    assert statistics.uniform(list(counts.values())) > statistics.FALSE_ALARM


def test_n_that_is_no_power_of_two() -> None:
    counts = np.bincount(with_replacement(1000, 200_000, ReplayedBits(11)), minlength=1000)
    assert counts.size == 1000
    assert statistics.uniform(counts) > statistics.FALSE_ALARM
    assert with_replacement(1, 5).tolist() == [0] * 5


def test_bad_requests_are_refused() -> None:
    with pytest.raises(InputError, match="expected an integer from 0 to 4 for count, got 5"):
        without_replacement(4, 5)
    for call in (with_replacement, without_replacement):
        for n in (0, -1, 2.0, True, None, 2**63 + 1):
            with pytest.raises(InputError, match="for n,"):
                call(n, 1)  # type: ignore[arg-type]
        for count in (-1, 1.0, False):
            with pytest.raises(InputError, match="count"):
                call(4, count)  # type: ignore[arg-type]
