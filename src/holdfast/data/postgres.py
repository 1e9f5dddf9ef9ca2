"""Rows in a PostgreSQL table: totals are pushed down as SQL, rows are reached by their place on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.data.arrays import check_names
from holdfast.data.encode import encode_sql
from holdfast.data.pool import PooledSource
from holdfast.data.postgres_dialect import POSTGRES
from holdfast.data.postgres_link import Link, OutOfRange, Query, Tids
from holdfast.data.postgres_table import (
    Layout,
    birth,
    find_table,
    measure,
    measure_again,
    order,
    refuse_another_order,
)
from holdfast.data.source import (
    BLOCK_ROWS,
    Block,
    Codes,
    Measurement,
    checked_columns,
    distinct,
    gather_by_scan,
    totals_by_scan,
)
from holdfast.data.texts import raw_text, read_texts, refuse_too_many
from holdfast.data.unit_key import origin
from holdfast.errors import DataError, InputError
from holdfast.noise.bits import Bits
from holdfast.query.schema import Real, Schema

POOL_ROWS = 2**17
"""Rows drawn ahead at a time: each costs its own look-up, so a larger pool would not be cheaper."""

RANGE_ROWS = 2**19
"""Rows fetched by one statement of a scan, about."""

PLACES = 2**18
"""Places looked up by one statement."""

_WIRE = {1: ("smallint", ">i2"), 2: ("int", ">i4"), 4: ("bigint", ">i8"), 8: ("bigint", ">i8")}
"""By the width of a code: the type that holds it in PostgreSQL, and its form on the wire."""

_RELATION = "CODES_OF_THE_TABLE"


class PostgresSource(PooledSource):
    """A `Source` over one table, materialized view or partitioned table, in one snapshot of the database.

    The snapshot stays open, so the server cannot clean up rows that others delete meanwhile, and refuses to
    rewrite the table; close the source when done. If the server restarts, the next call takes a new
    snapshot, and refuses it if any row came, went or changed.
    Cost: opening counts the rows; `totals` is one query; `gather` is a scan. `draw` looks up random places
    and keeps those that hold a row, so its time does not depend on the size of the table; a pool does it
    ahead of the questions.
    """

    def __init__(self, url: str, table: str, schema: Schema) -> None:
        if not isinstance(table, str) or not table or "\0" in table:
            raise InputError(f"expected the name of a table as text, got {type(table).__name__}")
        super().__init__(schema)
        self._link = Link(url)
        try:
            self._table = find_table(self._link, table)
            types = self._table.types
            check_names(schema, list(types))
            raw = {name: origin(schema, name) for name in schema}
            places = self._text_places(schema, types)
            self._expressions = {
                name: encode_sql(POSTGRES, schema[name], raw[name], types[raw[name]], places.get(name))
                for name in schema
            }
            self._layout = measure(self._link.rows, self._table)
            self._born = birth(self._link.rows)
            self._order: str | None = None
            self._begin(POOL_ROWS)
        except BaseException:
            self._link.close()
            raise
        self._link.guard(self._renew)

    @property
    def rows(self) -> int:
        return self._layout.rows

    @property
    def order(self) -> str:
        """What the order of the rows rests on, as text; see `keep_order`."""
        return order(self._link.rows, self._table, self._born)

    def keep_order(self, kept: str) -> None:
        """DataError unless the rows lie as in the source that told this `order`, now and in every later snapshot."""
        refuse_another_order(self._link.rows, self._table, self._layout, kept)
        self._order = kept

    def _text_places(self, schema: Schema, types: Mapping[str, str]) -> dict[str, str]:
        """The dictionaries of text columns; expressions that look a raw text up."""
        found = {}
        for name, column in schema.texts.items():
            raw = raw_text(POSTGRES, column, name, types[name])
            rows = self._link.rows(f"SELECT DISTINCT {raw} FROM {self._table.relation}")
            words, places = read_texts(column, (row[0] for row in rows))
            refuse_too_many(name, places)
            self.words = {**self.words, name: words}
            found[name] = POSTGRES.lookup(raw, places)
        return found

    def _blocks(self, names: tuple[str, ...]) -> Iterator[Block]:
        layout, seen = self._layout, 0
        stride = max(1, RANGE_ROWS * sum(layout.pages) // layout.rows)
        for heap, pages in enumerate(layout.pages):
            for first in range(0, pages, stride):
                where = f"ctid >= '({first},0)' AND ctid < '({min(first + stride, pages)},0)'"
                places, codes = self._read(names, layout, heap, where)
                seen += len(places)
                for start in range(0, len(places), BLOCK_ROWS):
                    yield {name: array[start : start + BLOCK_ROWS] for name, array in codes.items()}
        if seen != layout.rows:
            raise DataError("expected the rows that were opened, got another number; open the table again")

    def gather(self, columns: Sequence[str], ids: NDArray[np.int64]) -> Block:
        return gather_by_scan(self, checked_columns(columns, self.schema), ids)

    def _drawn(self, names: tuple[str, ...], count: int, bits: Bits) -> Block:
        """Uniform places, of which those that hold a row are kept: uniform rows, in the order of drawing."""
        layout = self._layout
        result = {name: np.empty(count, dtype=self.schema[name].dtype) for name in names}
        filled = tried = 0
        while filled < count:
            tries = min((count - filled) * layout.places * 21 // (layout.rows * 20) + 64, PLACES)
            tried += tries
            if tried * layout.rows > (40 * count + 10_000) * layout.places:  # chance would be below e^-9000
                raise DataError("expected the rows that were opened, got fewer; open the table again")
            places, origin = distinct(bits.integers_below(layout.places, tries), layout.places)
            found, codes = self._look_up(names, layout, places)
            held = np.full(len(places), -1)
            held[np.searchsorted(places, found)] = np.arange(len(found))
            hits = held[origin]
            hits = hits[hits >= 0][: count - filled]
            for name, array in codes.items():
                result[name][filled : filled + len(hits)] = array[hits]
            filled += len(hits)
        return result

    def _look_up(
        self, names: tuple[str, ...], layout: Layout, places: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], Block]:
        """The rows at increasing distinct places, as far as there are any, with their places."""
        found, parts, first = [], [], 0
        for heap, pages in enumerate(layout.pages):
            low, high = np.searchsorted(places, (first, first + pages * layout.slots))
            if high > low:
                tids = _tids(places[low:high] - first, layout.slots)
                keys, codes = self._read(names, layout, heap, "ctid = ANY($1)", tids)
                found.append(keys + first)
                parts.append(codes)
            first += pages * layout.slots
        return np.concatenate(found), {name: np.concatenate([p[name] for p in parts]) for name in names}

    def _read(
        self, names: tuple[str, ...], layout: Layout, heap: int, where: str, *parameters: Tids
    ) -> tuple[NDArray[np.int64], Block]:
        """The rows of one heap that satisfy a condition on their place, in the order of places.

        They come as one row of arrays, a form that NumPy reads at once.
        """
        chosen = ", ".join(f"{self._column(name)} AS c{i}" for i, name in enumerate(names))
        packed = ", ".join(f"array_send(array_agg(c{i}))" for i in range(len(names)))
        tids, *columns = self._link.rows(
            f"SELECT array_send(array_agg(k)), {packed} "
            f"FROM (SELECT ctid AS k, {chosen} FROM {self._table.heaps[heap][0]} WHERE {where}) AS t",
            parameters,
            by_place=bool(parameters),
        )[0]
        keys = _elements(tids, [("page", ">u4"), ("slot", ">u2")])
        places = keys["page"].astype(np.int64) * layout.slots + keys["slot"] - 1
        codes = {name: self._codes(name, raw) for name, raw in zip(names, columns, strict=True)}
        if np.any(places[1:] < places[:-1]):  # a parallel plan
            order = np.argsort(places)
            return places[order], {name: array[order] for name, array in codes.items()}
        return places, codes

    def _column(self, name: str) -> str:
        if isinstance(self.schema[name], Real):
            return f"COALESCE({self._expressions[name]}, 'NaN')"
        return f"CAST({self._expressions[name]} AS {_WIRE[self.schema[name].dtype.itemsize][0]})"

    def _codes(self, name: str, raw: bytes | None) -> Codes:
        dtype = self.schema[name].dtype
        form = ">f8" if dtype.kind == "f" else _WIRE[dtype.itemsize][1]
        codes: Codes = _elements(raw, [("code", form)])["code"].astype(dtype)
        return codes

    def totals(self, measurement: Measurement) -> NDArray[np.int64]:
        chosen = ", ".join(
            f"{self._expressions[name]} AS {POSTGRES.quoted(name)}" for name in measurement.columns
        )
        # Only the question is respelled: the codes are PostgreSQL's own SQL already.
        question = POSTGRES.question(measurement.sql(_RELATION))
        relation = f"(SELECT {chosen} FROM {self._table.relation}) AS codes"
        try:
            found = self._link.rows(question.replace(_RELATION, relation, 1))
        except OutOfRange:
            # A product below the least double is an error there and 0 here; the evaluator decides.
            return totals_by_scan(self, measurement)
        result = np.zeros(measurement.size, dtype=np.int64)
        for position, total in found:
            result[int(position)] = int(total)
        return result

    def close(self) -> None:
        self._pool.close()
        self._link.close()

    def _renew(self, query: Query) -> None:
        layout = measure_again(query, self._table, self._layout, self._born)
        if self._order is not None:
            refuse_another_order(query, self._table, layout, self._order)
        self._layout = layout


def _tids(places: NDArray[np.int64], slots: int) -> Tids:
    packed = np.empty(len(places), dtype=[("length", ">i4"), ("page", ">u4"), ("slot", ">u2")])
    packed["length"], packed["page"], packed["slot"] = 6, places // slots, places % slots + 1
    return Tids(packed)


def _elements(array: bytes | None, fields: list[tuple[str, str]]) -> NDArray[Any]:
    """The elements of a flat array without NULLs in PostgreSQL's binary form; NULL is the empty array."""
    dtype = np.dtype([("length", ">i4"), *fields])
    return np.empty(0, dtype) if array is None else np.frombuffer(array, dtype, offset=20)
