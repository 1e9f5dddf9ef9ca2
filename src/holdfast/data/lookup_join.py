"""Rows joined with public tables while they are read: what is looked up is a function of the row alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.data.source import Block, Codes, Measurement, Source, checked_columns, totals_by_scan
from holdfast.data.unit_events import Columns
from holdfast.errors import DataError
from holdfast.noise.bits import Bits
from holdfast.query.dictionary import Words, with_words
from holdfast.query.lookup_schema import Joined, LookupSchema
from holdfast.query.schema import Category, ColumnType, Integer, Temporal, Text

_DENSE = 2**20
Places = NDArray[np.int64]


class Finder:
    """The place of a whole number among some, or one beyond the last."""

    __slots__ = ("_table", "known")

    def __init__(self, known: Places) -> None:
        self.known = known
        self._table: Places | None = None
        if len(known) and int(known[-1]) < _DENSE:
            self._table = np.full(int(known[-1]) + 2, len(known))
            self._table[known] = np.arange(len(known))

    def find(self, numbers: NDArray[Any]) -> Places:
        if self._table is not None:
            return self._table.take(np.asarray(numbers), mode="clip")
        if not len(self.known):
            return np.zeros(len(numbers), dtype=np.int64)
        wanted = np.asarray(numbers).astype(np.int64)
        places = np.minimum(np.searchsorted(self.known, wanted), len(self.known) - 1)
        return np.where(self.known[places] == wanted, places, len(self.known))


@dataclass(frozen=True, slots=True)
class LookedUp:
    """A public table by its key.

    The key of a row is followed column by column: each takes what was found so far and its own code to a number below
    (rows + 1)^2. Whatever is not there, and NULL, ends at the last place, where all columns are NULL.
    Guarantee: each row gives exactly one row, whose columns depend on that row and on the public table alone
    (docs/theorems.md, Theorem 70).
    """

    joined: Joined
    texts: dict[str, tuple[str, ...]]
    """The texts of the key columns that are texts, in order."""
    singles: tuple[Finder, ...]
    pairs: tuple[Finder, ...]
    values: dict[str, Codes]

    @staticmethod
    def of(
        name: str,
        keys: tuple[tuple[str, str], ...],
        own: Mapping[str, ColumnType],
        values: Mapping[str, ColumnType],
        codes: Mapping[str, Codes],
        words: Mapping[str, Words],
    ) -> LookedUp:
        """The table with these codes: of keys as they were read, of `values` as declared."""
        numbers = {its: _as_declared(own[its], codes[its], words.get(its)) for _, its in keys}
        kept = np.flatnonzero(np.all([each >= 0 for each in numbers.values()], axis=0))
        singles, pairs, place = [], [], np.zeros(len(kept), dtype=np.int64)
        for _, its in keys:
            singles.append(Finder(np.unique(numbers[its][kept])))
            found = singles[-1].find(numbers[its][kept])
            both = place * (len(singles[-1].known) + 1) + found
            pairs.append(Finder(np.unique(both)))
            place = pairs[-1].find(both)
        if len(kept) > len(pairs[-1].known):
            raise DataError(
                f"expected each key once in the public table {name!r}, got {len(kept) - len(pairs[-1].known):,} rows "
                "more: a row could not say which it means; remove them, or add a column to key="
            )
        order = kept[np.argsort(place)]
        columns = {
            column: Category(*(words[column].texts or [""])) if isinstance(kind, Text) else kind
            for column, kind in {**{its: own[its] for _, its in keys}, **values}.items()
        }
        looked: dict[str, Codes] = {}
        for column, kind in columns.items():
            given, null = (numbers.get(column, codes[column]))[order], kind.null_code
            if isinstance(values.get(column), Text):
                given = np.minimum(given, null)  # the NULL of a text is another than that of a label
            looked[column] = np.append(given, null).astype(kind.dtype)
            looked[column].flags.writeable = False
        digest = hashlib.blake2b(repr((keys, columns)).encode(), digest_size=16)
        for array in (*(each.known for each in (*singles, *pairs)), *looked.values()):
            digest.update(np.ascontiguousarray(array).data)
        joined = Joined(name, keys, tuple(columns.items()), digest.hexdigest())
        texts_of = {mine: words[its].texts for mine, its in keys if isinstance(own[its], Text)}
        return LookedUp(
            joined,
            texts_of,
            tuple(singles),
            tuple(pairs),
            {joined.called(column): array for column, array in looked.items()},
        )

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the rows that are the key."""
        return tuple(mine for mine, _ in self.joined.keys)

    def columns(self, block: Mapping[str, Codes], names: Sequence[str], words: Mapping[str, Words]) -> Block:
        """Columns of the public table for the rows of a block."""
        first = block[self.needs[0]]
        place = np.zeros(len(first), dtype=np.int64)
        for mine, single, pair in zip(self.needs, self.singles, self.pairs, strict=True):
            codes = block[mine]
            if mine in self.texts:
                codes = with_words(np.asarray(codes), words[mine]).places(self.texts[mine])
                codes = np.where(codes < 0, len(self.texts[mine]), codes)
            place = pair.find(place * (len(single.known) + 1) + single.find(codes))
        return {name: self.values[name].take(place, mode="clip") for name in names}


