"""Tables around one unit into units: keys are matched, events sorted by unit, and those beyond the bound left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holdfast.data.duckdb import DuckSource, check_distinct, snapshot
from holdfast.data.engine import Engine
from holdfast.data.frame import FrameSource
from holdfast.data.save import Progress
from holdfast.data.source import Block, Source, new_fingerprint
from holdfast.data.unit_cap import Cap, text_digests
from holdfast.data.unit_events import FrameColumns, OwnedRows
from holdfast.data.unit_key import KEY_LIMIT, key_names
from holdfast.data.unit_order import Beginnings, Keys, Places, UnitKeys, changes, keys_of
from holdfast.data.unit_source import UnitSource
from holdfast.data.unit_store import UnitStore, UnitWriter
from holdfast.data.unit_texts import KeptTexts, kept_texts
from holdfast.errors import DataError
from holdfast.query.column import Integer
from holdfast.query.dictionary import Words
from holdfast.query.schema import Schema, Text
from holdfast.query.unit_schema import UnitSchema

Sort = Callable[[Source], Source]


@dataclass
class LeftOut:
    """How many rows were left out, for the owner's own eyes: without a key, or of unknown units."""

    without_key: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [
            f"{table}: {many:,} rows without a key were left out"
            for table, many in self.without_key.items()
            if many
        ]
        lines += [
            f"{table}: {many:,} rows of unknown units were left out"
            for table, many in self.unknown.items()
            if many
        ]
        return "\n".join(lines)


def units_in_memory(
    schema: UnitSchema, tables: Mapping[str, Source], secret: bytes, left_out: LeftOut
) -> UnitSource:
    """The units of some sources (with their keys, see `with_key`), in memory."""
    found, keys = _Building(schema, tables, secret, left_out, sorted_in_memory), UnitKeys()
    parts = list(found.units(keys))
    own, words = kept_texts(
        {name: np.concatenate([block[name] for _, block in parts]) for name in schema.own},
        found.texts(schema.table),
    )
    events: dict[str, OwnedRows] = {}
    for table, declared in schema.events.items():
        begin, offsets, blocks = Beginnings(), [], []
        for owners, block in found.events(table, keys):
            offsets += list(begin.of(owners))
            blocks.append(block)
        codes = {
            name: np.concatenate([np.empty(0, column.dtype), *(block[name] for block in blocks)])
            for name, column in declared.schema.items()
        }
        codes, kept = kept_texts(codes, found.texts(table))
        words |= {_asked(schema, table, name): each for name, each in kept.items()}
        begins = np.concatenate([*offsets, *begin.rest(len(keys))])
        events[table] = OwnedRows(begins, FrameColumns(codes, declared.most), declared.most)
    return UnitSource(schema, len(keys), FrameColumns(own), events, words=words)


def _asked(schema: UnitSchema, table: str | None, column: str) -> str:
    """What a column of a table is called in questions."""
    if table == schema.table or table is None:
        return column
    return next(name for name, its in schema.of_rows(table).own.items() if its == column)


def units_on_disk(
    schema: UnitSchema,
    tables: Mapping[str, Source],
    secret: bytes,
    left_out: LeftOut,
    path: str | Path,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    beside: Callable[[Path], None] | None = None,
) -> UnitStore:
    """The units of some sources in a new store.

    Cost: memory for one block of rows and the dictionaries of texts, whatever the number of rows and of units. Each
    table is copied once into a temporary database beside the store, and sorted there.
    """
    report = progress or (lambda done, total: None)
    steps = 2 * len(tables)
    done = 0

    def advance(part: float) -> None:
        report(int(1000 * (done + min(max(part, 0.0), 1.0))), 1000 * steps)

    folder = Path(path).absolute().parent

    def sort(source: Source) -> Source:
        nonlocal done
        ordered = sorted_on_disk(source, folder, advance)
        done += 1
        return ordered

    found = _Building(schema, tables, secret, left_out, sort)
    with (
        UnitWriter(path, schema, fingerprint=new_fingerprint(), overwrite=overwrite) as writer,
        UnitKeys(folder) as keys,
    ):
        with KeptTexts(found.texts(schema.table), folder) as texts:
            for units, block in found.units(keys):
                writer.append_units(texts.without(block), units)
            _write_texts(texts, schema, schema.table, writer)
        for table in schema.events:
            begin = Beginnings()
            with KeptTexts(found.texts(table), folder) as texts:
                for owners, block in found.events(table, keys):
                    for offsets in begin.of(owners):
                        writer.append_offsets(table, offsets)
                    writer.append_events(table, texts.without(block))
                    advance(int(owners[-1]) / len(keys))
                _write_texts(texts, schema, table, writer)
            done += 1
            for offsets in begin.rest(len(keys)):
                writer.append_offsets(table, offsets)
        if beside is not None:
            beside(writer.folder)
        writer.commit()
    report(1000 * steps, 1000 * steps)
    return UnitStore(path)


