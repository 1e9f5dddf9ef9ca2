"""The door for tables around one unit."""

from __future__ import annotations

import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.check import printable, whole
from holdfast.data.open import MEMORY_BYTES, POSTGRES, is_csv, open_beside, open_source
from holdfast.data.save import Progress, check_target
from holdfast.data.source import NoRows, Source
from holdfast.data.trace import Trace, traces
from holdfast.data.unit_build import LeftOut, units_in_memory, units_on_disk
from holdfast.data.unit_key import with_key
from holdfast.data.unit_source import UnitSource
from holdfast.data.unit_store import UnitStore
from holdfast.errors import InputError
from holdfast.query.schema import Schema
from holdfast.query.unit_schema import LONE, Events, UnitSchema

MOST_ROWS = 2**20
"""The largest bound on the rows of a unit."""


@dataclass(frozen=True, slots=True)
class Tables:
    """What an owner gives: the data of each table, and the declaration of all of them."""

    data: dict[str, Any]
    schema: UnitSchema
    relations: dict[str, str | None]

    def traces(self) -> list[Trace]:
        """By what these rows are known again."""
        return [trace for name, data in self.data.items() for trace in traces(data, self.relations[name])]

    def sources(
        self, folder: Path | None = None, progress: Callable[[str, float], None] = lambda table, part: None
    ) -> dict[str, Source]:
        """Each table with its key, where it lies; of events there may be none. CSV files are copied, into memory or
        inside a folder: `progress` says which of them and how far."""
        opened: dict[str, Source] = {}
        try:
            for name, data in self.data.items():
                events = self.schema.events.get(name)
                columns = with_key(
                    Schema.from_mapping(self.schema.own) if events is None else events.schema,
                    self.schema.unit,
                )
                try:
                    relation = self.relations[name]
                    opened[name] = (
                        open_source(data, columns, in_memory=False, table=relation)
                        if folder is None
                        else open_beside(data, columns, folder, partial(progress, name), relation)
                    )
                except NoRows:
                    if events is None or self.schema.is_lone:
                        raise
        except BaseException:
            for source in opened.values():
                source.close()
            raise
        return opened


def declared_units(
    data: object,
    schema: object,
    unit: str | None,
    rows_per_unit: int | Mapping[str, int] | None,
    order: str | Mapping[str, str] | None = None,
    table: str | Mapping[str, str] | None = None,
) -> Tables:
    """The declaration, or an InputError that says what is missing in it. No row is read."""
    if unit is None:
        raise InputError(
            'expected unit= with a bound for each table, got none; name the column of the key, unit="person"'
        )
    unit = printable("unit", unit)
    if isinstance(schema, Schema) or not isinstance(schema, Mapping):
        if not isinstance(schema, Schema):
            raise InputError(
                "expected a schema, or a dict with one for each table, got none; write Schema(...)"
            )
        if isinstance(rows_per_unit, Mapping) or isinstance(order, Mapping) or isinstance(table, Mapping):
            raise InputError(
                "expected one bound, order and table for one table, got a dict; write rows_per_unit=20"
            )
        events = {LONE: _events(LONE, schema, rows_per_unit, order)}
        return Tables({LONE: data}, _checked(UnitSchema(unit, {}, events, None)), {LONE: table})
    schemas: dict[str, Any] = dict(schema)
    if (
        not isinstance(data, Mapping)
        or set(data) != set(schemas)
        or not all(isinstance(n, str) for n in data)
    ):
        raise InputError("expected the same names in the dict of tables and in that of schemas, got others")
    if not all(isinstance(each, Schema) for each in schemas.values()):
        raise InputError("expected a Schema for each table, got something else")
    bounds = _by_table("rows_per_unit", rows_per_unit, schemas)
    orders, relations = _by_table("order", order, bounds), _by_table("table", table, schemas)
    own = [name for name in schemas if name not in bounds]
    if len(own) != 1:
        raise InputError(
            f"expected rows_per_unit= for every table but the one that has a row for each {unit}, got "
            f"{len(own)} tables without a bound; that one says how many there are, which is public"
        )
    events = {name: _events(name, schemas[name], bound, orders.get(name)) for name, bound in bounds.items()}
    if not events:
        raise InputError(
            "expected at least one table with a bound, got none; open a table of units without unit="
        )
    declared = _checked(UnitSchema(unit, schemas[own[0]], events, own[0]))
    named = {
        name: relations.get(name, name if isinstance(each, str) and each.startswith(POSTGRES) else None)
        for name, each in data.items()
    }
    return Tables(dict(data), declared, named)


