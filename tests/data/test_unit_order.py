"""Units in the order of their keys, block by block, against a search in all of them at once."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.data import unit_order
from holdfast.data.unit_order import Beginnings, Keys, Places, UnitKeys, changes

NUMBERS = st.lists(st.integers(0, 40), max_size=30)


def keys(numbers: list[int]) -> Keys:
    halves = np.array([[n // 7 * 2**40, n * 256] for n in numbers], dtype=">u8").reshape(-1, 2)
    found: Keys = halves.view("S16")[:, 0]
    return found


def cut(numbers: list[int], cuts: list[int]) -> list[list[int]]:
    """In blocks; some may be empty, and a key may lie in several."""
    places = [0, *sorted(each % (len(numbers) + 1) for each in cuts), len(numbers)]
    return [numbers[first:last] for first, last in itertools.pairwise(places)]


@pytest.mark.parametrize("on_disk", [True, False])
@given(units=NUMBERS, wanted=NUMBERS, cuts=st.lists(st.integers(0, 30), max_size=4))
def test_events_find_their_units_however_they_come_in_blocks(
    on_disk: bool, units: list[int], wanted: list[int], cuts: list[int]
) -> None:
    units, wanted = sorted(set(units)), sorted(wanted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unit_order, "BLOCK_ROWS", 3)
        with UnitKeys(Path(tempfile.gettempdir()) if on_disk else None) as known:
            for part in cut(units, cuts):
                known.add(keys(part))
            assert len(known) == len(units)
            assert b"".join(part.tobytes() for part in known.parts()) == keys(units).tobytes()
            first, second = Places(known), Places(known)
            owners: list[int] = []
            for part in cut(wanted, cuts):
                place, there = first.of(keys(part))
                assert there.tolist() == [number in units for number in part]
                assert [units[at] for at in place[there]] == [n for n in part if n in units]
                assert second.of(keys(part))[1].tolist() == there.tolist()
                owners += place[there].tolist()
        begin = Beginnings()
        blocks = [np.array(part, np.int64) for part in cut(owners, cuts) if part]
        told = [each for block in blocks for each in begin.of(block)] + list(begin.rest(len(units)))
        assert max(map(len, told)) <= 3
        counts = np.bincount(np.array(owners, np.int64), minlength=len(units))
        assert np.concatenate(told).tolist() == [0, *np.cumsum(counts)]


def test_a_key_begins_anew_only_where_the_last_block_ended_with_another() -> None:
    assert changes(keys([1, 1, 2])).tolist() == [True, False, True]
    assert changes(keys([1, 1, 2]), keys([1])).tolist() == [False, False, True]
    assert changes(keys([]), keys([1])).tolist() == []
