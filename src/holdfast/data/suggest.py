"""A first draft of a schema, for the owner's own eyes.

This is the only place that learns a declaration from rows. Bounds and labels read off the data tell about
people in it, so the draft is to be edited and confirmed, never published as it is.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from holdfast.data.dialect import NUMBER
from holdfast.data.duckdb_dialect import DUCKDB
from holdfast.data.engine import Engine
from holdfast.data.files import CSV_SUFFIXES, csv_header, csv_relation, parquet_files, parquet_relation
from holdfast.errors import DataError
from holdfast.query.column import MAX_LENGTH
from holdfast.query.schema import (
    Boolean,
    Category,
    ColumnType,
    Date,
    Integer,
    Real,
    Schema,
    Text,
    Time,
    Timestamp,
)
from holdfast.query.time_reading import CLOCK, ZONE

MAX_LABELS = 50
"""A text column with more distinct values than this has no labels: it is proposed as a comment, to be read as Text."""

_LARGEST = sys.float_info.max
_NARROWEST = 1e-300
"""A Real that is narrower has no step: it would be less than the least float."""

_WORDS = ("true", "false", "t", "f", "yes", "no")
_INTEGER = "[+-]?[0-9]{1,18}"
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?"
_MOMENT = f"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{CLOCK}{ZONE}?"


def suggest_toml(path: str | os.PathLike[str]) -> str:
    """The text of a schema file to be edited: what `suggest_schema` proposes, and other texts as comments."""
    columns = suggested_columns(os.fspath(path))
    texts = {name: kind for name, kind in columns.items() if isinstance(kind, Text)}
    declared = {name: kind for name, kind in columns.items() if name not in texts}
    comments = (
        "# Texts whose keys nobody declared; take away the # to ask about them (docs/keys.md).\n"
        + "".join(f"# {line}".rstrip() + "\n" for line in Schema.from_mapping(texts).to_toml().splitlines())
        if texts
        else ""
    )
    return (Schema.from_mapping(declared).to_toml() + "\n" if declared else "") + comments


def suggest_schema(path: str | os.PathLike[str]) -> Schema:
    """Propose a schema for a CSV file, a Parquet file, folder or pattern. It reads the data: owner only.

    Bounds are rounded outwards to round numbers, dates to whole years. Texts with many values, and columns that fit no
    declaration, are left out.
    Cost: up to three passes over the file for each column, about 1 s a million rows of CSV and column.
    """
    text = os.fspath(path)
    columns = {name: kind for name, kind in suggested_columns(text).items() if not isinstance(kind, Text)}
    if not columns:
        raise DataError(f"expected columns that a schema can declare, got none in {text}")
    return Schema.from_mapping(columns)


def suggested_columns(text: str) -> dict[str, ColumnType]:
    """What each column may be declared as."""
    engine = Engine()
    refusal = f"expected a complete CSV or Parquet file, got another one or nothing: {text}"
    try:
        relation, names = _relation(text)
        types = engine.types(relation, refusal)
        columns: dict[str, ColumnType] = {}
        for inner, duckdb_type in types.items():
            column = _column(engine, relation, DUCKDB.quoted(inner), DUCKDB.family(duckdb_type), refusal)
            name = names.get(inner, inner)
            if column is not None and name and name.isprintable() and name not in columns:
                columns[name] = column
    finally:
        engine.close()
    columns.pop("file_row_number", None)
    if not columns:
        raise DataError(f"expected columns that a schema can declare, got none in {text}")
    return columns


def _relation(path: str) -> tuple[str, dict[str, str]]:
    """What to read, and how the file calls its columns."""
    if path.endswith(CSV_SUFFIXES):
        header = csv_header(Path(path))
        return csv_relation(Path(path), header), {f"c{index}": name for index, name in enumerate(header)}
    files = parquet_files(path)
    if not files:
        raise DataError(f"expected a CSV or Parquet file, got nothing of the kind at {path}")
    return parquet_relation([os.path.abspath(file) for file in files]), {}


def _column(engine: Engine, relation: str, x: str, family: str, refusal: str) -> ColumnType | None:
    def summary(expressions: str) -> tuple[Any, ...]:
        return engine.rows(f"SELECT {expressions} FROM {relation}", refusal)[0]

    match family:
        case "boolean":
            return Boolean()
        case "whole" | "wide":
            return _integer(summary(f"MIN({x}), MAX({x})"))
        case "float" | "decimal":
            return _real(summary(_finite_ends(f"CAST({x} AS DOUBLE)")))
        case "date":
            return _date(summary(f"YEAR(MIN({x})), YEAR(MAX({x}))"))
        case "time" | "nanoseconds" | "instant":
            timed = f"COUNT(*) FILTER (EPOCH_US({x}) % 86400000000 <> 0)"
            return _date(summary(f"YEAR(MIN({x})), YEAR(MAX({x})), {timed}"))
        case "clock":
            return Time()
        case "text":
            return _text(engine, relation, x, summary, refusal)
    return None


def _text(
    engine: Engine, relation: str, x: str, summary: Callable[[str], tuple[Any, ...]], refusal: str
) -> ColumnType | None:
    value = f"TRIM(CAST({x} AS VARCHAR))"
    words = f"LOWER({value}) IN ({', '.join(map(DUCKDB.text, _WORDS))})"
    kinds = [words, *(DUCKDB.matches(value, pattern) for pattern in (_INTEGER, NUMBER, _DAY, _MOMENT, CLOCK))]
    filled, *fitting = summary(f"COUNT({x}), " + ", ".join(f"COUNT({x}) FILTER ({kind})" for kind in kinds))
    if filled == 0:
        return None
    if fitting[0] == filled:
        return Boolean()
    if fitting[1] == filled:
        number = f"TRY_CAST({value} AS HUGEINT)"
        return _integer(summary(f"MIN({number}), MAX({number})"))
    if fitting[2] == filled:
        return _real(summary(_finite_ends(f"TRY_CAST({value} AS DOUBLE)")))
    if fitting[3] == filled:
        day = f"TRY_CAST(SUBSTR({value}, 1, 10) AS DATE)"
        timed = fitting[4] == filled and summary(f"COUNT({x}) FILTER ({value} NOT LIKE '%00:00:00%')")[0]
        return _date((*summary(f"YEAR(MIN({day})), YEAR(MAX({day}))"), timed))
    if fitting[5] == filled:
        return Time()
    found = engine.rows(
        f"SELECT DISTINCT CAST({x} AS VARCHAR) FROM {relation} WHERE {x} IS NOT NULL LIMIT {MAX_LABELS + 1}",
        refusal,
    )
    labels = sorted(row[0] for row in found)
    if any("\0" in label for label in labels):
        return None
    if len(labels) <= MAX_LABELS:
        return Category(*labels)
    longest = int(summary(f"MAX(LENGTH(CAST({x} AS VARCHAR)))")[0])
    return Text(min(1 << max(longest - 1, 1).bit_length(), MAX_LENGTH))


def _integer(bounds: tuple[Any, ...]) -> ColumnType | None:
    if bounds[0] is None or bounds[1] - bounds[0] > 2**60 or max(map(abs, bounds)) > 2**60:
        return None
    unit = max(1, math.ceil(_unit(int(bounds[1]) - int(bounds[0]))))
    return Integer(int(bounds[0]) // unit * unit, -(-int(bounds[1]) // unit) * unit)


def _real(bounds: tuple[Any, ...]) -> ColumnType | None:
    if bounds[0] is None or not math.isfinite(2 * (bounds[1] - bounds[0])):
        return None
    least, most = bounds
    # One number has no width: then its own size says what is round, since 1e18 + 1 is 1e18.
    unit = _unit(most - least) if least < most else max(1.0, _unit(abs(least)))
    lo, hi = math.floor(least / unit) * unit, math.ceil(most / unit) * unit
    lo, hi = max(min(lo, least), -_LARGEST), max(hi, most)
    return Real(lo, min(hi if hi > lo else lo + unit, _LARGEST))


def _date(found: tuple[Any, ...]) -> ColumnType | None:
    """Whole years, of seconds where any value has a time of day."""
    first, last, *timed = found
    if first is None or not 1 <= first <= last <= 9999:
        return None
    kind = Timestamp if any(timed) else Date
    return kind(date(first, 1, 1), date(last, 12, 31))


def _unit(width: float) -> float:
    """A round number (1, 2 or 5 times a power of ten) that goes at most ten times into the width."""
    if width <= 0:
        return 1.0
    width = max(width, _NARROWEST)
    power = 10.0 ** math.floor(math.log10(width / 10))
    return next(step * power for step in (1, 2, 5, 10, 20) if step * power * 10 >= width)


def _finite_ends(number: str) -> str:
    return ", ".join(f"{end}({number}) FILTER (ISFINITE({number}))" for end in ("MIN", "MAX"))
