"""Rows whose values are exchanged until their pairs are as expected: what changes, what does not, and the twins."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from holdfast.noise.bits import ReplayedBits
from holdfast.weights import settled_rows
from holdfast.weights.settled_rows import settled

SIZES = (12, 7, 9)
PAIRS = list(combinations(range(3), 2))


def rows(count: int, seed: int) -> Any:
    """Three columns; the second hangs on the first and the third on the second."""
    draw = np.random.default_rng(seed)
    first = draw.integers(0, SIZES[0], count)
    second = np.where(draw.random(count) < 0.6, first % SIZES[1], draw.integers(0, SIZES[1], count))
    third = np.where(draw.random(count) < 0.5, second + 1, draw.integers(0, SIZES[2], count))
    return [first, second, third]


def counted(codes: Any, axes: tuple[int, int]) -> Any:
    place = codes[axes[0]] * SIZES[axes[1]] + codes[axes[1]]
    return np.bincount(place, minlength=SIZES[axes[0]] * SIZES[axes[1]]).reshape(SIZES[axes[0]], -1)


def chances() -> Any:
    many = rows(400_000, 0)
    return {axes: counted(many, axes) / 400_000 for axes in PAIRS}


def away(codes: Any, expected: Any) -> float:
    count = len(codes[0])
    return float(sum(np.abs(counted(codes, axes) / count - own).sum() / 2 for axes, own in expected.items()))


def test_pairs_come_nearer_and_no_column_changes() -> None:
    before, expected = rows(4001, 1), chances()
    after = settled(before, expected, ReplayedBits(1))
    assert away(after, expected) < 0.5 * away(before, expected)
    for old, new in zip(before, after, strict=True):
        assert (np.sort(old) == np.sort(new)).all() and (old != new).any()


def test_a_pair_that_the_rows_have_stays() -> None:
    """Strong pairs do not pay for the others: rows that have every pair keep them."""
    many, expected = rows(40_000, 0), chances()
    after = settled(many, expected, ReplayedBits(1))
    assert all(away(after, {axes: own}) < 0.01 for axes, own in expected.items())


def test_a_pair_that_the_rows_do_not_have_is_brought_in() -> None:
    draw = np.random.default_rng(2)
    alone = [draw.permutation(column) for column in rows(4000, 3)]
    after = settled(alone, chances(), ReplayedBits(1))
    assert away(after, chances()) < 0.5 * away(alone, chances())


def test_inside_parts_the_parts_stay() -> None:
    before, expected = rows(4000, 1), chances()
    parts = [np.arange(size) // 3 for size in SIZES]
    after = settled(before, expected, ReplayedBits(1), parts)
    assert away(after, expected) < 0.8 * away(before, expected)
    assert any((old != new).any() for old, new in zip(before, after, strict=True))
    assert all((own[old] == own[new]).all() for own, old, new in zip(parts, before, after, strict=True))


def test_what_is_kept_of_the_counts_is_what_they_are() -> None:
    """After every exchange, by counting again; a row that leaves and never comes is noticed."""
    codes, expected = rows(500, 4), chances()
    held = settled_rows._Held(codes, expected)
    order = np.random.default_rng(5).permutation(500)
    for axis in (0, 1, 2, 1):
        held.exchange(axis, order[:200], order[200:400])
        for axes, own in expected.items():
            recount = (counted(codes, axes) - 500 * own).ravel()
            assert held._away[axes] == pytest.approx(recount, abs=1e-9)


def test_what_an_exchange_is_said_to_gain_is_what_it_gains() -> None:
    """One by one: it is made where the weighed squares fall, and not where they grow."""

    def squares(codes: Any) -> float:
        return float(
            sum(
                ((counted(codes, axes) - 60 * own) ** 2 / np.sqrt(60 * own + 1)).sum()
                for axes, own in expected.items()
            )
        )

    expected, made = chances(), 0
    codes = rows(60, 6)
    for one, other in combinations(range(20), 2):
        for axis in range(3):
            held, before = settled_rows._Held(codes, expected), squares(codes)
            swapped = [own.copy() for own in codes]
            swapped[axis][[one, other]] = swapped[axis][[other, one]]
            falls, old = squares(swapped) < before - 1e-9, [own.copy() for own in codes]
            if codes[axis][one] != codes[axis][other]:
                held.exchange(axis, np.array([one]), np.array([other]))
            changed = any((a != b).any() for a, b in zip(old, codes, strict=True))
            assert changed == falls
            made += changed
    assert made > 5


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_few_rows_are_rows(count: int) -> None:
    before = rows(count, 1)
    after = settled(before, chances(), ReplayedBits(1))
    assert [sorted(own) for own in before] == [sorted(own) for own in after]


def test_too_many_cells_leave_the_rows_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settled_rows, "MOST_CELLS", 10)
    before = rows(400, 1)
    after = settled(before, chances(), ReplayedBits(1))
    assert all((old == new).all() for old, new in zip(before, after, strict=True))