def _write_texts(texts: KeptTexts, schema: UnitSchema, table: str | None, writer: UnitWriter) -> None:
    """The text columns of a table, after all others: only then their dictionaries are known."""
    for name, kept, parts in texts.columns():
        writer.words[_asked(schema, table, name)] = kept
        for codes in parts:
            if table is None or table == schema.table:
                writer.append_units({name: codes}, 0)
            else:
                writer.append_events(table, {name: codes})


class _Building:
    """What is alike in memory and on disk."""

    def __init__(
        self, schema: UnitSchema, tables: Mapping[str, Source], secret: bytes, left_out: LeftOut, sort: Sort
    ) -> None:
        self._schema, self._secret, self._left_out, self._sort = schema, secret, left_out, sort
        self._tables = dict(tables)
        self._words = {table: source.words for table, source in tables.items()}
        self._key = key_names(schema.unit)
        self._lone: Source | None = None

    def texts(self, table: str | None) -> dict[str, Words]:
        """The dictionary of each text column of a table, of all rows."""
        found = {} if table is None else self._words.get(table, {})
        events = self._schema.events.get(table or "")
        columns = self._schema.own if events is None else events.schema
        return {name: found.get(name, Words(())) for name, kind in columns.items() if isinstance(kind, Text)}

    def units(self, keys: UnitKeys) -> Iterator[tuple[int, Block]]:
        """How many units come next and their own columns, block by block in the order of their keys, which are kept."""
        blocks = self._of_events() if self._schema.table is None else self._of_units(self._schema.table)
        for found, block in blocks:
            keys.add(found)
            yield len(found), block
        if not len(keys):
            where = "" if self._schema.table is None else f" in {self._schema.table!r}"
            raise DataError(f"expected at least one row with a key{where}, got none")

    def _of_units(self, table: str) -> Iterator[tuple[Keys, Block]]:
        names, last = tuple(self._schema.own), None
        with closing(self._sorted(table)) as source:
            for block in source.scan((*self._key, *names)):
                kept = self._with_key(table, block)
                keys = keys_of(block, self._key)[kept]
                if not changes(keys, last).all():
                    raise DataError(
                        f"expected one row for each {self._schema.unit} in {table!r}, got several for one; say in "
                        "rows_per_unit how many there may be, or remove them"
                    )
                last = keys[-1:] if len(keys) else last
                yield keys, {name: block[name][kept] for name in names}

    def _of_events(self) -> Iterator[tuple[Keys, Block]]:
        """The units of a lone table, which is sorted for both."""
        (table,) = self._schema.events
        last = None
        self._lone = self._sorted(table)
        for block in self._lone.scan(self._key):
            keys = keys_of(block, self._key)[self._with_key(table, block)]
            new = changes(keys, last)
            last = keys[-1:] if len(keys) else last
            yield keys[new], {}

    def events(self, table: str, keys: UnitKeys) -> Iterator[tuple[NDArray[np.int64], Block]]:
        """The events of a table that are kept, in the order of their units, and the number of each one's unit."""
        declared = self._schema.events[table]
        names = tuple(declared.schema)
        if table not in self._tables and self._lone is None:
            return
        first_time = self._lone is None
        digests = {name: text_digests(words) for name, words in self.texts(table).items()}
        cap, places = Cap(self._secret, table, declared.most, digests), Places(keys)
        with closing(self._lone or self._sorted(table)) as source:
            kept = self._known(table, source.scan((*self._key, *names)), Places(keys), first_time)
            for block in cap.of(kept, self._key, names):
                yield places.of(keys_of(block, self._key))[0], {name: block[name] for name in names}

    def _known(self, table: str, blocks: Iterator[Block], places: Places, count: bool) -> Iterator[Block]:
        """Rows of units that there are."""
        for block in blocks:
            with_key = self._with_key(table, block) if count else _is_key(block, self._key)
            _, known = places.of(keys_of(block, self._key))
            if count:
                unknown = int(np.count_nonzero(with_key & ~known))
                self._left_out.unknown[table] = self._left_out.unknown.get(table, 0) + unknown
            chosen = with_key & known
            yield {name: codes[chosen] for name, codes in block.items()}

    def _with_key(self, table: str, block: Block) -> NDArray[np.bool_]:
        found = _is_key(block, self._key)
        missing = int(len(found) - np.count_nonzero(found))
        self._left_out.without_key[table] = self._left_out.without_key.get(table, 0) + missing
        return found

    def _sorted(self, table: str) -> Source:
        return self._sort(self._tables.pop(table))


