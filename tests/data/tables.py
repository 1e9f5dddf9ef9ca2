"""One table, written down in every form that can be opened."""

from __future__ import annotations

import csv
import datetime
import functools
import itertools
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from services import postgres, spark

from holdfast.data.lookup import Lookup, with_lookups
from holdfast.data.open import ingest, open_source
from holdfast.data.save import save_store
from holdfast.data.source import Source
from holdfast.data.unit_open import declared_units, open_units
from holdfast.data.unit_store import save_units
from holdfast.query.schema import Boolean, Category, Date, Integer, Real, Schema, Text

LABELS = ("no", "yes", "it's", 'say "hi"', "ünï ☃", " padded ", "a,b\nc", "NULL")
SCHEMA = Schema.from_mapping(
    {
        "age": Integer(0, 120),
        "wide": Integer(-(2**61), 2**60),
        "income": Real(-1.5, 500_000),
        'kind of "thing"': Category(*LABELS),
        "insured": Boolean(),
        "visit": Date("2020-01-01", "2026-12-31"),
        "note": Text(8),
    }
)
TEXTS = (
    "a",
    "ab",
    "a%b",
    "B_",
    "cafe\u0301",
    "caf\u00e9",
    "\U0001f600 hi",
    "12345678",
    "123456789",
    "e\u0301" * 8,
    "x" * 17,
)
"""Two ways to write one text; one of more code points before it is brought into NFC; and some that are too long."""
TYPES = {
    "age": pa.int64(),
    "wide": pa.int64(),
    "income": pa.float64(),
    'kind of "thing"': pa.string(),
    "insured": pa.bool_(),
    "visit": pa.date32(),
    "note": pa.string(),
}
Columns = dict[str, list[Any]]
AGES = {
    "age": [*range(90), 120, 130, None],
    "stage": ["young"] * 30 + ["old"] * 60 + ["ancient", "never", "never"],
}
NOTES = {
    "text": ["a", "cafe\u0301", "B_", "nobody's"],
    "insured": [True, True, False, True],
    "weight": [0.5, 1.5, None, 9.0],
}
LOOKUPS = {"ages": Lookup(AGES, "age"), "notes": Lookup(NOTES, {"note": "text", "insured": "insured"})}


def arrow(columns: Columns) -> pa.Table:
    return pa.table({name: pa.array(columns[name], TYPES[name]) for name in columns})


def write_csv(columns: Columns, path: Path) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def as_arrays(columns: Columns) -> dict[str, Any]:
    """The columns as the NumPy dtypes that can hold them."""
    result: dict[str, Any] = {}
    for name, values in columns.items():
        whole = all(value is not None for value in values)
        if name == "income":
            result[name] = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
        elif name == "visit":
            result[name] = np.array(values, dtype="datetime64[D]")
        elif name in ("age", "wide") and whole:
            result[name] = np.array(values, dtype=np.int64)
        elif name == "insured" and whole:
            result[name] = np.array(values, dtype=np.bool_)
        else:
            result[name] = np.array(values, dtype=object)
    return result


def from_pandas(columns: Columns) -> pd.DataFrame:
    kinds = {"age": "Int64", "wide": "Int64", "income": "float64", "insured": "boolean"}
    frame = pd.DataFrame({name: pd.Series(v, dtype=kinds.get(name, "object")) for name, v in columns.items()})
    return frame.astype({'kind of "thing"': "str", "note": "string"})


