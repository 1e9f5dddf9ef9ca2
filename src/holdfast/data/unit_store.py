"""Units in a folder: their own columns, and their events sorted by unit, mapped into memory.

    hospital.hf/
        manifest.json               written last: schema, number of units, fingerprint, checksums
        column-0000.bin             the first column of the units
        events-0000-offsets.bin     where the events of each unit begin in the first table of events, as int64
        events-0000-0000.bin        the codes of its first column
        events-0000-packed.bin      its narrowest columns once more, a record for each unit (see `holdfast.data.packed`)

Neither the manifest nor the size of a file tells how many events there are: the files of events are as long as if
every unit had as many as it may, and sparse beyond the last one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.data.frame import check_codes
from holdfast.data.manifest import (
    column_file,
    events_file,
    files_of,
    offsets_file,
    read_manifest,
    records_file,
    records_of,
)
from holdfast.data.packed import pack_units, unit_record
from holdfast.data.save import Progress, StoreWriter
from holdfast.data.source import BLOCK_ROWS, Block
from holdfast.data.store import check_places, mapped, saved_words
from holdfast.data.unit_events import MappedColumns, OwnedRows
from holdfast.data.unit_source import UnitSource
from holdfast.errors import DataError, StoreError
from holdfast.query.dictionary import Words
from holdfast.query.unit_schema import UnitSchema

_OFFSET = np.dtype("<i8")


class UnitStore(UnitSource):
    """A `UnitSource` over a saved folder. Opening reads the manifest and maps the files; `verify` reads every byte."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        folder = Path(path)
        self._manifest = read_manifest(folder)
        schema = self._manifest.schema
        assert isinstance(schema, UnitSchema)
        units = self._manifest.rows
        own = {
            name: mapped(folder / column_file(index), column.dtype.newbyteorder("<"), units, name)
            for index, (name, column) in enumerate(schema.own.items())
        }
        records = records_of(schema, self._manifest.packed)
        events = {
            table: _events(folder, schema, place, units, records.get(table, ()))
            for place, table in enumerate(schema.events)
        }
        super().__init__(
            schema,
            units,
            MappedColumns(own),
            events,
            fingerprint=self._manifest.fingerprint,
            path=folder,
            words=saved_words(folder, self._manifest),
        )

    def verify(self) -> None:
        """Read every byte: checksums as saved, codes within the declared ranges, no unit beyond its bound."""
        assert self.path is not None
        for (file, count, check), expected in zip(self._files(), self._manifest.checksums, strict=True):
            digest = hashlib.blake2b(digest_size=32)
            try:
                for part in check(count):
                    digest.update(part.view(np.uint8).data)
            except DataError as error:
                raise StoreError(f"{error}, in {self.path}") from None
            if digest.hexdigest() != expected:
                raise StoreError(
                    f"expected {file} of {self.path} as it was saved, got different bytes; the store is damaged: make "
                    "it again from its origin"
                )

    def _files(self) -> Iterator[tuple[str, int, Callable[[int], Iterator[NDArray[Any]]]]]:
        """Each file, what reads it with care, and how much of it (or up to which bound) there is to read."""
        schema, files = self.schema, iter(files_of(self.schema, self._manifest.packed))

        def columns(
            names: Sequence[str], declared: Any, part: Callable[..., Block], texts: Mapping[str, Words]
        ) -> Any:
            for name in names:

                def read(count: int, name: str = name) -> Iterator[NDArray[Any]]:
                    for first in range(0, count, BLOCK_ROWS):
                        codes = part([name], first, min(first + BLOCK_ROWS, count))[name]
                        check_codes(declared, name, codes)
                        if name in texts:
                            check_places(codes, declared[name], texts[name])
                        yield np.ascontiguousarray(codes)

                yield read

        for read in columns(list(schema.own), schema, self.own.part, self.words):
            yield next(files), self.rows, read
        for table, declared in schema.events.items():
            events = self.events(table)
            yield next(files), declared.most, partial(_offsets, events)
            used = int(events.offsets[-1])
            part, words = events.columns.part, self.words_of(table)
            for read in columns(list(declared.schema), declared.schema, part, words):
                yield next(files), used, read
        for table in records_of(schema, self._manifest.packed):
            yield next(files), 0, partial(_records, self.events(table))


