"""Bad tables around one unit: a clear error or the stated rule, at every door, and never a value from the rows."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data.hospital import BOUNDS, SCHEMAS, SECRET, hospital
from data.tables import write_csv

import holdfast as hf
from holdfast.data.unit_key import KEY_LIMIT, KeyHalf
from holdfast.data.unit_open import declared_units, ingest_units
from holdfast.data.unit_source import UnitSource
from holdfast.ledger import MemoryLedger

CANARY = "canary-7f3e91c2"
BROKEN = CANARY.encode() + b"\xff\xfe"
Tabled = dict[str, dict[str, list[Any]]]


def arrow(values: list[Any]) -> pa.Array:
    """A column as Arrow holds it; texts with BROKEN among them byte by byte, as careless writers do."""
    if BROKEN not in values:
        return pa.array(values)
    raw = pa.array([v.encode() if isinstance(v, str) else v for v in values], type=pa.binary())
    return pa.StringArray.from_buffers(len(raw), *(raw.buffers()[at] for at in (1, 2, 0)), raw.null_count)


def files(tables: Tabled, folder: Path, suffix: str) -> dict[str, Any]:
    for name, table in tables.items():
        place = folder / f"{name}.{suffix}"
        if suffix == "parquet":
            pq.write_table(pa.table({column: arrow(v) for column, v in table.items()}), place)
        else:
            write_csv(
                {c: [v.decode("latin-1") if v == BROKEN else v for v in vs] for c, vs in table.items()}, place
            )
            place.write_bytes(place.read_bytes().replace(BROKEN.decode("latin-1").encode(), BROKEN))
    return {name: folder / f"{name}.{suffix}" for name in tables}


def opened(data: Any, **how: Any) -> UnitSource:
    given: dict[str, Any] = {"unit": "person", "rows_per_unit": BOUNDS, "ledger": MemoryLedger()} | how
    source = hf.open(data, SCHEMAS, **given)._source
    assert isinstance(source, UnitSource)
    return source


def stored(tables: Tabled, folder: Path) -> UnitSource:
    """By way of a store; whatever goes wrong, nothing is left of it."""
    place = folder / "stores" / "hospital.hf"
    place.parent.mkdir()
    declared = declared_units(files(tables, folder, "parquet"), SCHEMAS, "person", BOUNDS)
    try:
        return ingest_units(declared, place, SECRET)
    except hf.HoldfastError:
        assert list(place.parent.iterdir()) == []
        raise


DOORS: dict[str, Callable[[Tabled, Path], UnitSource]] = {
    "frame": lambda tables, folder: opened(tables),
    "csv": lambda tables, folder: opened(files(tables, folder, "csv")),
    "parquet": lambda tables, folder: opened(files(tables, folder, "parquet")),
    "store": stored,
}


def refused(act: Callable[[], object], words: str) -> None:
    """It fails with these words, and nowhere in what a terminal prints is there anything from a row."""
    with pytest.raises(hf.HoldfastError, match=words) as error:
        act()
    assert CANARY not in "".join(traceback.format_exception(error.value))


def test_an_error_with_a_key_in_it_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin, which quotes what it cannot read."""

    def quotes(self: KeyHalf, text: str) -> int:
        raise hf.DataError(f"expected another key, got {text!r}; change it")

    monkeypatch.setattr(KeyHalf, "_of_text", quotes)
    with pytest.raises(AssertionError):
        refused(lambda: opened(column("people", "person", lambda v: [CANARY] * len(v))), "another key")


def column(table: str, name: str, change: Callable[[list[Any]], list[Any] | None]) -> Tabled:
    """A hospital in which one column is another, or gone."""
    tables = hospital(30)
    tables["people"]["person"][2] = CANARY
    values = change(tables[table].pop(name))
    return tables | {table: tables[table] if values is None else {name: values} | tables[table]}


