"""A million events in any order, sorted by unit on disk by a process that is killed on the way."""

from __future__ import annotations

import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import holdfast as hf
from data import ingesting
from data.tables import write_csv
from holdfast.data import duckdb as behind_duckdb
from holdfast.data import engine, unit_build, unit_order
from holdfast.data.unit_build import LeftOut, units_on_disk
from holdfast.data.unit_open import declared_units, ingest_units
from holdfast.errors import HoldfastError

ROWS, UNITS = 1_000_000, 90_000


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("events") / "events.parquet"
    rng = np.random.default_rng(3)
    columns = {"person": rng.integers(0, UNITS, ROWS), "cost": rng.integers(0, 1000, ROWS)}
    pq.write_table(pa.table(columns), path)
    return path


def killed(parquet: Path, store: Path, *how: str) -> None:
    died = subprocess.run([sys.executable, ingesting.__file__, parquet, store, *how])
    assert died.returncode == -signal.SIGKILL


def test_a_process_that_is_killed_leaves_no_store_and_a_second_try_makes_it(
    parquet: Path, tmp_path: Path
) -> None:
    store = tmp_path / "events.hf"
    for part in ("0.3", "0.7"):  # while it is sorted, and while units are written
        killed(parquet, store, part)
        assert not store.exists()
        with pytest.raises(HoldfastError):
            hf.open(store)
    made = ingesting.ingest(str(parquet), str(store))
    made.verify()
    person, cost = duckdb.sql(f"SELECT * FROM '{parquet}' ORDER BY person").fetchnumpy().values()
    lengths = np.bincount(person, minlength=UNITS)
    lengths = lengths[lengths > 0]
    held = made.events("rows")
    assert made.rows == len(lengths)
    assert np.array_equal(np.diff(held.offsets), np.minimum(lengths, ingesting.MOST))
    assert lengths.max() > ingesting.MOST  # or the bound would not be met
    least, most = np.minimum.reduceat(cost, np.cumsum(lengths) - lengths), lengths <= ingesting.MOST
    codes = held.columns.part(["cost"], 0, int(held.offsets[-1]))["cost"].astype(int)
    found = np.minimum.reduceat(codes - codes.min(), held.offsets[:-1])
    assert sorted(found[most]) == sorted(least[most])  # units are in the order of their keys' codes
    left = {path.name for path in tmp_path.iterdir()} - {"events.hf"}
    assert all(name.startswith((".events.hf.", ".holdfast-")) for name in left)  # hidden, and never opened


def test_a_store_that_is_written_in_its_place_is_caught(parquet: Path, tmp_path: Path) -> None:
    """The broken twin: whoever writes into the folder itself leaves half a store there."""
    killed(parquet, tmp_path / "events.hf", "0.7", "in-place")
    assert (tmp_path / "events.hf").exists()


def memory(units: int, folder: Path) -> int:
    """The most that an ingest of so many units holds at once, each with one event; DuckDB's own is not counted."""
    columns = {"person": np.arange(units)[::-1], "cost": np.arange(units) % 999}
    pq.write_table(pa.table(columns), folder / "events.parquet")
    plan = declared_units(folder / "events.parquet", ingesting.SCHEMA, "person", ingesting.MOST)
    peaks = []

    def report(done: int, total: int) -> None:
        peaks.append(tracemalloc.get_traced_memory()[1])

    tracemalloc.start()
    try:
        made = units_on_disk(
            plan.schema, plan.sources(), bytes(16), LeftOut(), folder / f"{units}.hf", progress=report
        )
    finally:
        tracemalloc.stop()
    assert made.rows == units
    return max(peaks)


@pytest.mark.parametrize("on_disk", [True, False])
def test_memory_does_not_grow_with_the_units(
    on_disk: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin keeps the keys of all units in memory."""
    for room in (behind_duckdb, unit_order):
        monkeypatch.setattr(room, "BLOCK_ROWS", 4096)
    monkeypatch.setattr(behind_duckdb, "RANGE_ROWS", 4096)
    if not on_disk:
        monkeypatch.setattr(unit_build, "UnitKeys", lambda folder: unit_order.UnitKeys())
    few, many = (memory(units, tmp_path) for units in (30_000, 240_000))
    assert (many < 1.3 * few) == on_disk, (few, many)


def test_a_csv_file_is_copied_beside_the_store_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With progress; all databases lie in files, and may take so much memory."""
    folders, seen = [], []
    begin = engine.Engine.__init__

    def noted(self: engine.Engine, folder: Path | None = None) -> None:
        begin(self, folder)
        folders.append((folder, self.rows("SELECT current_setting('memory_limit')")[0][0]))

    monkeypatch.setattr(engine.Engine, "__init__", noted)
    table = {"person": [k % 900 for k in range(20_000)], "cost": [k % 999 for k in range(20_000)]}
    write_csv(table, tmp_path / "events.csv")
    plan = declared_units(tmp_path / "events.csv", ingesting.SCHEMA, "person", ingesting.MOST)
    made = ingest_units(
        plan, tmp_path / "e.hf", bytes(16), progress=lambda done, total: seen.append((done, total))
    )
    assert made.rows == 900
    assert folders == [(tmp_path, "762.9 MiB")] * 2
    assert {total for _, total in seen} == {3000}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[0][0] <= 1000 and seen[-1][0] == 3000
