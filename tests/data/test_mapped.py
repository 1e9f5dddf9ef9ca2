"""Columns of a store as mapped memory: the same rows, asked for ahead when they lie on disk."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import pytest

from holdfast.data import mapped
from holdfast.data import store as data_store
from holdfast.data.mapped import MappedColumn, take_rows
from holdfast.data.open import open_source
from holdfast.data.save import save_store
from holdfast.data.store import StoreSource
from holdfast.data.store import mapped as mapped_file
from holdfast.errors import StoreError
from holdfast.query.schema import Integer, Real, Schema

ROWS = 50_000
SCHEMA = Schema(a=Integer(0, 200), x=Real(0, 1))
VALUES = {"a": np.random.default_rng(1).integers(0, 200, ROWS), "x": np.random.default_rng(2).random(ROWS)}


@pytest.fixture
def store(tmp_path: Path) -> StoreSource:
    return save_store(open_source(VALUES, SCHEMA), tmp_path / "s.hf")


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 2112, 2113, 70_000])
def test_rows_are_those_asked_for(store: StoreSource, count: int) -> None:
    ids = np.random.default_rng(count).integers(-5, ROWS + 5, count)
    for cold in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            if cold:
                patch.setattr(mapped, "disk_reads", itertools.count().__next__)
            found = store.gather(["x", "a"], ids)
        for name, codes in found.items():
            np.testing.assert_array_equal(codes, VALUES[name][np.clip(ids, 0, ROWS - 1)])
    assert len(store.draw(["a"], count)["a"]) == count


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_long_rows_are_those_asked_for(width: int, tmp_path: Path) -> None:
    content = np.random.default_rng(width).integers(0, 256, (ROWS, width), dtype=np.uint8)
    (tmp_path / "long").write_bytes(content.tobytes())
    column = mapped_file(tmp_path / "long", np.dtype(f"V{width}"), ROWS, "long")
    ids = np.random.default_rng(3).integers(-5, ROWS + 5, 5000)
    found = take_rows({"long": column}, ids)["long"]
    assert found.tobytes() == content[np.clip(ids, 0, ROWS - 1)].tobytes()


def test_a_cold_store_is_asked_for_all_but_the_first_rows(
    store: StoreSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = np.random.default_rng(4).integers(0, ROWS, 9000)
    asked: list[int] = []
    # Only the first rows wait: from then on all are there when they are touched.
    waits = iter([0, 1, *[1] * 100])
    monkeypatch.setattr(mapped, "disk_reads", lambda: next(waits))
    monkeypatch.setattr(MappedColumn, "fetch", lambda column, part: asked.extend(part.tolist()))
    store.gather(["a"], ids)
    assert asked == ids[64:].tolist()


def test_a_warm_store_is_not_asked(store: StoreSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "disk_reads", lambda: 7)
    monkeypatch.setattr(MappedColumn, "fetch", lambda column, part: pytest.fail("asked"))
    assert len(store.gather(["a", "x"], np.arange(9000))["x"]) == 9000


def _asked_in_passes(store: StoreSource, monkeypatch: pytest.MonkeyPatch, reads: list[int]) -> list[bool]:
    """Whether each pass asks the disk ahead, where so many pages were waited for in each."""
    asked: list[str] = []
    monkeypatch.setattr(MappedColumn, "expect", lambda column, *rows: asked.append(column._name))
    found = []
    for waited in reads:
        moments = iter([0, waited])
        monkeypatch.setattr(data_store, "disk_reads", lambda moments=moments: next(moments))
        asked.clear()
        assert sum(len(block["a"]) for block in store.scan(["a"])) == ROWS
        found.append(bool(asked))
    return found


def test_a_pass_over_a_small_table_asks_ahead_unless_the_last_one_waited_for_nothing(
    store: StoreSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _asked_in_passes(store, monkeypatch, [3, 0, 0, 2, 0]) == [True, True, False, False, True]


def test_a_pass_over_a_large_table_always_asks_ahead(
    store: StoreSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its beginning may be gone from memory when it ends."""
    monkeypatch.setattr(data_store, "BLOCK_ROWS", ROWS - 1)
    assert _asked_in_passes(store, monkeypatch, [0, 0, 0]) == [True, True, True]


def test_the_pages_of_all_rows_are_asked_for(store: StoreSource, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(
        MappedColumn, "_advise", lambda self, advice, start, length: asked.append((start, length))
    )
    column = store._columns["x"]
    ids = np.array([0, 511, 512, 49_999, 60_000, -3])
    column.fetch(ids)
    assert asked == [(0, 4096), (4096, 4096), (49_999 * 8 // 4096 * 4096, 4096)]
    asked.clear()
    column.expect(1000, 3000)
    column.expect(49_000, 99_000)
    column.expect(50_000, 60_000)
    assert asked[0] == (4096, 3000 * 8 - 4096)
    assert asked[1] == (49_000 * 8 // 4096 * 4096, 400_000 - 49_000 * 8 // 4096 * 4096)
    assert all(start % 4096 == 0 and start + length <= ROWS * 8 for start, length in asked)


@pytest.mark.parametrize(("cut", "read"), [("column-0001.bin", ["x"]), ("packed.bin", ["a", "x"])])
def test_a_file_that_was_cut_is_told_and_a_restored_one_read_again(
    store: StoreSource, cut: str, read: list[str]
) -> None:
    file = store.path / cut
    whole = file.read_bytes()
    with file.open("r+b") as opened:
        opened.truncate(len(whole) // 2)
    ids = np.array([ROWS - 1, 3])
    assert store.gather(["a"], ids)["a"].tolist() == VALUES["a"][ids].tolist()
    for ask in (
        lambda: store.gather(read, ids),
        lambda: store.draw(read, 5),
        store.verify,
    ):
        with pytest.raises(StoreError, match="shorter file"):
            ask()
    with file.open("r+b") as opened:
        opened.write(whole)
    np.testing.assert_array_equal(store.gather(read, ids)["x"], VALUES["x"][ids])
    store.verify()


def test_columns_are_read_only(store: StoreSource) -> None:
    codes = store._columns["a"].codes
    with pytest.raises(ValueError, match="read-only"):
        codes[0] = 1
    assert take_rows({"a": store._columns["a"]}, np.array([0]))["a"].flags.writeable


def test_a_pass_over_a_column_that_was_cut_is_told(store: StoreSource) -> None:
    os.truncate(store.path / "column-0001.bin", 100)
    assert sum(len(block["a"]) for block in store.scan(["a"])) == ROWS
    with pytest.raises(StoreError, match="shorter file"):
        list(store.scan(["x"]))