def open_units(declared: Tables, secret: bytes, *, in_memory: bool | None = None) -> UnitSource:
    """The units of some tables: a copy, sorted and bounded, in memory or (large ones) in a temporary store.

    Servers and clusters are read once, and nothing is asked of them later.
    """
    sources, left_out = declared.sources(), LeftOut()
    if in_memory is None:
        size = sum(
            each.rows * sum(column.dtype.itemsize for column in each.schema.values())
            for each in sources.values()
        )
        in_memory = size <= MEMORY_BYTES
    try:
        if in_memory:
            found = units_in_memory(declared.schema, sources, secret, left_out)
        else:
            folder = tempfile.mkdtemp(prefix=".holdfast-")
            try:
                found = units_on_disk(declared.schema, sources, secret, left_out, Path(folder) / "units.hf")
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            weakref.finalize(found, shutil.rmtree, folder, True)
            found.path = None  # it is nobody's store: its ledger is that of the table
    finally:
        for source in sources.values():
            source.close()
    tell_owner(left_out)
    return found


def ingest_units(
    declared: Tables,
    path: str | Path,
    secret: bytes,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    beside: Callable[[Path], None] | None = None,
) -> UnitStore:
    """Copy tables of any size into a store of units, in bounded memory; see `units_on_disk`."""
    check_target(path, overwrite)
    report, left_out = progress or (lambda done, total: None), LeftOut()
    copied = [name for name, data in declared.data.items() if is_csv(data)]
    sorting, before = 2 * 1000 * len(declared.data), 1000 * len(copied)

    def copy(table: str, part: float) -> None:
        report(int(1000 * (copied.index(table) + part)), before + sorting)

    sources = declared.sources(Path(path).absolute().parent, copy)
    try:
        store = units_on_disk(
            declared.schema,
            sources,
            secret,
            left_out,
            path,
            overwrite=overwrite,
            progress=lambda done, total: report(before + sorting * done // total, before + sorting),
            beside=beside,
        )
    finally:
        for source in sources.values():
            source.close()
    tell_owner(left_out)
    return store


def tell_owner(left_out: LeftOut) -> None:
    """How many rows were left out, where only the owner looks: on a terminal, and in no log."""
    words = str(left_out)
    if words and sys.stderr is not None and sys.stderr.isatty():
        print(words, file=sys.stderr)


def _events(name: str, schema: Schema, bound: object, order: object) -> Events:
    if bound is None:
        raise InputError(
            "expected rows_per_unit= with unit=, got none; say how many rows of one unit are kept at most"
        )
    most = whole("rows_per_unit", bound)
    if most > MOST_ROWS:
        raise InputError(f"expected rows_per_unit of at most {MOST_ROWS:,}, got more")
    if order is not None and order not in schema:
        raise InputError(f"expected order= as a column of {name!r}, got another; it has {', '.join(schema)}")
    return Events(schema, most, None if order is None else str(order))


def _by_table(word: str, given: object, tables: Mapping[str, object]) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"expected {word}= as a dict with the names of tables, got {type(given).__name__}")
    unknown = [name for name in given if name not in tables]
    if unknown:
        raise InputError(f"expected {word}= for tables among {', '.join(tables)}, got another")
    return dict(given)


def _checked(schema: UnitSchema) -> UnitSchema:
    """Refuse names that would stand for two things in a question."""
    tables = {*schema.events, *filter(None, [schema.table])}
    columns = {*schema.own, *(name for each in schema.events.values() for name in each.schema)}
    for name in tables & columns:
        raise InputError(
            f"expected tables and columns with different names, got {name!r} for both; rename one"
        )
    for name in columns:
        if name.partition(".")[0] in tables and "." in name:
            raise InputError(
                f"expected column names that do not begin with a table's, got {name!r}; rename it"
            )
    for name in tables:
        if not name.isidentifier():
            raise InputError(f"expected the names of tables as plain words, got {name!r}; rename it")
    return schema
