"""Rows that are opened again in one process: a fresh count is announced, a shared ledger is one count."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import holdfast as hf
from holdfast.ledger import MemoryLedger
from holdfast.session import opening
from holdfast.session.opening import Opening

ROWS = 3000
SCHEMA = hf.Schema(age=hf.Integer(0, 99))
Data = Callable[[], object]


def ages() -> Any:
    return np.random.default_rng(5).integers(0, 100, ROWS)


def written(folder: Path) -> Path:
    path = folder / "people.csv"
    path.write_text("age\n" + "\n".join(map(str, ages())) + "\n")
    return path


def parquet(folder: Path, name: str = "people.parquet") -> Path:
    pq.write_table(pa.table({"age": ages()}), folder / name)
    return folder / name


def asked(data: object, **how: Any) -> hf.Table:
    """Open and ask once."""
    table = hf.open(data, SCHEMA, **how)
    table.session(rho=1.0, target="table").count("age > 40", rho=0.01)
    return table


def announced(data: object, **how: Any) -> bool:
    """Whether opening says that the count starts afresh."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hf.open(data, SCHEMA, **how)
    assert all(issubclass(warning.category, hf.ReopenedWarning) for warning in caught)
    assert all(warning.filename == __file__ for warning in caught)
    return bool(caught)


def same(tmp_path: Path) -> dict[str, tuple[Data, Data]]:
    """Two ways to the same rows, for every kind."""
    array, matrix, frame = ages(), np.stack([ages(), ages()], axis=1), pd.DataFrame({"age": ages(), "t": "x"})
    polars, arrow, series = pl.DataFrame({"age": ages()}), pa.table({"age": ages()}), pl.Series(ages())
    path, columns = written(tmp_path), parquet(tmp_path)
    os.symlink(path, tmp_path / "symbolic.csv")
    os.link(path, tmp_path / "hard.csv")
    os.mkdir(tmp_path / "folder")
    inside = parquet(tmp_path / "folder")
    relation = duckdb.sql("SELECT range % 100 AS age FROM range(3000)")
    both: dict[str, tuple[Data, Data]] = {
        "the same dict": (lambda: {"age": array}, lambda: {"age": array}),
        "a view": (lambda: {"age": matrix[:, 1]}, lambda: {"age": matrix[:, 1], "other": matrix[:, 0]}),
        "a part of it": (lambda: {"age": array}, lambda: {"age": array[1000:]}),
        "a column that is not declared": (
            lambda: {"age": ages(), "id": array},
            lambda: {"age": ages(), "id": array},
        ),
        "a pandas frame": (lambda: frame, lambda: frame),
        "a frame that shares its memory": (lambda: frame, lambda: frame.rename(columns={"t": "u"})),
        "a series": (lambda: {"age": frame["age"]}, lambda: frame),
        "a Polars frame": (lambda: polars, lambda: polars),
        "a Polars series": (lambda: {"age": series}, lambda: {"age": series}),
        "an Arrow table": (lambda: arrow, lambda: arrow),
        "a DuckDB relation": (lambda: relation, lambda: relation),
        "a CSV file": (lambda: path, lambda: str(path)),
        "a relative path": (lambda: path, lambda: os.path.relpath(path)),
        "a symbolic link": (lambda: path, lambda: tmp_path / "symbolic.csv"),
        "a hard link": (lambda: path, lambda: tmp_path / "hard.csv"),
        "a Parquet file": (lambda: columns, lambda: columns),
        "a Parquet folder": (lambda: inside, lambda: tmp_path / "folder"),
        "a pattern": (lambda: inside, lambda: str(tmp_path / "folder" / "*.parquet")),
    }
    return both