def sorted_in_memory(source: Source) -> Source:
    """The same rows by key, and then by all that they hold."""
    names = _sorting(source)
    blocks = list(source.scan(names))
    codes = {name: np.concatenate([block[name] for block in blocks]) for name in names}
    order = np.lexsort([codes[name] for name in reversed(names)])
    source.close()
    return FrameSource(source.schema, {name: codes[name][order] for name in source.schema})


def sorted_on_disk(source: Source, folder: Path, progress: Callable[[float], None]) -> DuckSource:
    """The same rows, sorted by DuckDB in bounded memory, in a hidden file inside the folder."""
    names, engine = tuple(source.schema), Engine(folder)
    try:
        check_distinct(source.schema)
        columns = [f"c{index} {_type(source, name)}" for index, name in enumerate(names)]
        engine.run(f"CREATE TABLE unsorted ({', '.join(columns)})")
        done = 0
        for block in source.scan(names):
            engine.insert("unsorted", {f"c{index}": block[name] for index, name in enumerate(names)})
            done += len(block[names[0]])
            progress(done / source.rows / 2)
        source.close()
        by = ", ".join(f"c{names.index(name)}" for name in _sorting(source))
        listed = ", ".join(f"c{index}" for index in range(len(names)))

        def fill(create: str) -> None:
            engine.watch(
                f"{create} SELECT {listed} FROM unsorted ORDER BY {by}", lambda part: progress(0.5 + part / 2)
            )
            engine.run("DROP TABLE unsorted")

        return snapshot(engine, _coded(source.schema), fill)
    except BaseException:
        engine.close()
        raise


def _coded(schema: Schema) -> Schema:
    """The same codes, in which those of texts are numbers: they have their dictionary already."""
    return schema.retyped(dict.fromkeys(schema.texts, Integer(0, Text(1).codes - 1)))


def _type(source: Source, name: str) -> str:
    dtype = source.schema[name].dtype
    return (
        "DOUBLE"
        if dtype.kind == "f"
        else {1: "UTINYINT", 2: "USMALLINT", 4: "UINTEGER", 8: "UBIGINT"}[dtype.itemsize]
    )


def _sorting(source: Source) -> tuple[str, ...]:
    """The halves of the key, which stand last in the schema, and then the declared columns."""
    names = tuple(source.schema)
    return (*names[-2:], *names[:-2])


def _is_key(block: Block, key: tuple[str, str]) -> NDArray[np.bool_]:
    """NULL has the largest code, in both halves."""
    known: NDArray[np.bool_] = block[key[1]] < KEY_LIMIT
    return known
