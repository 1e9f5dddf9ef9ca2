"""One law suite for units: whichever door their tables come through, the same rows are kept of each."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from services import postgres

import holdfast as hf
from data.hospital import BOUNDS, ORDER, SCHEMAS, SECRET, hospital, permuted
from data.tables import write_csv
from holdfast.data import duckdb as behind_duckdb
from holdfast.data import unit_build
from holdfast.data.unit_build import LeftOut, units_on_disk
from holdfast.data.unit_open import Tables, declared_units, open_units
from holdfast.data.unit_source import UnitSource
from holdfast.data.unit_store import UnitStore
from holdfast.errors import DataError
from holdfast.ledger import MemoryLedger
from holdfast.query.dictionary import Words

Tabled = dict[str, dict[str, Any]]
TRUTH = hospital()


def arrow(table: dict[str, Any]) -> pa.Table:
    return pa.table({name: pa.array(values) for name, values in table.items()})


def files(tables: Tabled, folder: Path, suffix: str) -> dict[str, Any]:
    for name, table in tables.items():
        if suffix == "parquet":
            pq.write_table(arrow(table), folder / f"{name}.parquet", row_group_size=40)
        else:
            write_csv(table, folder / f"{name}.csv")
    return {name: folder / f"{name}.{suffix}" for name in tables}


def relations(tables: Tabled, folder: Path) -> dict[str, Any]:
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register("given", arrow(table))
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        connection.unregister("given")
    return {name: connection.table(name) for name in tables}


def on_a_server(tables: Tabled, folder: Path) -> dict[str, Any]:
    server = postgres()
    kinds = {str: "text", int: "bigint", float: "float8", bool: "bool"}
    with psycopg.connect(server.url) as link:
        link.execute("DROP TABLE IF EXISTS people, visits, drugs")
        for name, table in tables.items():
            types = [kinds[type(next(v for v in values if v is not None))] for values in table.values()]
            declared = ", ".join(f"{c} {t}" for c, t in zip(table, types, strict=True))
            link.execute(f"CREATE TABLE {name} ({declared})")  # type: ignore[arg-type]
            with link.cursor().copy(f"COPY {name} FROM STDIN") as copy:  # type: ignore[arg-type]
                for row in zip(*table.values(), strict=True):
                    copy.write_row(row)
    return dict.fromkeys(tables, server.url)


DOORS: dict[str, Callable[[Tabled, Path], dict[str, Any]]] = {
    "lists": lambda tables, folder: tables,
    "permuted": lambda tables, folder: {name: permuted(table) for name, table in tables.items()},
    "pandas": lambda tables, folder: {name: pd.DataFrame(table) for name, table in tables.items()},
    "polars": lambda tables, folder: {
        name: pl.DataFrame(table, strict=False) for name, table in tables.items()
    },
    "arrow": lambda tables, folder: {name: arrow(table) for name, table in tables.items()},
    "csv": lambda tables, folder: files(tables, folder, "csv"),
    "parquet": lambda tables, folder: files(tables, folder, "parquet"),
    "relation": relations,
    "postgres": on_a_server,
}
"""Spark has one file for everything, test_spark.py."""


def declared(data: Any) -> Tables:
    return declared_units(data, SCHEMAS, "person", BOUNDS, ORDER)


@contextmanager
def many_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(behind_duckdb, "BLOCK_ROWS", 37)
        patch.setattr(behind_duckdb, "RANGE_ROWS", 150)
        yield


def held(source: UnitSource) -> dict[str, Any]:
    """All that a source holds, unit by unit."""
    found: dict[str, Any] = {"units": source.rows}
    own = source.own.part(tuple(source.schema.own), 0, source.rows)
    found |= {n: plain(codes, source.words.get(n)) for n, codes in own.items()}
    for table, events in source.schema.events.items():
        rows = source.events(table)
        found[table] = rows.offsets.tolist()
        codes = rows.columns.part(tuple(events.schema), 0, int(rows.offsets[-1]))
        words = source.words_of(table)
        found |= {f"{table}.{n}": plain(array, words.get(n)) for n, array in codes.items()}
    return found


def plain(codes: Any, words: Words | None) -> list[Any]:
    """Codes as a list; texts as they are."""
    if words is None:
        found: list[Any] = np.nan_to_num(codes, nan=-1).tolist()
        return found
    return [(*words.texts, None)[min(code, len(words.texts))] for code in codes.tolist()]


def texts(source: UnitSource) -> dict[str, Any]:
    """All texts of a source."""
    return {name: words.texts for name, words in source.words.items()}


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    source = open_units(declared(TRUTH), SECRET)
    return held(source) | {"texts": texts(source)}


@pytest.mark.parametrize(
    ("door", "disk"), [*((door, False) for door in sorted(DOORS)), ("permuted", True), ("csv", True)]
)
def test_every_door_gives_the_same_units(
    door: str, disk: bool, expected: dict[str, Any], tmp_path: Path
) -> None:
    with many_blocks():
        opened = open_units(declared(DOORS[door](TRUTH, tmp_path)), SECRET, in_memory=not disk)
    assert held(opened) | {"texts": texts(opened)} == expected
    assert isinstance(opened, UnitStore) == disk


def divided(data: Any, store: Path | None = None) -> dict[str, list[Any]]:
    """What both parts of a table hold of each unit, with what it and its events look up; and what votes draw."""
    ledger = MemoryLedger()
    ledger.secret = SECRET
    lookups = {
        "regions": hf.Lookup({"region": ["north"], "height": [7]}, "region"),
        "wards": hf.Lookup({"ward": ["surgery", "heart"], "beds": [3, 5]}, {"visits.ward": "ward"}),
    }
    given: dict[str, Any] = {"unit": "person", "rows_per_unit": BOUNDS, "order": ORDER, "ledger": ledger}
    table = hf.open(data, SCHEMAS, lookups=lookups, set_aside=0.25, **given)
    asked = [
        "age",
        "regions.height",
        "sum(wards.beds)",
        "exists(visits, wards.beds > 3)",
        "last(visits.drug)",
    ]
    found: dict[str, list[Any]] = {}
    for name, part in (("rest", table), ("aside", table.aside)):
        blocks = list(part._source.scan(asked))
        columns = [np.concatenate([block[each] for block in blocks]).tolist() for each in asked]
        found[name] = list(zip(*columns, strict=True))
        drawn = part._source.draw(asked, 500)
        assert {*zip(*(drawn[each].tolist() for each in asked), strict=True)} <= {*found[name]}
    table.close()
    return found


@pytest.mark.parametrize("door", ["permuted", "pandas", "csv", "parquet", "relation", "postgres", "store"])
def test_every_door_looks_up_and_sets_aside_the_same(door: str, tmp_path: Path) -> None:
    """Spark's door is in test_spark.py."""
    place = tmp_path / "hospital.hf" if door == "store" else None
    found, expected = divided(DOORS.get(door, DOORS["lists"])(TRUTH, tmp_path), place), divided(TRUTH)
    assert found == expected
    assert (len(found["rest"]), len(found["aside"])) == (45, 15)
    for place in range(1, 5):  # there is something in all columns
        assert len({row[place] for row in (*found["rest"], *found["aside"])}) > 1


