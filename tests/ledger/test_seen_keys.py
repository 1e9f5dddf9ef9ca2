"""A key that comes twice is noticed, however far apart, in little memory."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pytest

from holdfast.ledger import seen_keys
from holdfast.ledger.seen_keys import SeenKeys


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_keys, "_RECENT", 64)


@pytest.mark.parametrize("first", [0, 1, 63, 64, 500, 998])
@pytest.mark.parametrize("again", [999, 1000, 1023])
def test_a_key_that_comes_again_is_told_with_its_place(first: int, again: int) -> None:
    """At the latest when the end is reached. The twin forgets the older ones."""

    def told(forgetful: bool) -> int | None:
        keys = SeenKeys()
        for place in range(1024):
            found = keys.add(f"ann\0key {first if place == again else place}", place)
            if forgetful:
                keys._runs.clear()
            if found is not None:
                return found
        return keys.settle()

    assert told(forgetful=False) == again
    if again // 64 != first // 64:
        assert told(forgetful=True) is None


def test_putting_runs_together_takes_one_more_copy_of_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin sorts a copy of the copy."""
    monkeypatch.setattr(seen_keys, "_RECENT", 1 << 10)
    many = 1 << 16

    def most() -> int:
        tracemalloc.start()
        keys = SeenKeys()
        for place in range(many):
            keys.add(f"somebody\0{place:032x}", place)
        assert len(keys._runs) == 1
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert 2 * 16 * many < most() < 2.4 * 16 * many
    monkeypatch.setattr(seen_keys, "_together", lambda one, other: np.sort(np.concatenate((one, other))))
    assert most() > 2.9 * 16 * many


def test_many_keys_take_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin is a set of them."""
    monkeypatch.setattr(seen_keys, "_RECENT", 1 << 12)
    tracemalloc.start()
    keys = SeenKeys()
    for place in range(100_000):
        assert keys.add(f"somebody\0{place:032x}", place) is None
    assert keys.settle() is None
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert 16 * 100_000 < held < 20 * 100_000
    assert sys.getsizeof({(str(place), place) for place in range(100_000)}) > held
    assert len(keys._runs) < 8
