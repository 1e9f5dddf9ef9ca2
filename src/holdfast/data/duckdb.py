"""Rows behind DuckDB: exact totals are pushed down as SQL, rows come out in ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.data.arrays import check_names
from holdfast.data.duckdb_dialect import DUCKDB
from holdfast.data.encode import encode_sql
from holdfast.data.engine import GIVEN, STREAM, Engine
from holdfast.data.pool import PooledSource
from holdfast.data.source import (
    BLOCK_ROWS,
    Block,
    Measurement,
    checked_columns,
    checked_ids,
    distinct,
)
from holdfast.data.texts import raw_text, read_texts
from holdfast.data.unit_key import origin
from holdfast.errors import DataError, SchemaError
from holdfast.query.dictionary import Words
from holdfast.query.schema import ColumnType, Real, Schema, Text

RANGE_ROWS = 2**20
"""Rows fetched by one statement: larger than a row group of the usual writers, small beside memory."""

CODES = "codes"
"""The view inside a private database whose columns are the codes, under the declared names."""

_TABLE = "snapshot"


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of rows: what stands behind FROM, the expression that numbers its rows from 0, how many."""

    relation: str
    row: str
    rows: int


class DuckSource(PooledSource):
    """A `Source` over a private DuckDB database with a relation `codes`.

    `expressions` gives the SQL of each column's code over a part; `check` is called before every reading and
    raises when the rows are no longer those that were opened. The database holds nothing else, and after
    opening it may read no file except those in `files`.
    Cost: `totals` is one pushed-down query; `gather` is one pass, so `draw` takes from a pool.
    """

    def __init__(
        self,
        engine: Engine,
        schema: Schema,
        expressions: Mapping[str, str],
        parts: Sequence[Part],
        *,
        files: Sequence[str] = (),
        check: Callable[[], None] = lambda: None,
        words: Mapping[str, Words] | None = None,
    ) -> None:
        super().__init__(schema)
        self.words = words or {}
        self._engine = engine
        self._expressions = dict(expressions)
        self._parts = tuple(parts)
        self._check = check
        self._rows = sum(part.rows for part in parts)
        self._begin()
        engine.lock(files)

    @property
    def rows(self) -> int:
        return self._rows

    def _blocks(self, names: tuple[str, ...]) -> Iterator[Block]:
        for part in self._parts:
            for first in range(0, part.rows, RANGE_ROWS):
                last = min(first + RANGE_ROWS, part.rows)
                codes = self._range(names, part, first, last)
                for start in range(0, last - first, BLOCK_ROWS):
                    yield {name: array[start : start + BLOCK_ROWS] for name, array in codes.items()}

    def _range(self, names: tuple[str, ...], part: Part, first: int, last: int) -> Block:
        self._check()
        fetched = self._engine.arrays(
            f"SELECT {self._select(names)} FROM {part.relation} "
            f"WHERE {part.row} >= {first} AND {part.row} < {last} ORDER BY {part.row}"
        )
        return self._codes(names, fetched, last - first)

    def _select(self, names: tuple[str, ...]) -> str:
        # NULL numbers leave DuckDB as masks; as NaN they are already what the evaluator wants.
        chosen = [
            f"COALESCE({self._expressions[name]}, CAST('NaN' AS DOUBLE)) AS c{index}"
            if isinstance(self.schema[name], Real)
            else f"{self._expressions[name]} AS c{index}"
            for index, name in enumerate(names)
        ]
        return ", ".join(chosen)

    def _codes(self, names: tuple[str, ...], fetched: Mapping[str, NDArray[Any]], rows: int) -> Block:
        codes = {
            name: np.ma.getdata(fetched[f"c{index}"]).astype(self.schema[name].dtype, copy=False)
            for index, name in enumerate(names)
        }
        if any(len(array) != rows for array in codes.values()):
            raise DataError("expected the rows that were opened, got another number; open the data again")
        return codes

    def gather(self, columns: Sequence[str], ids: NDArray[np.int64]) -> Block:
        names = checked_columns(columns, self.schema)
        wanted, places = distinct(np.clip(checked_ids(ids), 0, self._rows - 1), self._rows)
        found = {name: np.empty(len(wanted), dtype=self.schema[name].dtype) for name in names}
        start = before = 0
        for part in self._parts:
            end = start + int(np.searchsorted(wanted[start:], before + part.rows))
            if end > start:
                for name, codes in self._picked(names, part, wanted[start:end] - before).items():
                    found[name][start:end] = codes
            start, before = end, before + part.rows
        return {name: codes[places] for name, codes in found.items()}

    def _picked(self, names: tuple[str, ...], part: Part, rows: NDArray[np.int64]) -> Block:
        """Rows of a part, by increasing distinct row numbers: one pass that meets a table of them."""
        self._check()
        fetched = self._engine.arrays(
            f"SELECT {self._select(names)} FROM {part.relation} "
            f"WHERE {part.row} IN (SELECT {GIVEN} FROM {GIVEN}) ORDER BY {part.row}",
            given=rows,
        )
        return self._codes(names, fetched, len(rows))

    def totals(self, measurement: Measurement) -> NDArray[np.int64]:
        self._check()
        result = np.zeros(measurement.size, dtype=np.int64)
        for position, total in self._engine.rows(measurement.sql(CODES)):
            result[int(position)] = int(total)
        return result

    def close(self) -> None:
        self._pool.close()
        self._engine.close()


