"""CSV and Parquet files as sources, through DuckDB."""

from __future__ import annotations

import csv
import glob
import gzip
import os
from collections.abc import Callable
from pathlib import Path

from holdfast.data.arrays import check_names
from holdfast.data.duckdb import (
    CODES,
    DuckSource,
    Part,
    check_distinct,
    code_expressions,
    engine_words,
    raw_code,
    select_list,
    snapshot,
)
from holdfast.data.duckdb_dialect import DUCKDB
from holdfast.data.encode import encode_sql
from holdfast.data.engine import Engine
from holdfast.data.unit_key import origin
from holdfast.errors import DataError
from holdfast.query.schema import Schema

_ROW_NUMBER = "file_row_number"
CSV_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
PARQUET_SUFFIXES = (".parquet", ".pq")


def csv_source(
    path: Path,
    schema: Schema,
    *,
    folder: Path | None = None,
    progress: Callable[[float], None] | None = None,
) -> DuckSource:
    """A snapshot of a CSV file (UTF-8, a header line, fields quoted by "), in memory or inside `folder`.

    Every field is read as text, and then like a text in an array; types are declared, never guessed. An empty
    field is NULL, quoted or not. A file cut in the middle of a line is refused; one cut exactly between two
    lines cannot be told from a whole one.
    """
    header = csv_header(path)
    check_names(schema, header)
    raw = {name: origin(schema, name) for name in schema}
    for name in raw.values():
        if header.count(name) > 1:
            raise DataError(f"expected one column {name!r} in {path}, got {header.count(name)} of that name")
    chosen = {name: raw_code(schema[name], f"c{header.index(raw[name])}", "VARCHAR") for name in schema}
    select = f"SELECT {select_list(chosen)} FROM {csv_relation(path, header)}"
    refusal = (
        f"expected a complete CSV file in UTF-8 with {len(header)} fields on every line, "
        f"got another one: {path}; perhaps it ends in the middle"
    )
    engine = Engine(folder)
    if progress is None:
        return snapshot(engine, schema, lambda create: engine.run(create + select, refusal))
    return snapshot(engine, schema, lambda create: engine.watch(create + select, progress, refusal))


def csv_header(path: Path) -> list[str]:
    """The column names on the first line."""
    opened = gzip.open if path.name.endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            header = next(csv.reader(file, delimiter=_delimiter(path), strict=True), None)
    except (OSError, EOFError, UnicodeError, csv.Error):
        header = None
    if not header:
        raise DataError(f"expected a CSV file in UTF-8 with a header line, got another one: {path}")
    return header


def csv_relation(path: Path, header: list[str]) -> str:
    """The fields of a CSV file as texts, in columns c0, c1, ... whatever the header calls them."""
    columns = ", ".join(f"'c{index}': 'VARCHAR'" for index in range(len(header)))
    return (
        f"read_csv({DUCKDB.text(os.fspath(path))}, auto_detect = false, header = true, strict_mode = true, "
        f"delim = {DUCKDB.text(_delimiter(path))}, quote = '\"', escape = '\"', columns = {{{columns}}})"
    )


def parquet_source(files: list[Path], schema: Schema) -> DuckSource:
    """A source that reads Parquet files in place, one after the other in the order given.

    All files must hold the declared columns with the same types. A file that changes afterwards is noticed
    before the next reading and refused.
    """
    check_distinct(schema)
    engine = Engine()
    try:
        return _in_place(engine, [os.path.abspath(file) for file in files], schema)
    except BaseException:
        engine.close()
        raise


def _in_place(engine: Engine, paths: list[str], schema: Schema) -> DuckSource:
    before = _stamps(paths)
    types: dict[str, str] = {}
    parts = []
    for path in paths:
        refusal = f"expected a complete Parquet file, got another one: {path}; perhaps it ends in the middle"
        found = engine.types(parquet_relation([path]), refusal)
        check_names(schema, [name for name in found if name != _ROW_NUMBER])
        found = {raw: found[raw] for name in schema if (raw := origin(schema, name))}
        if (types or found) != found:
            raise DataError(
                f"expected the declared columns with equal types in all files, got others in {path}"
            )
        types = found
        rows = engine.rows(f"SELECT num_rows FROM parquet_file_metadata({DUCKDB.text(path)})", refusal)[0][0]
        parts.append(Part(parquet_relation([path]), _ROW_NUMBER, int(rows)))
    expressions, words = code_expressions(schema, types), {}
    for name, column in schema.texts.items():
        query = f"SELECT DISTINCT {expressions[name]} FROM {parquet_relation(paths)}"
        words[name], place = engine_words(engine, column, name, query, expressions[name])
        expressions[name] = encode_sql(DUCKDB, column, name, types[name], place)
    engine.run(f"CREATE VIEW {CODES} AS SELECT {select_list(expressions)} FROM {parquet_relation(paths)}")

    def check() -> None:
        if _stamps(paths) != before:
            raise DataError(
                "expected the Parquet files as they were opened, got changed ones; open them again"
            )

    return DuckSource(engine, schema, expressions, parts, files=paths, check=check, words=words)


def parquet_relation(paths: list[str]) -> str:
    """The rows of Parquet files, numbered within each file. Folder names (year=2020) give text columns."""
    listed = ", ".join(map(DUCKDB.text, paths))
    return f"read_parquet([{listed}], {_ROW_NUMBER} = true, hive_types_autocast = false)"


def parquet_files(pattern: str) -> list[Path]:
    """The Parquet files meant by a file, a folder or a pattern, in the order of their names."""
    path = Path(pattern)
    if path.is_file():
        return [path]
    if path.is_dir():
        found = [file for suffix in PARQUET_SUFFIXES for file in path.rglob(f"*{suffix}")]
    else:
        found = [Path(name) for name in glob.glob(pattern, recursive=True)]
    return sorted(file for file in found if file.name.endswith(PARQUET_SUFFIXES) and file.is_file())


def _delimiter(path: Path) -> str:
    return "\t" if ".tsv" in path.suffixes else ","


def _stamps(paths: list[str]) -> list[tuple[int, int, int]] | None:
    try:
        statuses = [os.stat(path) for path in paths]
    except OSError:
        return None
    return [(status.st_ino, status.st_size, status.st_mtime_ns) for status in statuses]