KINDS = [
    "the same dict", "a view", "a part of it", "a column that is not declared", "a pandas frame",
    "a frame that shares its memory", "a series", "a Polars frame", "a Polars series", "an Arrow table",
    "a DuckDB relation", "a CSV file", "a relative path", "a symbolic link", "a hard link", "a Parquet file",
    "a Parquet folder", "a pattern",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_second_opening_of_rows_that_were_asked_is_announced(kind: str, tmp_path: Path) -> None:
    first, second = same(tmp_path)[kind]
    assert not announced(first())
    asked(first())
    assert announced(second())
    assert not announced(second(), ledger=MemoryLedger())
    assert not announced(second(), ledger=tmp_path / "people.ledger")


def test_the_kinds_are_all_of_them(tmp_path: Path) -> None:
    assert list(same(tmp_path)) == KINDS


def test_an_opening_that_forgets_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: nothing is remembered."""
    monkeypatch.setattr(opening, "_note", lambda trace, _: 1)
    path = written(tmp_path)
    asked(path)
    assert not announced(path)


def test_other_rows_are_not_announced(tmp_path: Path) -> None:
    array, matrix = ages(), np.stack([ages(), ages()], axis=1)
    asked({"age": array[:1000]})
    assert not announced({"age": array[1000:]})
    assert not announced({"age": array.copy()})
    asked({"age": matrix[:1000, 0]})
    assert not announced({"age": matrix[1000:, 0]})
    asked({"age": array[1::2]})
    assert not announced({"age": array[0::2][600:]})
    asked(written(tmp_path))
    (tmp_path / "other").mkdir()
    assert not announced(written(tmp_path / "other"))


def test_a_file_that_was_written_anew_holds_other_rows(tmp_path: Path) -> None:
    path = written(tmp_path)
    asked(path)
    path.write_text(path.read_text() + "7\n")
    assert not announced(path)


def test_what_was_never_asked_need_not_be_announced() -> None:
    data = {"age": ages()}
    hf.open(data, SCHEMA)
    table = hf.open(data, SCHEMA)
    table.session(rho=1.0).estimate.count("age > 40", within=1000)
    del table
    gc.collect()
    assert not announced(data)


def test_a_session_that_could_still_be_charged_is_announced() -> None:
    data = {"age": ages()}
    session = hf.open(data, SCHEMA).session(rho=1.0)
    assert announced(data)
    assert session.spent == 0


def test_two_tables_that_were_opened_before_any_session_are_announced_with_the_second_session() -> None:
    data = {"age": ages()}
    first, second = hf.open(data, SCHEMA), hf.open(data, SCHEMA)
    first.session(rho=1.0)
    with pytest.warns(hf.ReopenedWarning, match="number 2 of the same rows") as caught:
        second.session(rho=1.0)
    assert caught[0].filename == __file__
    second.session(rho=1.0)  # said once


def test_charges_are_remembered_when_the_table_is_gone() -> None:
    data = {"age": ages()}
    asked(data).close()
    gc.collect()
    with pytest.warns(hf.ReopenedWarning) as caught:
        hf.open(data, SCHEMA)
    words = str(caught[0].message)
    assert "starts afresh" in words and 'ledger="people.ledger"' in words


def test_each_opening_is_announced_in_words_of_its_own() -> None:
    """Python shows equal words from one line once; a cell that is run again shall say it again."""
    data = {"age": ages()}
    said = set()
    asked(data)
    for _ in range(3):
        with pytest.warns(hf.ReopenedWarning) as caught:
            hf.open(data, SCHEMA)
        said.add(str(caught[0].message))
    assert len(said) == 3


def test_no_rows_are_kept_and_a_new_array_at_the_old_place_is_not_announced() -> None:
    for _ in range(8):  # the allocator hands out the same place again and again
        asked({"age": ages()})
        gc.collect()
        assert not [key for key in opening._known if isinstance(key, tuple) and key[0] == "memory"]


def test_a_place_that_outlives_its_array_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: an address is remembered for ever."""

    class Forever:
        def __init__(self, *_: object) -> None:
            self.atexit = False

    monkeypatch.setattr("holdfast.session.opening.weakref.finalize", Forever)
    asked({"age": ages()})
    gc.collect()
    assert [key for key in opening._known if isinstance(key, tuple) and key[0] == "memory"]


def test_what_is_remembered_stays_small(tmp_path: Path) -> None:
    path = written(tmp_path)
    asked(path)
    for _ in range(20):
        assert announced(path)
    kept = [
        found for spans in opening._known.values() for place in spans.values() for found in place.openings
    ]
    assert len(kept) == 1
    assert all(isinstance(found, Opening) for found in kept)


def test_a_store_shares_its_ledger_and_needs_no_words(tmp_path: Path) -> None:
    asked({"age": ages()}).save(tmp_path / "people.hf").close()
    for _ in range(2):
        hf.open(tmp_path / "people.hf").session(rho=1.0, target="table").count("age > 50", rho=0.01)
    assert hf.open(tmp_path / "people.hf").ledger.totals().entries == 3


# One ledger for all openings


SHARED: dict[str, Callable[[Path], object]] = {
    "dict": lambda folder: {"age": ages()},
    "csv": written,
    "parquet": parquet,
}


@pytest.mark.parametrize("kind", SHARED)
def test_openings_with_one_ledger_are_one_count(kind: str, tmp_path: Path) -> None:
    data, ledger = SHARED[kind](tmp_path), tmp_path / "people.ledger"
    budget: dict[str, Any] = {"rho": 0.05, "target": "table", "name": "mine"}
    first = hf.open(data, SCHEMA, ledger=ledger)
    told = first.session(**budget).count("age > 40", rho=0.03)
    second = hf.open(data, SCHEMA, ledger=str(ledger))
    assert second.spent == first.spent > 0
    again = second.session(name="mine").count("age > 40", rho=0.03)
    assert again.repeated and again.value == told.value
    with pytest.raises(hf.BudgetError):
        second.session(name="mine").count("age > 41", rho=0.03)
    first.close()
    second.close()


SCRIPT = """
import sys
import holdfast as hf
path, ledger = sys.argv[1:]
table = hf.open(path, hf.Schema(age=hf.Integer(0, 99)), ledger=ledger)
table.session(rho=0.05, target="table", name="mine").count("age > 40", rho=0.03)
print(table.ledger.totals().entries)
"""


def test_processes_with_one_ledger_are_one_count(tmp_path: Path) -> None:
    data, ledger = SHARED["csv"](tmp_path), tmp_path / "people.ledger"
    command = [sys.executable, "-W", "error", "-c", SCRIPT, str(data), str(ledger)]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "1\n"
    here = hf.open(data, SCHEMA, ledger=ledger)
    assert here.session(name="mine").count("age > 40", rho=0.03).repeated
    assert here.ledger.totals().entries == 1
    with pytest.raises(hf.BudgetError):
        here.session(name="mine").count("age > 41", rho=0.03)
    here.close()


@pytest.mark.parametrize("kind", SHARED)
def test_no_ledger_is_left_unless_it_was_asked_for(kind: str, tmp_path: Path) -> None:
    data = SHARED[kind](tmp_path)
    before = sorted(tmp_path.iterdir())
    asked(data)
    assert sorted(tmp_path.iterdir()) == before


def test_a_session_does_not_come_back_on_other_rows(tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    budget: dict[str, Any] = {"rho": 1.0, "target": "table", "name": "mine"}
    hf.open({"age": ages()}, SCHEMA, ledger=ledger).session(**budget).count("age > 40", rho=0.1)
    fewer = hf.open({"age": ages()[:100]}, SCHEMA, ledger=ledger)
    wider = hf.open({"age": ages()}, hf.Schema(age=hf.Integer(0, 120)), ledger=ledger)
    for other in (fewer, wider):
        for how in (budget, {"name": "mine"}):
            with pytest.raises(hf.LedgerError, match="on the same terms"):
                other.session(**how)