def _as_declared(kind: ColumnType, codes: Codes, words: Words | None) -> Places:
    """The codes of keys as the rows have them; -1 for what no row can have."""
    if isinstance(kind, Text):
        assert words is not None
        return np.where(codes < len(words.texts), codes.astype(np.int64), -1)
    numbers = codes.astype(np.int64)
    everything = wide(kind)
    if isinstance(kind, Integer | Temporal) and isinstance(everything, Integer | Temporal):
        null = everything.null_code
        numbers = np.where(codes < null, numbers + (everything.lo - kind.lo), -1)
    return np.where((numbers >= 0) & (numbers < int(kind.null_code)), numbers, -1)


def wide(kind: ColumnType) -> ColumnType:
    """The type by which a key of a public table is read, if rows have it as `kind`: none is clamped to another."""
    if isinstance(kind, Integer):
        return Integer(-(2**61), 2**61 - 1)
    return kind.widest if isinstance(kind, Temporal) else kind


class _Reading:
    """Which columns are read from the rows, and which are looked up."""

    def __init__(self, tables: Sequence[LookedUp], words: Mapping[str, Words]) -> None:
        self._tables, self._words = tuple(tables), words

    def needed(self, names: Sequence[str]) -> tuple[str, ...]:
        """What has to be read of the rows for these columns."""
        found: dict[str, None] = {}
        for name in names:
            table = self.table(name)
            found |= dict.fromkeys((name,) if table is None else table.needs)
        return tuple(found)

    def completed(self, block: Block, names: Sequence[str]) -> Block:
        """These columns, from a block of those that are needed."""
        found: Block = {}
        for table in self._tables:
            mine = [name for name in names if self.table(name) is table]
            if mine:
                found |= table.columns(block, mine, self._words)
        return {name: found[name] if name in found else block[name] for name in names}

    def table(self, name: str) -> LookedUp | None:
        """The public table of a column."""
        return next((table for table in self._tables if name in table.values), None)


class LookupColumns:
    """See `Columns`: those of units or events, and of public tables beside them."""

    def __init__(self, base: Columns, tables: Sequence[LookedUp], words: Mapping[str, Words]) -> None:
        self._base, self._reading = base, _Reading(tables, words)

    def take(self, names: Sequence[str], rows: NDArray[np.int64]) -> Block:
        return self._reading.completed(self._base.take(self._reading.needed(names), rows), names)

    def part(self, names: Sequence[str], first: int, last: int) -> Block:
        return self._reading.completed(self._base.part(self._reading.needed(names), first, last), names)


class LookupSource:
    """See `Source`: the rows of another, with public tables beside them.

    Whatever is looked up is looked up here: servers and engines are asked for the keys, and add up what needs none.
    """

    def __init__(self, base: Source, tables: Sequence[LookedUp]) -> None:
        self.base = base
        self.schema = LookupSchema(base.schema, [table.joined for table in tables])
        self._reading = _Reading(tables, base.words)

    @property
    def rows(self) -> int:
        return self.base.rows

    @property
    def fingerprint(self) -> str:
        return self.base.fingerprint

    @property
    def words(self) -> Mapping[str, Words]:
        return self.base.words

    @property
    def path(self) -> Path | None:
        """Where the rows lie, if in a store."""
        return getattr(self.base, "path", None)

    def scan(self, columns: Sequence[str]) -> Iterator[Block]:
        names = checked_columns(columns, self.schema)
        blocks = self.base.scan(self._reading.needed(names))
        return (self._reading.completed(block, names) for block in blocks)

    def gather(self, columns: Sequence[str], ids: NDArray[np.int64]) -> Block:
        names = checked_columns(columns, self.schema)
        return self._reading.completed(self.base.gather(self._reading.needed(names), ids), names)

    def draw(self, columns: Sequence[str], count: int, bits: Bits | None = None) -> Block:
        names = checked_columns(columns, self.schema)
        return self._reading.completed(self.base.draw(self._reading.needed(names), count, bits), names)

    def totals(self, measurement: Measurement) -> NDArray[np.int64]:
        if any(self._reading.table(name) is not None for name in measurement.columns):
            return totals_by_scan(self, measurement)
        return self.base.totals(measurement)

    def close(self) -> None:
        self.base.close()
