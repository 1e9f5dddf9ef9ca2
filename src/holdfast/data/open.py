"""One door for rows of every kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from holdfast.data.arrays import arrays_source, is_pandas, pandas_source
from holdfast.data.duckdb import DuckSource, relation_source, stream_source
from holdfast.data.files import CSV_SUFFIXES, PARQUET_SUFFIXES, csv_source, parquet_files, parquet_source
from holdfast.data.frame import FrameSource
from holdfast.data.manifest import MANIFEST_NAME, read_manifest
from holdfast.data.postgres import PostgresSource
from holdfast.data.save import Progress, check_target, save_store
from holdfast.data.source import Source
from holdfast.data.spark import SparkSource, is_spark
from holdfast.data.store import StoreSource
from holdfast.data.suggest import suggest_schema, suggest_toml
from holdfast.data.unit_store import UnitStore
from holdfast.errors import DataError, InputError, SchemaError
from holdfast.query.calling import fitting
from holdfast.query.schema import Schema
from holdfast.query.unit_schema import UnitSchema

__all__ = ["ingest", "open_source", "suggest_schema", "suggest_toml"]

POSTGRES = ("postgresql://", "postgres://")
MEMORY_BYTES = 2**30
"""Tables whose codes take less than this are read into memory, where every question is quickest."""


@fitting
def open_source(
    data: object, schema: Schema | None = None, *, in_memory: bool | None = None, table: str | None = None
) -> Source:
    """Open rows of any supported kind under a declared schema.

    `data` is a mapping of names to arrays, a pandas, Polars or Arrow frame, a DuckDB relation, a Spark
    DataFrame, a postgresql:// URL (with `table=`), the path of a CSV file, of a Parquet file, folder or
    pattern, or of a saved store. Values are clamped to the declared bounds; unknown categories and unparsable
    values become NULL; nothing is learnt from the rows.
    Parquet files, stores, servers and clusters keep their rows; everything else is copied: later changes of
    the original do not reach the source. `in_memory` says whether rows are read into memory: by default those
    from small files and relations are, those of servers and clusters are not.
    """
    if schema is not None and not isinstance(schema, Schema):
        raise InputError(f"expected a Schema, got {type(schema).__name__}; write Schema(age=Integer(0, 120))")
    if in_memory is not None and not isinstance(in_memory, bool):
        raise InputError(f"expected True, False or None for in_memory, got {type(in_memory).__name__}")
    is_url = isinstance(data, str) and data.startswith(POSTGRES)
    if is_url != (table is not None):
        raise InputError(
            'expected table="name" with a postgresql:// URL and only there, got one without the other'
        )
    if isinstance(data, str) and table is not None:
        return _settled(PostgresSource(data, table, _declared(schema)), in_memory or False)
    if is_spark(data):
        return _settled(SparkSource(data, _declared(schema)), in_memory or False)
    if isinstance(data, str | os.PathLike):
        path = os.fspath(data)
        if not isinstance(path, str) or "\0" in path:
            raise InputError("expected the path of a file or folder as text, got another kind of path")
        if (Path(path) / MANIFEST_NAME).exists() or path.rstrip("/").endswith(".hf"):
            return _open_store(path, schema)
        return _settled(_open_files(path, _declared(schema)), in_memory)
    if is_pandas(data, "DataFrame"):
        return pandas_source(data, _declared(schema))
    if isinstance(data, Mapping):
        return arrays_source(data, _declared(schema))
    if type(data).__name__ == "DuckDBPyRelation":
        return _settled(relation_source(data, _declared(schema)), in_memory)
    if hasattr(data, "__arrow_c_stream__"):
        return _settled(stream_source(data, _declared(schema)), True)
    raise InputError(
        "expected a mapping of arrays, a pandas, Polars, Arrow or Spark frame, a DuckDB relation, a postgresql:// "
        f"URL, or the path of a CSV file, a Parquet file or a store, got {type(data).__name__}"
    )


def ingest(
    path: str | os.PathLike[str],
    store_path: str | os.PathLike[str],
    schema: Schema,
    *,
    rows_per_unit: int = 1,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> StoreSource:
    """Copy a file of any size into a store.

    `progress` is called with (done, total) in units that are the same throughout one call.
    Cost: bounded memory (5 million rows: 250 MB); Parquet is read in one pass, a CSV file goes through a
    temporary database beside the store, which takes about as much room as the store. Killed, it may leave
    hidden folders `.holdfast-*` or `.NAME.*.partial` beside the store, which can be removed.
    """
    check_target(store_path, overwrite)
    report = saving = progress or (lambda done, total: None)
    if is_csv(path):
        saving = partial(_second_half, report)
    beside = Path(os.path.abspath(store_path)).parent
    with closing(open_beside(path, schema, beside, lambda part: report(int(500 * part), 1000))) as source:
        return save_store(
            source, store_path, rows_per_unit=rows_per_unit, overwrite=overwrite, progress=saving
        )


def open_beside(
    data: object, schema: Schema, folder: Path, progress: Callable[[float], None], table: str | None = None
) -> Source:
    """Rows of any size where they lie; those of a CSV file in a temporary database inside a folder, with progress."""
    if not is_csv(data):
        return open_source(data, schema, in_memory=False, table=table)
    path = os.fspath(cast("str | os.PathLike[str]", data))
    _check_exists(path)
    return csv_source(Path(path), schema, folder=folder, progress=progress)


def is_csv(data: object) -> bool:
    """Whether it is the path of a CSV file, all of which is copied when it is opened."""
    return isinstance(data, str | os.PathLike) and str(os.fspath(data)).endswith(CSV_SUFFIXES)


def _second_half(report: Progress, done: int, total: int) -> None:
    report(500 + 500 * done // total, 1000)


def open_store(path: str | os.PathLike[str]) -> StoreSource | UnitStore:
    """Open a saved folder, of rows or of units."""
    return UnitStore(path) if isinstance(read_manifest(Path(path)).schema, UnitSchema) else StoreSource(path)


def _open_store(path: str, schema: Schema | None) -> StoreSource | UnitStore:
    source = open_store(path)
    if schema is not None and schema != source.schema:
        raise SchemaError(f"expected the schema that {path} was saved with, got another one; leave it out")
    return source


def _open_files(path: str, schema: Schema) -> DuckSource:
    if path.endswith(CSV_SUFFIXES):
        _check_exists(path)
        return csv_source(Path(path), schema)
    files = parquet_files(path)
    if files and all(file.name.endswith(PARQUET_SUFFIXES) for file in files):
        return parquet_source(files, schema)
    _check_exists(path)
    known = ", ".join((*CSV_SUFFIXES, *PARQUET_SUFFIXES))
    raise DataError(f"expected a file ending in {known}, a folder of Parquet files, or a store, got {path}")


def _check_exists(path: str) -> None:
    if not os.path.exists(path):
        raise DataError(f"expected a file or folder, got nothing at {path}")


def _declared(schema: Schema | None) -> Schema:
    if schema is None:
        raise InputError(
            "expected a schema for this kind of data, got none; only a saved store brings its own (`holdfast ingest` "
            "writes one)"
        )
    return schema


def _settled(source: Source, in_memory: bool | None) -> Source:
    """The same rows in memory if they are small or if the caller insists."""
    names = tuple(source.schema)
    if in_memory is None:
        in_memory = source.rows * sum(source.schema[name].dtype.itemsize for name in names) <= MEMORY_BYTES
    if not in_memory:
        return source
    codes: dict[str, Any] = {name: np.empty(source.rows, source.schema[name].dtype) for name in names}
    first = 0
    for block in source.scan(names):
        length = len(block[names[0]])
        for name, array in block.items():
            codes[name][first : first + length] = array
        first += length
    source.close()
    return FrameSource(source.schema, codes, fingerprint=source.fingerprint, words=source.words)