def with_one(value: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda values: [value, *values[1:]]


def twice() -> Tabled:
    tables = column("people", "age", list)
    for values in tables["people"].values():
        values.append(values[2])
    return tables


FAIL: dict[str, tuple[Callable[[], Tabled], str]] = {
    "visits without a key": (lambda: column("visits", "person", lambda v: None), "expected a column 'person'"),
    "people without a key": (lambda: column("people", "person", lambda v: None), "expected a column 'person'"),
    "keys all NULL": (
        lambda: column("people", "person", lambda v: [None] * len(v)),
        "at least one row with a key in 'people'",
    ),
    "two rows of one": (twice, "one row for each person in 'people', got several"),
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", FAIL)
def test_tables_that_cannot_be_read_are_refused(case: str, door: str, tmp_path: Path) -> None:
    make, words = FAIL[case]
    refused(lambda: DOORS[door](make(), tmp_path), words)


@pytest.mark.parametrize("door", ["csv", "parquet", "store"])
@pytest.mark.parametrize("name", ["person", "drug", "ward"])
def test_files_that_are_not_utf8_are_refused(name: str, door: str, tmp_path: Path) -> None:
    refused(lambda: DOORS[door](column("visits", name, with_one(BROKEN)), tmp_path), "UTF-8")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (7, "all numbers or all texts"),
        (BROKEN, "numbers or texts, got bytes"),
        ((CANARY, 1), "numbers or texts, got tuple"),
        ([CANARY], "numbers or texts, got list"),
        ({CANARY: 1}, "numbers or texts, got dict"),
        (np.array([1, 2]), "numbers or texts, got ndarray"),
        (3j, "numbers or texts, got complex"),
        (CANARY + "\ud800", "not UTF-8"),
    ],
)
def test_keys_of_mixed_and_foreign_kinds_are_refused(value: Any, words: str) -> None:
    refused(lambda: opened(column("visits", "person", with_one(value))), words)
    if isinstance(value, list | dict | bytes):  # a column in which all are such
        tables = column("visits", "person", lambda values: [value] * len(values))
        whole = tables | {"visits": pa.table({n: pa.array(v) for n, v in tables["visits"].items()})}
        refused(lambda: opened(whole), "cannot be read as key")


def test_a_missing_key_of_pandas_is_no_key() -> None:
    values = np.array(["a", pd.NA, None, np.nan, pd.NaT], dtype=object)
    codes = [KeyHalf(0, KEY_LIMIT - 1, "person", half).encode_array(values).tolist() for half in (0, 1)]
    assert [(first == KEY_LIMIT, second == KEY_LIMIT) for first, second in zip(*codes, strict=True)] == [
        (False, False), *[(True, True)] * 4
    ]  # fmt: skip


RULES: dict[str, tuple[Callable[[], Tabled], Any]] = {
    "one person has all visits": (
        lambda: column("visits", "person", lambda v: [CANARY] * len(v)),
        (30, BOUNDS["visits"]),
    ),
    "all visits are a stranger's": (
        lambda: column("visits", "person", lambda v: [f"{CANARY} too"] * len(v)),
        (30, 0),
    ),
    "no visit has a key": (lambda: column("visits", "person", lambda v: [None] * len(v)), (30, 0)),
    "one of the people has no key": (lambda: column("people", "person", with_one(None)), (29, None)),
    "a key of a megabyte": (
        lambda: column("visits", "person", lambda v: [CANARY * 70_000] + ["nobody"] * (len(v) - 1)),
        (30, 0),
    ),
    "a text of a megabyte": (
        lambda: column("visits", "drug", lambda v: [CANARY * 70_000, *["ether"] * (len(v) - 1)]),
        (30, None),
    ),
}


@pytest.mark.parametrize("case", RULES)
def test_what_has_a_rule_follows_it_at_every_door(case: str, tmp_path: Path) -> None:
    make, (units, visits) = RULES[case]
    found = []
    for door, opens in DOORS.items():
        folder = tmp_path / door
        folder.mkdir()
        source = opens(make(), folder)
        many = int(source.events("visits").offsets[-1])
        assert source.rows == units and visits in (None, many), door
        words = source.words["visits.drug"].texts
        assert not any(CANARY in text for text in words), "longer than declared: NULL"
        found.append((many, set(words) if case == "a text of a megabyte" else None))
    assert all(each == found[0] for each in found) and found[0][1] in (None, {"ether"})