def by_hand() -> dict[str, Any]:
    """The slow truth: how many events of each kind every person has, before and after the bound."""
    people = list(TRUTH["people"]["person"])
    return {
        table: Counter(k for k in TRUTH[table]["person"] if k in set(people)) for table in ("visits", "drugs")
    } | {"people": len(people)}


def test_units_are_the_people_and_their_events_are_bounded(expected: dict[str, Any]) -> None:
    truth = by_hand()
    assert expected["units"] == truth["people"]
    for table, most in BOUNDS.items():
        lengths = np.diff(expected[table])
        wanted = sorted(min(most, many) for many in truth[table].values())
        assert sorted(lengths[lengths > 0].tolist()) == wanted
        assert len(expected[f"{table}.{next(iter(SCHEMAS[table]))}"]) == sum(wanted)


def test_a_change_of_one_person_changes_no_other_unit(expected: dict[str, Any]) -> None:
    changed = hospital()
    for name, values in changed["visits"].items():
        values[:] = [v for v, who in zip(values, hospital()["visits"]["person"], strict=True) if who != "p1"]
        assert name
    other = held(open_units(declared(changed), SECRET))
    before, after = np.diff(expected["visits"]), np.diff(other["visits"])
    (place,) = np.flatnonzero(before != after)
    assert after[place] == 0
    start = expected["visits"][place]
    for column in SCHEMAS["visits"]:
        codes = expected[f"visits.{column}"]
        assert other[f"visits.{column}"] == codes[:start] + codes[start + int(before[place]) :]


