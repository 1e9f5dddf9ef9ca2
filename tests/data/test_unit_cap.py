"""What is kept of a unit depends on that unit alone."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from holdfast.data.source import Block
from holdfast.data.unit_cap import Cap

KEY = ("k0", "k1")
NAMES = ("a", "f")
SECRET = bytes(range(16))
Row = tuple[int, int, float]
THREE = Cap(SECRET, "visits", 3)


def blocks_of(rows: list[Row], cuts: list[int]) -> Iterator[Block]:
    ordered = sorted(rows, key=lambda row: (row[0], row[1], np.isnan(row[2]), row[2]))
    arrays: dict[str, Any] = {
        "k0": np.zeros(len(rows), np.uint64),
        "k1": np.array([row[0] for row in ordered], np.uint64),
        "a": np.array([row[1] for row in ordered], np.uint8),
        "f": np.array([row[2] for row in ordered], np.float64),
    }
    for first, last in itertools.pairwise([0, *cuts, len(rows)]):
        yield {name: codes[first:last] for name, codes in arrays.items()}


def kept(rows: list[Row], cuts: list[int] | None = None, cap: Cap = THREE) -> list[Row]:
    found = []
    for block in cap.of(blocks_of(rows, cuts or []), KEY, NAMES):
        found += list(
            zip(
                block["k1"].tolist(),
                block["a"].tolist(),
                np.nan_to_num(block["f"], nan=-1).tolist(),
                strict=True,
            )
        )
    return found


def made(seed: int = 0) -> list[Row]:
    random = np.random.default_rng(seed)
    rows = [(int(u), int(a), float(f)) for u, a, f in random.integers(0, [9, 4, 3], (120, 3))]
    return [(u, a, np.nan if f == 2 else f) for u, a, f in rows]


def test_no_unit_keeps_more_than_its_bound_and_none_loses_below_it() -> None:
    rows = [*made(), (20, 1, 1.0), (21, 1, 1.0), (21, 1, 1.0)]
    owned = Counter(row[0] for row in rows)
    assert Counter(row[0] for row in kept(rows)) == {unit: min(many, 3) for unit, many in owned.items()}


@pytest.mark.parametrize("cuts", [[1], [60], list(range(1, 120)), list(range(7, 120, 7)), [0, 60, 60]])
def test_how_the_rows_come_in_blocks_changes_nothing(cuts: list[int]) -> None:
    assert kept(made(), cuts) == kept(made())


def test_changing_one_unit_changes_no_other() -> None:
    rows = made()
    for unit in range(9):
        others = [row for row in rows if row[0] != unit]
        for mine in ([], [(unit, 3, 1.0)] * 50, [(unit, 0, 0.0)]):
            found = [row for row in kept(others + mine) if row[0] != unit]
            assert found == [row for row in kept(rows) if row[0] != unit]


def test_copies_are_rows_of_their_own() -> None:
    """A unit with two kinds of rows, one of them often: each copy has the same chance to be kept."""
    often = Counter[int]()
    for secret in range(400):
        cap = Cap(secret.to_bytes(16, "big"), "visits", 1)
        often.update(row[1] for row in kept([(1, 0, 0.0)] * 9 + [(1, 1, 0.0)], cap=cap))
    assert 320 < often[0] < 395  # nine in ten; five standard deviations are thirty


def test_the_secret_the_table_and_the_bound_decide() -> None:
    rows = [(1, a, float(f)) for a in range(12) for f in range(3)]
    chosen = {
        tuple(kept(rows, cap=Cap(secret, table, 3))) for secret in (SECRET, bytes(16)) for table in "ab"
    }
    assert len(chosen) == 4
    assert set(kept(rows, cap=Cap(SECRET, "visits", 3))) < set(kept(rows, cap=Cap(SECRET, "visits", 9)))


class DependsOnOthers(Cap):
    """A broken twin: which rows are kept depends on where a unit comes in the file."""

    def hashes(self, units: Any, rows: Any, copies: Any) -> Any:
        return super().hashes(units, rows, np.arange(len(copies)))


class CountsNoCopies(Cap):
    """A broken twin: equal rows stand or fall together, and the first ones win."""

    def hashes(self, units: Any, rows: Any, copies: Any) -> Any:
        return super().hashes(units, rows, np.zeros_like(copies))


def test_the_twins_are_caught() -> None:
    rows = made()
    others = [row for row in rows if row[0] != 0]
    twin = DependsOnOthers(SECRET, "visits", 3)
    assert [r for r in kept(others, cap=twin) if r[0]] != [r for r in kept(rows, cap=twin) if r[0]]
    often = Counter[int]()
    for secret in range(400):
        alike = CountsNoCopies(secret.to_bytes(16, "big"), "visits", 1)
        often.update(row[1] for row in kept([(1, 0, 0.0)] * 9 + [(1, 1, 0.0)], cap=alike))
    assert not 320 < often[0] < 395