def from_parquet(columns: Columns, folder: Path, *, pieces: int = 1, **options: Any) -> Source:
    rows = len(columns["age"])
    table, size = arrow(columns), -(-rows // pieces)
    shutil.rmtree(folder / "pieces", ignore_errors=True)
    (folder / "pieces").mkdir()
    for piece, first in enumerate(range(0, rows, size)):
        part = table.slice(first, size)
        pq.write_table(part, folder / "pieces" / f"{piece:02d}.parquet", row_group_size=max(1, size // 3))
    path = folder / "pieces" if pieces > 1 else folder / "pieces" / "00.parquet"
    return open_source(path, SCHEMA, **options)


def from_relation(columns: Columns, **options: Any) -> Source:
    connection = duckdb.connect()
    table = arrow(columns)
    connection.register("given", table)
    connection.execute("CREATE TABLE people AS SELECT * FROM given")
    connection.unregister("given")
    return open_source(connection.table("people"), SCHEMA, **options)


def from_csv(columns: Columns, folder: Path, **options: Any) -> Source:
    return open_source(write_csv(columns, folder / "people.csv"), SCHEMA, **options)


def from_store(columns: Columns, folder: Path) -> Source:
    return save_store(open_source(as_arrays(columns), SCHEMA), folder / "people.hf", overwrite=True)


def ingested(columns: Columns, folder: Path) -> Source:
    return ingest(write_csv(columns, folder / "in.csv"), folder / "in.hf", SCHEMA, overwrite=True)


def as_units(columns: Columns, folder: Path, *, saved: bool) -> Source:
    """The rows as people who own events; in the order of their keys, which is that of the rows."""
    rows = len(columns["age"])
    data = {
        "people": {**columns, "person": list(range(rows))},
        "visits": {"person": [0, 0, rows - 1], "cost": [1, 2, 3]},
    }
    schemas = {"people": SCHEMA, "visits": Schema(cost=Integer(0, 9))}
    units = open_units(declared_units(data, schemas, "person", {"visits": 2}), bytes(16))
    return save_units(units, folder / "units.hf", overwrite=True) if saved else units


SOURCES: dict[str, Callable[[Columns, Path], Source]] = {
    "dict": lambda columns, folder: open_source(as_arrays(columns), SCHEMA),
    "lists": lambda columns, folder: open_source(columns, SCHEMA),
    "pandas": lambda columns, folder: open_source(from_pandas(columns), SCHEMA),
    "polars": lambda columns, folder: open_source(pl.DataFrame(arrow(columns)), SCHEMA),
    "arrow": lambda columns, folder: open_source(arrow(columns), SCHEMA),
    "arrow-reader": lambda columns, folder: open_source(arrow(columns).to_reader(max_chunksize=7), SCHEMA),
    "csv": from_csv,
    "csv-in-duckdb": lambda columns, folder: from_csv(columns, folder, in_memory=False),
    "parquet": from_parquet,
    "parquet-in-place": lambda columns, folder: from_parquet(columns, folder, in_memory=False),
    "parquet-folder": lambda columns, folder: from_parquet(columns, folder, pieces=3, in_memory=False),
    "relation": lambda columns, folder: from_relation(columns),
    "relation-in-duckdb": lambda columns, folder: from_relation(columns, in_memory=False),
    "store": from_store,
    "store-from-csv": ingested,
    "lookups": lambda columns, folder: with_lookups(from_relation(columns, in_memory=False), LOOKUPS),
    "units": lambda columns, folder: as_units(columns, folder, saved=False),
    "lookups-of-units": lambda columns, folder: with_lookups(as_units(columns, folder, saved=False), LOOKUPS),
    "store-of-units": lambda columns, folder: as_units(columns, folder, saved=True),
}
FROM_CSV = {"csv", "csv-in-duckdb", "store-from-csv"}


def from_postgres(columns: Columns, folder: Path, **options: Any) -> Source:
    server, table = postgres(), f"people_{next(_serial)}"
    names = ["age", "wide", "income", 'kind of ""thing""', "insured", "visit", "note"]
    types = ["bigint", "bigint", "float8", "text", "bool", "date", "text"]
    declared = ", ".join(f'"{name}" {kind}' for name, kind in zip(names, types, strict=True))
    with psycopg.connect(server.url) as connection, connection.cursor() as cursor:
        # In one transaction, so that rows lie in the order in which they come: no gaps of older pages are filled.
        cursor.execute(f"CREATE TABLE {table} ({declared})")  # type: ignore[arg-type]
        with cursor.copy(f"COPY {table} FROM STDIN") as copy:  # type: ignore[arg-type]
            for row in zip(*columns.values(), strict=True):
                copy.write_row(row)
    return open_source(server.url, SCHEMA, table=table, **options)


def from_spark(columns: Columns, folder: Path, **options: Any) -> Source:
    rows = len(columns["age"])
    pieces = [arrow(columns).slice(first, -(-rows // 3)) for first in range(0, rows, -(-rows // 3))]
    frame = functools.reduce(lambda a, b: a.union(b), [spark().createDataFrame(piece) for piece in pieces])
    return open_source(frame, SCHEMA, **options)


_serial = itertools.count()
SERVERS: dict[str, Callable[[Columns, Path], Source]] = {
    "postgres": from_postgres,
    "postgres-in-memory": lambda columns, folder: from_postgres(columns, folder, in_memory=True),
}
"""Sources that take longer to open; their codes have tests of their own. Spark has one file for everything."""


def generated(rows: int, seed: int) -> Columns:
    """A table with values inside, at and beyond the bounds, and NULLs in every column."""
    random = np.random.default_rng(seed)

    def mixed(values: Sequence[Any]) -> list[Any]:
        hidden = random.random(rows) < 0.1
        return [None if hide else value for hide, value in zip(hidden, values, strict=True)]

    first = datetime.date(2019, 6, 1)
    labels = (*LABELS, "undeclared", "No")
    return {
        "age": mixed(random.integers(-20, 150, rows).tolist()),
        "wide": mixed(random.integers(-(2**63), 2**63 - 1, rows).tolist()),
        "income": mixed((random.standard_normal(rows) * 3e5).tolist()),
        'kind of "thing"': mixed([labels[i] for i in random.integers(0, len(labels), rows)]),
        "insured": mixed([bool(b) for b in random.integers(0, 2, rows)]),
        "visit": mixed([first + datetime.timedelta(int(d)) for d in random.integers(0, 3000, rows)]),
        "note": mixed([TEXTS[i] for i in random.integers(0, len(TEXTS), rows)]),
    }


def whole(source: Source, columns: Sequence[str] | None = None) -> dict[str, np.ndarray[Any, Any]]:
    """All codes of a source."""
    names = list(columns or source.schema)
    blocks = list(source.scan(names))
    return {name: np.concatenate([block[name] for block in blocks]) for name in names}