@pytest.mark.parametrize("digests", [True, False])
def test_texts_of_one_person_do_not_choose_the_rows_of_others(
    digests: bool, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They change the codes of all others; the twin that hashes codes is caught."""
    if not digests:
        monkeypatch.setattr(unit_build, "text_digests", lambda words: np.arange(len(words.texts) + 1))
    changed = hospital()
    here = [place for place, who in enumerate(changed["visits"]["person"]) if who == "p1"]
    for place in here:
        changed["visits"]["drug"][place] = f"0 {place}"  # which comes before all others
    before = expected if digests else held(open_units(declared(TRUTH), SECRET))
    after = held(open_units(declared(changed), SECRET))
    assert after["visits"] == before["visits"]
    differ = {
        int(np.searchsorted(before["visits"], row, side="right")) - 1
        for column in SCHEMAS["visits"]
        for row, pair in enumerate(zip(before[f"visits.{column}"], after[f"visits.{column}"], strict=True))
        if pair[0] != pair[1]
    }
    assert len(differ) == 1 if digests else len(differ) > 1


def test_the_owner_is_told_what_was_left_out_and_nobody_else(capsys: pytest.CaptureFixture[str]) -> None:
    left_out = LeftOut()
    plan = declared(TRUTH)
    unit_build.units_in_memory(plan.schema, plan.sources(), SECRET, left_out)
    truth = by_hand()
    without = sum(key is None for key in TRUTH["visits"]["person"])
    unknown = len(TRUTH["visits"]["person"]) - without - sum(truth["visits"].values())
    assert left_out.without_key["visits"] == without > 0
    assert left_out.unknown["visits"] == unknown > 0
    assert str(without) in str(left_out) and "visits" in str(left_out)
    open_units(plan, SECRET)
    assert capsys.readouterr() == ("", "")  # no terminal is there
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.stderr, "isatty", lambda: True)
        open_units(plan, SECRET)
    assert capsys.readouterr() == ("", f"{left_out}\n")


def test_a_lone_table_has_the_units_that_it_names() -> None:
    lone = declared_units(TRUTH["visits"], SCHEMAS["visits"], "person", 4)
    source = open_units(lone, SECRET)
    assert source.rows == len({key for key in TRUTH["visits"]["person"] if key is not None})
    assert np.diff(source.events("rows").offsets).min() >= 1


@pytest.mark.parametrize("at", ["sort", "write"])
def test_a_crash_leaves_nothing_half_open(at: str, tmp_path: Path) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("the machine dies here")

    with pytest.MonkeyPatch.context() as patch:
        if at == "sort":
            patch.setattr(unit_build.Engine, "watch", fail)
        else:
            patch.setattr(unit_build.UnitWriter, "append_offsets", fail)
        plan = declared(TRUTH)
        with pytest.raises(RuntimeError):
            units_on_disk(plan.schema, plan.sources(), SECRET, LeftOut(), tmp_path / "h.hf")
    assert list(tmp_path.iterdir()) == []
    seen: list[tuple[int, int]] = []
    plan = declared(TRUTH)
    store = units_on_disk(
        plan.schema,
        plan.sources(),
        SECRET,
        LeftOut(),
        tmp_path / "h.hf",
        progress=lambda d, t: seen.append((d, t)),
    )
    assert [path.name for path in tmp_path.iterdir()] == ["h.hf"]
    assert [done for done, _ in seen] == sorted(done for done, _ in seen) and seen[-1][0] == seen[-1][1]
    store.verify()


def test_bad_tables_are_refused_without_a_value() -> None:
    twice = hospital()
    for values in twice["people"].values():
        values.append(values[0])
    nobody = hospital()
    nobody["people"]["person"] = [None] * 60
    lost = hospital()
    del lost["visits"]["person"]
    for tables, words in (
        (twice, "one row for each person"),
        (nobody, "at least one row with a key"),
        (lost, "person"),
    ):
        with pytest.raises(DataError, match=words) as refused:
            open_units(declared(tables), SECRET)
        assert "p0" not in str(refused.value)