def snapshot(engine: Engine, schema: Schema, fill: Callable[[str], None]) -> DuckSource:
    """A source over a table inside the engine, which is closed if anything fails.

    `fill` runs the text it is given followed by a SELECT of the codes in the schema's order, or of the raw texts
    (`raw_text`) of a text column, which become codes here. The table's own columns are c0, c1, ..., because a declared
    column may be called `rowid`; the view has the declared names.
    """
    plain = {name: f"c{index}" for index, name in enumerate(schema)}
    try:
        check_distinct(schema)
        fill(f"CREATE TABLE {_TABLE} ({', '.join(plain.values())}) AS ")
        words = {}
        for name, column in schema.texts.items():
            raw, code = plain[name], f"{plain[name]}_code"
            words[name], place = engine_words(
                engine, column, name, f"SELECT DISTINCT {raw} FROM {_TABLE}", raw
            )
            engine.run(f"ALTER TABLE {_TABLE} ADD COLUMN {code} UINTEGER")
            engine.run(f"UPDATE {_TABLE} SET {code} = {encode_sql(DUCKDB, column, name, 'VARCHAR', place)}")
            engine.run(f"ALTER TABLE {_TABLE} DROP COLUMN {raw}")
            plain[name] = code
        engine.run(f"CREATE VIEW {CODES} AS SELECT {select_list(plain)} FROM {_TABLE}")
        rows = int(engine.rows(f"SELECT COUNT(*) FROM {_TABLE}")[0][0])
        return DuckSource(
            engine,
            schema,
            plain,
            [Part(_TABLE, "rowid", rows)],
            words=words,
        )
    except BaseException:
        engine.close()
        raise


def engine_words(
    engine: Engine, column: Text, name: str, query: str, raw: str, refusal: str = ""
) -> tuple[Words, str]:
    """The dictionary of the texts that a query finds, and an expression for the code of a raw one."""
    words, places = read_texts(column, (row[0] for row in engine.rows(query, refusal)))
    table = DUCKDB.quoted(f"words of {name}")
    texts = np.array(list(places), dtype=object) if places else np.empty(0, dtype="U1")
    codes = np.fromiter(places.values(), np.uint32, len(places))
    engine.run(f'CREATE TABLE {table} ("raw text" VARCHAR, "its code" UINTEGER)')
    engine.insert(table, {"raw text": texts, "its code": codes})
    return words, f'(SELECT {table}."its code" FROM {table} WHERE {table}."raw text" = {raw})'


def stream_source(stream: object, schema: Schema) -> DuckSource:
    """A snapshot of anything with `__arrow_c_stream__`: Arrow, Polars, and others."""
    return _adopted(stream, schema, lambda types: select_list(code_expressions(schema, types)))


def relation_source(relation: Any, schema: Schema) -> DuckSource:
    """A snapshot of a DuckDB relation. Its own connection encodes it, so that only codes travel."""
    import duckdb

    try:
        types = dict(zip(relation.columns, map(str, relation.types), strict=True))
        encoded = relation.project(select_list(code_expressions(schema, types)))
    except duckdb.Error:
        encoded = None
    if encoded is None:  # raised here, so that DuckDB's message is not even a cause
        raise DataError("expected a DuckDB relation on an open connection, got one that cannot be read")
    return _adopted(encoded, schema, lambda types: "*")


def _adopted(stream: object, schema: Schema, chosen: Callable[[dict[str, str]], str]) -> DuckSource:
    engine = Engine()
    return snapshot(
        engine,
        schema,
        lambda create: engine.adopt(
            stream,
            lambda types: f"{create}SELECT {chosen(types)} FROM {STREAM}",
            "expected rows that DuckDB can read through Arrow, got a failure; convert unusual columns first",
        ),
    )


def code_expressions(schema: Schema, types: Mapping[str, str]) -> dict[str, str]:
    """For each declared column the SQL of its code, or of its raw text, over a relation with these column types."""
    check_names(schema, list(types))
    raw = {name: origin(schema, name) for name in schema}
    return {name: raw_code(schema[name], raw[name], types[raw[name]]) for name in schema}


def raw_code(column: ColumnType, name: str, engine_type: str) -> str:
    """The SQL of a column's code; of its raw text, where the code needs a dictionary."""
    if isinstance(column, Text):
        return raw_text(DUCKDB, column, name, engine_type)
    return encode_sql(DUCKDB, column, name, engine_type)


def select_list(expressions: Mapping[str, str]) -> str:
    """The columns of a relation of codes under the schema's names."""
    return ", ".join(f"{expression} AS {DUCKDB.quoted(name)}" for name, expression in expressions.items())


def check_distinct(schema: Schema) -> None:
    """SQL does not tell upper from lower case; a schema that does cannot live behind it."""
    folded: dict[str, str] = {}
    for name in schema:
        twin = folded.setdefault(name.lower(), name)
        if twin != name:
            raise SchemaError(
                f"expected names that differ by more than case, got {twin!r} and {name!r}; rename one"
            )