@pytest.mark.parametrize("door", ["frame", "files"])
@pytest.mark.parametrize(
    ("bound", "words"),
    [
        (None, "3 tables without a bound"),
        ({}, "3 tables without a bound"),
        ({"visits": 4}, "2 tables without a bound"),
        (20, "as a dict with the names of tables"),
        ({"visits": 0, "drugs": 2}, "integer of at least 1 for rows_per_unit, got 0"),
        ({"visits": -1, "drugs": 2}, "integer of at least 1"),
        ({"visits": 2.5, "drugs": 2}, "integer of at least 1"),
        ({"visits": True, "drugs": 2}, "integer of at least 1"),
        ({"visits": "4", "drugs": 2}, "integer of at least 1"),
        ({"visits": 2**21, "drugs": 2}, "at most 1,048,576"),
    ],
)
def test_bounds_that_are_none_are_refused_before_a_row_is_read(
    bound: Any, words: str, door: str, tmp_path: Path
) -> None:
    tables: Any = hospital(30) if door == "frame" else dict.fromkeys(SCHEMAS, tmp_path / "nothing.csv")
    refused(lambda: opened(tables, rows_per_unit=bound), words)
    lone = tables["visits"]
    if not isinstance(bound, dict | int):
        refused(lambda: hf.open(lone, SCHEMAS["visits"], unit="person", rows_per_unit=bound), "rows_per_unit")


QUESTIONS = {
    "nothere.cost > 3": "no table 'nothere'",
    "exists(nothere)": "no table of events 'nothere'",
    "count(nothere, cost > 3) >= 1": "no table of events 'nothere'",
    "visits.nothere > 3": r"no column 'visits\.nothere'",
    "sum(nothere.cost) > 3": "sum needs a column of events",
    "drugs.dose > 1 AND visits.cost > 1": "rows of one table",
    "exists(visits, drugs.dose > 1)": "asked of each person",
    "SELECT count(*) FROM nothere": "no table 'nothere'",
    "SELECT count(*) FROM visits JOIN nothere USING (person)": "no table 'nothere'",
    "SELECT avg(nothere.cost) FROM visits": "no table 'nothere'",
    "SELECT count(*) FROM visits JOIN drugs USING (person)": "rows of one table",
    "SELECT count(*) FROM visits JOIN people USING (day)": "joined by the unit's key",
    "SELECT count(*) FROM people WHERE EXISTS (SELECT 1 FROM nothere WHERE nothere.person = people.person)":
        "no table of events 'nothere'",
}  # fmt: skip


@pytest.mark.parametrize("door", ["frame", "store"])
def test_unknown_tables_in_questions_are_refused_and_cost_nothing(door: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {"unit": "person", "rows_per_unit": BOUNDS, "ledger": MemoryLedger()}
    table = hf.open(column("people", "age", list), SCHEMAS, **given)
    if door == "store":
        table = table.save(tmp_path / "hospital.hf")
    session = table.session(epsilon=1.0, delta=1e-6, target="table")
    for text, words in QUESTIONS.items():
        ask = session.sql if text.startswith("SELECT") else session.count
        refused(lambda ask=ask, text=text: ask(text, rho=0.01), words)  # type: ignore[misc]
    assert session.spent == 0 and table.ledger.totals().entries == 0


@pytest.mark.parametrize("door", ["frame", "csv", "parquet"])
def test_a_public_table_with_a_key_twice_is_refused(door: str, tmp_path: Path) -> None:
    wards: dict[str, list[Any]] = {"ward": ["surgery", "heart", "heart"], "beds": [1, 2, 3]}
    frame: Any = wards if door == "frame" else files({"wards": wards}, tmp_path, door)["wards"]
    refused(
        lambda: opened(column("people", "age", list), lookups={"wards": hf.Lookup(frame, key="ward")}),
        "expected each key once in the public table 'wards'",
    )
