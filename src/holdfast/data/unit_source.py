"""Units as rows: whatever is asked of their events is drawn, read and added up unit by unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holdfast.check import integer
from holdfast.data.source import (
    BLOCK_ROWS,
    DRAW_ROWS,
    Block,
    Codes,
    Measurement,
    checked_ids,
    new_fingerprint,
    totals_by_scan,
)
from holdfast.data.unit_events import MOST_SLOTS, Columns, OwnedRows
from holdfast.errors import DataError, InputError
from holdfast.noise.bits import Bits
from holdfast.noise.subset import with_replacement
from holdfast.query.dictionary import Words, with_words
from holdfast.query.unit_schema import UnitSchema, event_columns

DRAW_EVENTS = 2**16
"""Events in one part of a draw, at most: their places and what is worked out of them stay in the cache."""
DRAW_SLOTS = 2**19
"""The same where they are copied in runs."""
ReadOwn = Callable[[tuple[str, ...]], Block]
ReadEvents = Callable[[str, tuple[str, ...]], tuple[Codes, Block]]


class UnitSource:
    """A `Source` whose rows are units.

    A column is the unit's own, or what its events say of it (an aggregate, see `UnitSchema`): one code for each unit.
    For questions about events it can also be a column of events (`visits.cost`), which gives as many codes as the
    units have events, unit after unit; and the name of a table (`visits`) gives how many each unit has.
    The number of events is nobody's business: `rows` is the number of units.
    Cost: what the drawn units hold. A draw reads at most the bound for each of them.
    """

    def __init__(
        self,
        schema: UnitSchema,
        units: int,
        own: Columns,
        events: Mapping[str, OwnedRows],
        *,
        fingerprint: str | None = None,
        path: Path | None = None,
        words: Mapping[str, Words] | None = None,
    ) -> None:
        self.schema, self.rows, self.path = schema, units, path
        self.words: Mapping[str, Words] = dict(words or {})
        self.words |= {
            f"{schema.table}.{name}": self.words[name] for name in schema.own if name in self.words
        }
        self.fingerprint = fingerprint or new_fingerprint()
        self._own: Columns | None = own
        self._events = dict(events)
        self._places = {name: (table, column) for name, table, column in event_columns(schema)}
        self._own_names = {f"{schema.table}.{name}": name for name in schema.own} | {n: n for n in schema.own}

    @property
    def own(self) -> Columns:
        """The units' own columns."""
        if self._own is None:
            raise DataError("expected an open source, got a closed one; open the data again")
        return self._own

    def events(self, table: str) -> OwnedRows:
        """The events of a table."""
        if self._own is None:
            raise DataError("expected an open source, got a closed one; open the data again")
        return self._events[table]

    def words_of(self, table: str) -> Mapping[str, Words]:
        """The dictionaries of a table of events, by what the table calls its columns."""
        return {
            column: self.words[name]
            for name, (owner, column) in self._places.items()
            if owner == table and name in self.words
        }

    def scan(self, columns: Sequence[str]) -> Iterator[Block]:
        names = self._checked(columns)
        return self._blocks(names)

    def _blocks(self, names: tuple[str, ...]) -> Iterator[Block]:
        step = max(1, BLOCK_ROWS // self._most(names))
        for first in range(0, self.rows, step):
            yield self._stretch(names, first, min(first + step, self.rows))

    def _most(self, names: tuple[str, ...]) -> int:
        """How many rows a unit has at most: the public number that decides how many units are read at once."""
        return max((self.schema.events[table].most for table in self._tables(names)), default=1)

    def _stretch(self, names: tuple[str, ...], first: int, last: int) -> Block:
        return self._read(
            names,
            lambda chosen: self.own.part(chosen, first, last),
            lambda table, chosen: self.events(table).stretch(chosen, first, last),
        )

    def gather(self, columns: Sequence[str], ids: NDArray[np.int64]) -> Block:
        ids, names = np.clip(checked_ids(ids), 0, self.rows - 1), self._checked(columns)
        slots = self._in_slots(names)
        return self._read(
            names,
            lambda chosen: self.own.take(chosen, ids),
            lambda table, chosen: self.events(table).of(chosen, ids, slots=slots),
        )

    def draw(self, columns: Sequence[str], count: int, bits: Bits | None = None) -> Block:
        names, count = self._checked(columns), integer("count", count, 0)
        most = self._most(names)
        events = DRAW_SLOTS if self._in_slots(names) and most <= MOST_SLOTS else DRAW_EVENTS
        step = DRAW_ROWS if most == 1 else max(1, events // most)
        parts = [
            self.gather(names, with_replacement(self.rows, min(step, count - first), bits))
            for first in range(0, max(count, 1), step)
        ]
        return (
            parts[0] if len(parts) == 1 else {n: np.concatenate([part[n] for part in parts]) for n in names}
        )

    def _in_slots(self, names: tuple[str, ...]) -> bool:
        """Whether all that is asked is one code for each unit, so that nobody else sees how its events lie."""
        return not any(name in self._places or name in self.schema.events for name in names)

    def totals(self, measurement: Measurement) -> NDArray[np.int64]:
        return totals_by_scan(self, measurement)

    def close(self) -> None:
        self._own, self._events = None, {}

    def _read(self, names: tuple[str, ...], own: ReadOwn, events: ReadEvents) -> Block:
        needed = self._needed(names)
        mine = {name: self._own_names[name] for name in needed if name in self._own_names}
        held = own(tuple(dict.fromkeys(mine.values())))
        block = {name: held[column] for name, column in mine.items()}
        for table in self._tables(names):
            chosen = {
                name: self._places[name][1] for name in needed if self._places.get(name, ("",))[0] == table
            }
            lengths, codes = events(table, tuple(chosen.values()))
            block[table] = lengths
            block |= {name: codes[column] for name, column in chosen.items()}
        for name in self.words.keys() & block.keys():
            block[name] = with_words(block[name], self.words[name])
        return {name: block[name] if name in block else self.schema.read(name).codes(block) for name in names}

    def _needed(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """What has to be read from where it lies."""
        needed: dict[str, None] = {}
        for name in names:
            plain = name in self._own_names or name in self._places or name in self.schema.events
            needed |= dict.fromkeys((name,) if plain else self.schema.read(name).columns)
        return tuple(needed)

    def _tables(self, names: tuple[str, ...]) -> tuple[str, ...]:
        needed = self._needed(names)
        found = {name if name in self.schema.events else self._places.get(name, ("",))[0] for name in needed}
        return tuple(table for table in self.schema.events if table in found)

    def _checked(self, columns: Sequence[str]) -> tuple[str, ...]:
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        if not names:
            raise InputError("expected at least one column to read, got none")
        for name in names:
            known = name in self._own_names or name in self._places or name in self.schema.events
            if not known and name not in self.schema:
                raise InputError(f"expected declared columns, got {name!r}")
        return names
