"""A million events in any order, sorted by unit on disk by a process that is killed on the way."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import holdfast as hf
from data import ingesting
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
