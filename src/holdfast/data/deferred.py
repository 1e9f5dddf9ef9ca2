"""Rows that are looked for only when an answer needs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from holdfast.errors import DataError
from holdfast.query.dictionary import Words
from holdfast.query.lookup_json import without_lookups
from holdfast.query.schema import Schema

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from holdfast.data.lookup import Lookup
    from holdfast.data.source import Block, Measurement, Source
    from holdfast.noise.bits import Bits


@dataclass(frozen=True, slots=True)
class Seen:
    """The public facts of rows: what is declared of them, and how many there are."""

    schema: Schema
    rows: int
    rows_per_unit: int
    store: bool


def look(
    place: str,
    schema: Schema | None,
    relation: str | None = None,
    lookups: Mapping[str, Lookup] | None = None,
) -> Seen:
    """Open the rows at a place once, with public tables beside them, for the facts that an owner declares with them."""
    from holdfast.data.store import StoreSource
    from holdfast.data.unit_store import UnitStore

    source = _rows_at(place, schema, relation)
    store = isinstance(source, StoreSource | UnitStore)
    bound = source.rows_per_unit if isinstance(source, StoreSource) else 1
    try:
        return Seen(_beside(source, lookups).schema, source.rows, bound, store)
    finally:
        source.close()


def _rows_at(place: str, schema: Schema | None, relation: str | None) -> Source:
    from holdfast.data.open import open_source

    return open_source(place, schema) if relation is None else open_source(place, schema, table=relation)


def _beside(source: Source, lookups: Mapping[str, Lookup] | None) -> Source:
    if not lookups:
        return source
    from holdfast.data.lookup import with_lookups

    return with_lookups(source, lookups)


def _keep_order(source: Source, kept: str) -> None:
    try:
        source.keep_order(kept)  # type: ignore[attr-defined]
    except BaseException:
        source.close()
        raise


class DeferredSource:
    """See `Source`. `schema` and `rows` are declared; the rows behind them are opened at the first answer, and so are
    the public tables (`lookups`) that the schema has beside them.

    Plans, budgets and histories need no rows, so they are there while the rows are not.
    """

    _source: Source | None

    def __init__(
        self,
        schema: Schema,
        rows: int,
        place: str,
        relation: str | None = None,
        lookups: Mapping[str, Lookup] | None = None,
    ) -> None:
        self.schema, self.rows, self._place, self._relation = schema, rows, place, relation
        self._lookups = lookups
        self._lock, self._source = Lock(), None
        self._order: str | None = None

    def _opened(self) -> Source:
        with self._lock:
            if self._source is None:
                declared = without_lookups(self.schema)
                source = _rows_at(self._place, declared, self._relation)
                if source.rows != self.rows or source.schema != declared:
                    source.close()
                    raise DataError(
                        "the rows are not those that were registered: their number or schema differs; put "
                        "the registered ones back, or register these as another table"
                    )
                if self._order is not None:
                    _keep_order(source, self._order)
                self._source = self._looking_up(source)
            return self._source

    def _looking_up(self, source: Source) -> Source:
        try:
            found = _beside(source, self._lookups)
            if found.schema != self.schema:
                raise DataError(
                    "a public table is not the one that was registered: its columns or what it holds differ; put the "
                    "registered one back, or register the rows with this one as another table"
                )
        except BaseException:
            source.close()
            raise
        return found

    def keep_order(self, kept: str) -> None:
        """Refuse the rows, now or when they are opened, unless they lie in this order; for sources that tell one."""
        with self._lock:
            self._order = kept
            source, self._source = self._source, None
            if source is not None:
                _keep_order(getattr(source, "base", source), kept)
                self._source = source

    @property
    def fingerprint(self) -> str:
        return self._opened().fingerprint

    @property
    def words(self) -> Mapping[str, Words]:
        return self._opened().words

    def scan(self, columns: Sequence[str]) -> Iterator[Block]:
        return self._opened().scan(columns)

    def gather(self, columns: Sequence[str], ids: NDArray[np.int64]) -> Block:
        return self._opened().gather(columns, ids)

    def draw(self, columns: Sequence[str], count: int, bits: Bits | None = None) -> Block:
        return self._opened().draw(columns, count, bits)

    def totals(self, measurement: Measurement) -> NDArray[np.int64]:
        return self._opened().totals(measurement)

    def close(self) -> None:
        with self._lock:
            source, self._source = self._source, None
        if source is not None:
            source.close()

    def __getattr__(self, name: str) -> Any:
        """What only some sources can do."""
        if name.startswith("_") or name == "path":
            raise AttributeError(name)
        return getattr(self._opened(), name)