class UnitWriter(StoreWriter):
    """Collects units and their events; `commit` makes the store. See `StoreWriter` for what a crash leaves."""

    def append_units(self, block: Block, units: int) -> None:
        """Write the own columns of so many more units; all columns at once, or some."""
        assert isinstance(self._schema, UnitSchema)
        for index, (name, column) in enumerate(self._schema.own.items()):
            if name in block:
                codes = np.ascontiguousarray(block[name], column.dtype.newbyteorder("<"))
                self._add(column_file(index), codes)
        self._rows += units

    def append_events(self, table: str, block: Block) -> None:
        """Write the next events of a table, in the order of their units; all columns at once, or some."""
        assert isinstance(self._schema, UnitSchema)
        place, schema = list(self._schema.events).index(table), self._schema.events[table].schema
        for index, name in enumerate(schema):
            if name in block:
                codes = np.ascontiguousarray(block[name], schema[name].dtype.newbyteorder("<"))
                self._add(events_file(place, index), codes)

    def append_offsets(self, table: str, offsets: NDArray[np.int64]) -> None:
        """Write where the events of the next units begin; the last time also where they end."""
        assert isinstance(self._schema, UnitSchema)
        place = list(self._schema.events).index(table)
        self._add(offsets_file(place), np.ascontiguousarray(offsets, _OFFSET))

    def _finish(self) -> None:
        assert isinstance(self._schema, UnitSchema)
        for place, events in enumerate(self._schema.events.values()):
            for index, column in enumerate(events.schema.values()):
                length = self._rows * events.most * column.dtype.itemsize
                os.ftruncate(self._files[events_file(place, index)], length)
        for table, names in records_of(self._schema, self._packed).items():
            place, declared = list(self._schema.events).index(table), self._schema.events[table]
            written = _events(self._partial, self._schema, place, self._rows)
            columns = written.columns.part(names, 0, int(written.offsets[-1]))
            layout = unit_record(names, declared.schema, declared.most)
            for records in pack_units(layout, written.offsets, columns):
                self._add(records_file(place), records)


def save_units(
    source: UnitSource,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    beside: Callable[[Path], None] | None = None,
) -> UnitStore:
    """Copy all units of a source into a store and open it; see `save_store`. Cost: one scan; memory for one block."""
    with UnitWriter(
        path,
        source.schema,
        fingerprint=source.fingerprint,
        overwrite=overwrite,
        words=source.words,
    ) as writer:
        for first in range(0, source.rows, BLOCK_ROWS):
            ids = np.arange(first, min(first + BLOCK_ROWS, source.rows))
            own = source.own.part(tuple(source.schema.own), first, first + len(ids))
            writer.append_units(own, len(ids))
            if progress is not None:
                progress(int(ids[-1]) + 1, 2 * source.rows)
        for place, (table, declared) in enumerate(source.schema.events.items()):
            events = source.events(table)
            writer.append_offsets(table, events.offsets)
            last = int(events.offsets[-1])
            for first in range(0, last, BLOCK_ROWS):
                writer.append_events(
                    table, events.columns.part(tuple(declared.schema), first, min(first + BLOCK_ROWS, last))
                )
            if progress is not None:
                progress(
                    source.rows + source.rows * (place + 1) // len(source.schema.events), 2 * source.rows
                )
        if beside is not None:
            beside(writer.folder)
        writer.commit()
    return UnitStore(path)


def _events(
    folder: Path, schema: UnitSchema, place: int, units: int, packed: Sequence[str] = ()
) -> OwnedRows:
    declared = list(schema.events.values())[place]
    columns = {
        name: mapped(
            folder / events_file(place, index), column.dtype.newbyteorder("<"), units * declared.most, name
        )
        for index, (name, column) in enumerate(declared.schema.items())
    }
    offsets = mapped(folder / offsets_file(place), _OFFSET, units + 1, "offsets")
    layout = unit_record(packed, declared.schema, declared.most) if packed else None
    records = None if layout is None else mapped(folder / records_file(place), layout, units, "records")
    return OwnedRows(offsets.codes, MappedColumns(columns), declared.most, offsets.check, records)


def _offsets(events: OwnedRows, most: int) -> Iterator[NDArray[Any]]:
    """The offsets, refused where a unit has more events than its bound or they do not begin at 0."""
    offsets = events.offsets
    for first in range(0, len(offsets), BLOCK_ROWS):
        lengths = np.diff(offsets[first : first + BLOCK_ROWS + 1])
        if (first == 0 and offsets[0] != 0) or np.any((lengths < 0) | (lengths > most)):
            raise DataError("expected no unit with more events than its bound, got one")
        yield np.ascontiguousarray(offsets[first : first + BLOCK_ROWS])


def _records(events: OwnedRows, count: int) -> Iterator[NDArray[Any]]:
    """The records, refused where they hold other codes than the columns."""
    assert events.records is not None
    codes, first = events.records.codes, 0
    names = (codes.dtype.names or ())[:-1]
    columns = events.columns.part(names, 0, int(events.offsets[-1]))
    for expected in pack_units(codes.dtype, events.offsets, columns):
        found = codes[first : first + len(expected)]
        if found.tobytes() != expected.tobytes():
            raise DataError("expected the codes of the columns in the records of units, got others")
        first += len(found)
        yield found
