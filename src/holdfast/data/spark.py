"""Rows in a Spark DataFrame: the cluster draws rows and adds them up, the session answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.data.arrays import check_names
from holdfast.data.duckdb import check_distinct
from holdfast.data.encode import encode_sql
from holdfast.data.pool import PooledSource
from holdfast.data.source import (
    BLOCK_ROWS,
    Block,
    Measurement,
    checked_columns,
    checked_ids,
    distinct,
)
from holdfast.data.spark_dialect import SPARK
from holdfast.data.texts import raw_text, read_texts, refuse_too_many
from holdfast.data.unit_key import origin
from holdfast.errors import DataError, HoldfastError
from holdfast.query.schema import Real, Schema

POOL_ROWS = 2**20
"""Rows drawn ahead at a time: their ids are broadcast to all machines."""

RANGE_ROWS = 2**20
"""Rows fetched by one job of a scan."""

_LOCAL_BITS = 33
"""Spark numbers rows by partition * 2^33 + place in the partition."""

_RELATION = "codes_of_the_frame"
Result = TypeVar("Result")


class SparkSource(PooledSource):
    """A `Source` over a Spark DataFrame, encoded and cached on the cluster.

    The codes and the number of every row are persisted (in memory, then on disk). A part that is lost is
    computed again from the frame, so the frame must give the same rows in the same order every time it is
    computed: read it from files or a table, or `checkpoint()` it; a frame with `rand()` or a shuffle whose
    order is open must be written down first. A drawn row that is missing is noticed and refused.
    Row ids are drawn on the driver from cryptographic bits; executors get the ids to look for and no seed.
    Cost: opening encodes and counts; `totals` is one query; `gather` is one pass, so `draw` takes from a pool.
    """

    def __init__(self, frame: Any, schema: Schema) -> None:
        super().__init__(schema)
        self._process = os.getpid()
        self._closed = False
        self._view = f"holdfast_{self.fingerprint}"
        self._names = {name: f"c{index}" for index, name in enumerate(schema)}
        self._session = frame.sparkSession
        check_frame(frame, schema)
        types = dict(frame.dtypes)
        frame, places = self._with_places(frame, schema, types)
        expressions = _expressions(schema, types, places)
        self._codes: Any = self._attempt(lambda: frame.selectExpr(*expressions).persist())
        try:
            self._numbers, counts = self._attempt(self._count)
            self._starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            self._begin(POOL_ROWS)
        except BaseException:
            self.close()
            raise

    def _with_places(
        self, frame: Any, schema: Schema, types: Mapping[str, str]
    ) -> tuple[Any, dict[str, str]]:
        """The frame with the code of every text beside it, and what these columns are called.

        The dictionary travels to all machines; joining it keeps the rows in their places.
        """
        places: dict[str, str] = {}
        for index, (name, column) in enumerate(schema.texts.items()):
            raw, code = f"holdfast raw {index}", f"holdfast code {index}"
            text = raw_text(SPARK, column, name, types[name])
            words, codes = read_texts(column, self._attempt(partial(_distinct, frame, text)))
            refuse_too_many(name, codes)
            self.words = {**self.words, name: words}
            frame = self._attempt(partial(_joined, frame, codes, raw, code, text))
            places[name] = SPARK.quoted(code)
        return frame, places

    def _count(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The partitions that hold rows, and how many each holds. Fills the cache."""
        self._codes.createOrReplaceTempView(self._view)
        partition = f"SHIFTRIGHT(row, {_LOCAL_BITS})"
        found = self._session.sql(
            f"SELECT {partition} AS p, COUNT(*) AS n, MAX(row) AS last FROM {self._view} GROUP BY {partition}"
        ).toArrow()
        partitions, counts, last = (
            found.column(name).to_numpy().astype(np.int64) for name in ("p", "n", "last")
        )
        if np.any(last - (partitions << _LOCAL_BITS) + 1 != counts):
            raise DataError("expected rows numbered without gaps, got others; checkpoint the frame first")
        order = np.argsort(partitions)
        return partitions[order], counts[order]

    @property
    def rows(self) -> int:
        return int(self._starts[-1])

    def _blocks(self, names: tuple[str, ...]) -> Iterator[Block]:
        for first in range(0, self.rows, RANGE_ROWS):
            last = min(first + RANGE_ROWS, self.rows)
            codes = self._range(names, first, last)
            for start in range(0, last - first, BLOCK_ROWS):
                yield {name: array[start : start + BLOCK_ROWS] for name, array in codes.items()}

    def _range(self, names: tuple[str, ...], first: int, last: int) -> Block:
        low, high = self._row_numbers(np.array([first, last - 1]))
        inside = f"row >= {low} AND row <= {high}"
        return self._attempt(lambda: self._collect(self._codes.where(inside), names, last - first))

    def gather(self, columns: Sequence[str], ids: NDArray[np.int64]) -> Block:
        names = checked_columns(columns, self.schema)
        wanted, places = distinct(np.clip(checked_ids(ids), 0, self.rows - 1), self.rows)
        if not len(wanted):
            return {name: np.empty(0, self.schema[name].dtype) for name in names}
        found = self._attempt(lambda: self._pick(names, self._row_numbers(wanted)))
        return {name: codes[places] for name, codes in found.items()}

    def _pick(self, names: tuple[str, ...], numbers: NDArray[np.int64]) -> Block:
        """Rows by increasing distinct numbers: one pass that meets a broadcast table of them."""
        import pyarrow

        given = self._session.createDataFrame(pyarrow.table({"given": numbers})).hint("broadcast")
        chosen = self._codes.join(given, self._codes["row"] == given["given"], "left_semi")
        return self._collect(chosen, names, len(numbers))

    def _collect(self, chosen: Any, names: tuple[str, ...], rows: int) -> Block:
        """The codes of some rows, in the order of their numbers."""
        columns = [
            f"COALESCE({self._names[name]}, CAST('NaN' AS DOUBLE)) AS {self._names[name]}"
            if isinstance(self.schema[name], Real)
            else self._names[name]
            for name in names
        ]
        table = chosen.selectExpr("row", *columns).toArrow()
        if table.num_rows != rows:
            raise DataError("expected the rows that were opened, got another number; open the frame again")
        order = np.argsort(table.column("row").to_numpy())
        return {
            name: table.column(self._names[name]).to_numpy().astype(self.schema[name].dtype)[order]
            for name in names
        }

    def _row_numbers(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Spark's numbers of the rows at these positions."""
        part = np.searchsorted(self._starts, ids, side="right") - 1
        numbers: NDArray[np.int64] = (self._numbers[part] << _LOCAL_BITS) + ids - self._starts[part]
        return numbers

    def totals(self, measurement: Measurement) -> NDArray[np.int64]:
        chosen = ", ".join(f"{self._names[name]} AS {SPARK.quoted(name)}" for name in measurement.columns)
        relation = f"(SELECT {chosen or 'row'} FROM {self._view}) AS codes"
        question = SPARK.question(measurement.sql(_RELATION)).replace(_RELATION, relation, 1)
        table = self._attempt(lambda: self._session.sql(question).toArrow())
        result = np.zeros(measurement.size, dtype=np.int64)
        result[table.column(0).to_numpy()] = table.column(1).to_numpy()
        return result

    def close(self) -> None:
        if self._closed or self._process != os.getpid():
            return
        if hasattr(self, "_pool"):
            self._pool.close()
        self._closed = True
        try:
            self._session.catalog.dropTempView(self._view)
            self._codes.unpersist()
        except Exception:
            return  # a session that was stopped has nothing left to drop

    def _attempt(self, action: Callable[[], Result]) -> Result:
        """Run something on the cluster. What Spark says about a failure may quote rows, so it stays inside."""
        if self._closed:
            raise DataError("expected an open source, got a closed one; open the frame again")
        if self._process != os.getpid():
            raise DataError("expected the process that opened the frame, got a forked child; open it there")
        try:
            return action()
        except HoldfastError:
            raise
        except Exception as error:
            kind = type(error).__name__
        # Raised outside the handler: not even the chain of causes may carry Spark's message.
        raise DataError(f"expected Spark to read the rows, got a failure ({kind}); ask again")


def is_spark(value: Any) -> bool:
    """Whether a value is a Spark DataFrame, without importing pyspark."""
    return any(
        base.__name__ == "DataFrame" and base.__module__.split(".")[:2] == ["pyspark", "sql"]
        for base in type(value).__mro__
    )


def _distinct(frame: Any, text: str) -> list[bytes | None]:
    """Bytes, because Spark's texts need not be UTF-8."""
    found: list[bytes | None] = (
        frame.selectExpr(f"CAST({text} AS BINARY) AS t").distinct().toArrow().column("t").to_pylist()
    )
    return found


def _joined(frame: Any, codes: Mapping[str, int], raw: str, code: str, text: str) -> Any:
    from pyspark.sql.functions import broadcast, expr

    shape = f"{SPARK.quoted(raw)} STRING, {SPARK.quoted(code)} BIGINT"
    words = frame.sparkSession.createDataFrame(list(codes.items()), shape)
    return frame.join(broadcast(words), expr(text) == words[SPARK.quoted(raw)], "left")


def check_frame(frame: Any, schema: Schema) -> None:
    """Refuse a frame in which a declared column is missing, or there twice."""
    check_distinct(schema)
    types = list(frame.dtypes)
    check_names(schema, [name for name, _ in types])
    for name in schema:
        if sum(other.lower() == name.lower() for other, _ in types) > 1:
            raise DataError(
                f"expected one column {name!r}, got several that differ by case only; rename them"
            )


def _expressions(schema: Schema, types: Mapping[str, str], places: Mapping[str, str]) -> list[str]:
    """Codes under the names c0, c1, ..., and the number of each row."""
    raw = {name: origin(schema, name) for name in schema}
    chosen = [
        encode_sql(SPARK, schema[name], raw[name], types[raw[name]], places.get(name)) for name in schema
    ]
    return [
        *(f"{text} AS c{index}" for index, text in enumerate(chosen)),
        "MONOTONICALLY_INCREASING_ID() AS row",
    ]
