"""Columns in the order of their units, in memory or mapped from a store; and events, which know where units begin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.data.mapped import MappedColumn, take_rows, take_runs
from holdfast.data.packed import LENGTH
from holdfast.data.source import Block, Codes
from holdfast.errors import DataError
from holdfast.query.unit_schema import Slots

MOST_SLOTS = 32
"""Up to this bound each drawn unit has as many places as it may have events: copying is quicker than counting."""


class Columns(Protocol):
    """Columns of codes of one length."""

    def take(self, names: Sequence[str], rows: NDArray[np.int64]) -> Block:
        """Copies of single rows."""

    def part(self, names: Sequence[str], first: int, last: int) -> Block:
        """The rows from `first` up to `last`, without a copy."""


class FrameColumns:
    """See `Columns`: arrays in memory, with room for `spare` rows that are none behind the last."""

    def __init__(self, codes: Mapping[str, Codes], spare: int = 0) -> None:
        self._codes = {
            name: np.concatenate([array, np.zeros(spare, array.dtype)]) if spare else array.view()
            for name, array in codes.items()
        }
        for array in self._codes.values():
            array.flags.writeable = False

    def take(self, names: Sequence[str], rows: NDArray[np.int64]) -> Block:
        return {name: np.take(self._codes[name], rows, mode="clip") for name in names}

    def runs(self, names: Sequence[str], starts: NDArray[np.int64], many: int) -> Block:
        """From each place on so many rows."""
        return {name: take_runs(self._codes[name], starts, many) for name in names}

    def part(self, names: Sequence[str], first: int, last: int) -> Block:
        return {name: self._codes[name][first:last] for name in names}


class MappedColumns:
    """See `Columns`: files of a store."""

    def __init__(self, columns: Mapping[str, MappedColumn]) -> None:
        self._columns = dict(columns)

    def take(self, names: Sequence[str], rows: NDArray[np.int64]) -> Block:
        return take_rows({name: self._columns[name] for name in names}, rows)

    def runs(self, names: Sequence[str], starts: NDArray[np.int64], many: int) -> Block:
        """From each place on so many rows."""
        return take_rows({name: self._columns[name] for name in names}, starts, many)

    def part(self, names: Sequence[str], first: int, last: int) -> Block:
        for name in names:
            self._columns[name].expect(first, last)
        return {name: self._columns[name].codes[first:last] for name in names}


@dataclass(frozen=True, slots=True)
class OwnedRows:
    """Events sorted by unit: unit i owns the rows from offsets[i] up to offsets[i + 1], at most `most`.

    `check` is called before every reading and raises when the rows are no longer those that were opened. `records` hold
    some columns once more, the events of a unit side by side with their number (`holdfast.data.packed`).
    """

    offsets: NDArray[np.int64]
    columns: Columns
    most: int
    check: Callable[[], None] = lambda: None
    records: MappedColumn | None = None

    def of(self, names: Sequence[str], ids: NDArray[np.int64], *, slots: bool = False) -> tuple[Codes, Block]:
        """How many events each of these units has, and the events, unit after unit.

        With `slots` they may come in as many places for each unit as it may have events: see `Slots`. What is read then
        depends on the bound, and not on how many there are.
        """
        if slots and names and self._packed.issuperset(names):
            return self._of_records(names, ids)
        self.check()
        starts = np.take(self.offsets, ids)
        lengths = np.take(self.offsets, ids + 1) - starts
        self._refuse_too_many(lengths)
        if not names:
            return lengths, {}
        if slots and self.most <= MOST_SLOTS and isinstance(self.columns, FrameColumns | MappedColumns):
            return Slots.of(lengths, self.most), self.columns.runs(names, starts, self.most)
        ends = np.cumsum(lengths)
        rows = np.repeat(starts - ends + lengths, lengths)
        rows += np.arange(len(rows))
        return lengths, self.columns.take(names, rows)

    @property
    def _packed(self) -> frozenset[str]:
        return frozenset() if self.records is None else frozenset(self.records.codes.dtype.names or ())

    def _of_records(self, names: Sequence[str], ids: NDArray[np.int64]) -> tuple[Codes, Block]:
        assert self.records is not None
        taken = take_rows({LENGTH: self.records}, ids)[LENGTH]
        lengths = taken[LENGTH].astype(np.int64)
        self._refuse_too_many(lengths)
        return Slots.of(lengths, self.most), {name: taken[name].reshape(-1) for name in names}

    def stretch(self, names: Sequence[str], first: int, last: int) -> tuple[Codes, Block]:
        """The same for the units from `first` up to `last`, without a copy."""
        self.check()
        offsets = self.offsets[first : last + 1]
        lengths = np.diff(offsets)
        self._refuse_too_many(lengths)
        return lengths, self.columns.part(names, int(offsets[0]), int(offsets[-1]))

    def _refuse_too_many(self, lengths: Codes) -> None:
        """Every sensitivity rests on the bound: a damaged store must not pass it."""
        if len(lengths) and (int(lengths.max()) > self.most or int(lengths.min()) < 0):
            raise DataError("expected no unit with more events than its bound, got one; the store is damaged")
