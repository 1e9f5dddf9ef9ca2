"""Public tables beside the rows: carriers, weather by the hour, postcodes. What they say costs no privacy."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.check import printable, shown
from holdfast.data.arrays import is_pandas, plain_array
from holdfast.data.engine import STREAM, Engine
from holdfast.data.lookup_join import LookedUp, LookupSource, wide
from holdfast.data.lookup_units import LookupUnits
from holdfast.data.open import open_source
from holdfast.data.source import Source
from holdfast.data.suggest import suggested_columns
from holdfast.data.unit_source import UnitSource
from holdfast.errors import DataError, InputError
from holdfast.query.calling import constructed
from holdfast.query.column import INTEGER_LIMIT
from holdfast.query.lookup_schema import LookupSchema
from holdfast.query.schema import Boolean, ColumnType, Date, Integer, Real, Schema, Text, Time, Timestamp
from holdfast.query.time_reading import DAY, STEPS, datetime_of, moment_of

_HALF = INTEGER_LIMIT // 2


@constructed
class Lookup:
    """A table that everybody may know, found by a key: `hf.open(flights, schema, lookups={"carriers": Lookup(...)})`.

    `key` names the columns of the key, called alike in both tables; a dict gives each column of the rows what this
    table calls it, `{"dest": "faa"}`. Its columns are then columns of the rows, `carriers.name`, in every question;
    NULL where a row's key is not in the table. No two of its rows may have one key. `schema` declares its columns;
    without one their types and bounds are read off the table, which is public.
    Guarantee: no privacy is lost by it, if what it holds was not read off the rows (docs/theorems.md, Theorem 70).
    """

    __slots__ = ("_frame", "_key", "_schema")

    def __init__(
        self, frame: object, key: str | Sequence[str] | Mapping[str, str], *, schema: Schema | None = None
    ) -> None:
        if isinstance(key, str):
            key = [key]
        if not isinstance(key, Mapping | Sequence) or not len(key):
            raise InputError(
                f'expected key= as names of columns, got {shown(key)}; write key=["origin", "hour"]'
            )
        pairs = dict(key) if isinstance(key, Mapping) else {each: each for each in key}
        self._key = {printable("key", mine): printable("key", its) for mine, its in pairs.items()}
        if len(pairs) < len(key) or len(set(self._key.values())) < len(self._key):
            raise InputError("expected each column of key= once, got one twice; leave it out")
        if schema is not None and not isinstance(schema, Schema):
            raise InputError(f"expected schema= as a Schema, got {type(schema).__name__}; or leave it out")
        self._frame, self._schema = frame, schema

    @property
    def key(self) -> dict[str, str]:
        """Each column of the rows, and what this table calls it."""
        return dict(self._key)

    def __repr__(self) -> str:
        return f"Lookup(key={self._key})"

    def beside(self, name: str, columns: Schema) -> LookedUp:
        """This table, as it is found from rows with these columns. A row's key is its value as declared: clamped."""
        own = {its: columns[_bare(mine)] for mine, its in self._key.items()}
        for mine, its in self._key.items():
            if isinstance(own[its], Real):
                raise InputError(
                    f"expected whole numbers, dates or texts as the key of {name!r}, got the real column {mine!r}"
                )
        declared = self._schema if self._schema is not None else _read_off(name, self._frame)
        missing = [its for its in self._key.values() if its not in declared and self._schema is None]
        if missing:
            raise DataError(f"expected a column {missing[0]!r} in the public table {name!r}, got none")
        keys = {its: wide(kind) for its, kind in own.items()}
        values = {column: kind for column, kind in declared.items() if column not in keys}
        source = open_source(self._frame, Schema.from_mapping({**keys, **values}), in_memory=True)
        blocks = list(source.scan(tuple(source.schema)))
        codes = {column: np.concatenate([block[column] for block in blocks]) for column in source.schema}
        pairs = tuple((_bare(mine), its) for mine, its in self._key.items())
        return LookedUp.of(name, pairs, own, values, codes, source.words)


def _bare(name: str) -> str:
    """The name of a column without its table."""
    return name.rpartition(".")[2]


def with_lookups(source: Source, lookups: Mapping[str, Lookup] | None) -> Source:
    """The same rows or units, with public tables beside them. InputError for what does not fit; no row is read."""
    if lookups is None:
        return source
    if not isinstance(lookups, Mapping) or not all(isinstance(each, Lookup) for each in lookups.values()):
        raise InputError(
            "expected lookups= as a dict of Lookups, got something else; write "
            '{"carriers": hf.Lookup(carriers, "carrier")}'
        )
    for name in lookups:
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(f"expected plain words as names of public tables, got {shown(name)}; rename it")
    if isinstance(source, UnitSource):
        return _units(source, lookups)
    tables = []
    for name, each in lookups.items():
        _refuse_taken(name, source.schema)
        _owner(name, each, {"": source.schema})
        tables.append(each.beside(name, source.schema))
    return LookupSource(source, tables) if tables else source


def more_lookups(source: Source, old: Mapping[str, Lookup], new: Mapping[str, Lookup]) -> Source:
    """The same rows with public tables beside those that stand there. InputError for what does not fit."""
    if not isinstance(new, Mapping) or not new:
        raise InputError(
            'expected public tables, got none; write {"carriers": hf.Lookup(carriers, "carrier")}'
        )
    twice = next((name for name in new if name in old), None)
    if twice is not None:
        raise InputError(
            f"expected another name than that of a table which stands, got {twice!r}; rename yours"
        )
    bare: Source = source.base if isinstance(source, LookupSource | LookupUnits) else source
    return with_lookups(bare, {**old, **new})


def _units(source: UnitSource, lookups: Mapping[str, Lookup]) -> UnitSource:
    schema = source.schema
    own = Schema.from_mapping(schema.own) if schema.own else None
    schemas = {name: each.schema for name, each in schema.events.items()}
    if own is not None and schema.table is not None:
        schemas = {schema.table: own} | schemas
    tables: dict[str, list[LookedUp]] = {name: [] for name in schemas}
    for name, each in lookups.items():
        _refuse_taken(name, schema, *schemas.values())
        if name in schemas:
            raise InputError(
                f"expected tables with different names, got {name!r} twice; rename the public one"
            )
        owner = _owner(name, each, schemas)
        tables[owner].append(each.beside(name, schemas[owner]))
    beside = {
        name: LookupSchema(schemas[name], [table.joined for table in some])
        for name, some in tables.items()
        if some
    }
    return LookupUnits(source, beside, tables)


def _owner(name: str, lookup: Lookup, schemas: Mapping[str, Schema]) -> str:
    """The one table that has all columns of a key."""
    written = {mine.rpartition(".")[0] for mine in lookup.key} - {""}
    fitting = [
        table
        for table, schema in schemas.items()
        if written <= {table} and all(_bare(mine) in schema for mine in lookup.key)
    ]
    if len(fitting) > 1:
        raise InputError(
            f"expected the key of {name!r} in one table, got it in {' and '.join(fitting)}; write "
            f'key={{"{fitting[0]}.{_bare(next(iter(lookup.key)))}": ...}}'
        )
    if not fitting:
        known = ", ".join(column for schema in schemas.values() for column in schema)
        raise InputError(
            f"expected the key of {name!r} among the declared columns of one table, got {', '.join(lookup.key)}; "
            f"declared are {known}"
        )
    return fitting[0]


def _refuse_taken(name: str, *schemas: Schema) -> None:
    if any(name in schema for schema in schemas):
        raise InputError(
            f"expected public tables and columns with different names, got {name!r} for both; rename it"
        )


def _read_off(name: str, frame: object) -> dict[str, ColumnType]:
    """Types and bounds of the columns of a public table."""
    if isinstance(frame, str | os.PathLike):
        return suggested_columns(os.fspath(frame))
    if isinstance(frame, Mapping):
        arrays = {column: plain_array(values) for column, values in frame.items()}
    elif is_pandas(frame, "DataFrame"):
        arrays = {column: values.to_numpy() for column, values in frame.items()}  # type: ignore[attr-defined]
    elif hasattr(frame, "__arrow_c_stream__") or type(frame).__name__ == "DuckDBPyRelation":
        arrays = _arrays(frame)
    else:
        raise InputError(
            f"expected a public table as arrays, a frame or a path, got {type(frame).__name__} for {name!r}"
        )
    found = {column: _type(name, column, values) for column, values in arrays.items()}
    return {column: kind for column, kind in found.items() if kind is not None}


def _arrays(stream: Any) -> dict[str, NDArray[Any]]:
    if not hasattr(stream, "__arrow_c_stream__"):
        return dict(stream.fetchnumpy())
    engine = Engine()
    try:
        engine.adopt(stream, lambda types: f"CREATE TABLE read AS SELECT * FROM {STREAM}")
        return engine.arrays("SELECT * FROM read")
    finally:
        engine.close()


def _type(table: str, column: object, values: NDArray[Any]) -> ColumnType | None:
    """The narrowest type that holds all values; None where there are none."""
    if not isinstance(column, str) or not column.isprintable() or values.ndim != 1:
        raise InputError(f"expected columns with printable names in the public table {table!r}, got another")
    if isinstance(values, np.ma.MaskedArray):
        values = values.compressed()
    if values.dtype.kind == "f":
        values = values[np.isfinite(values)]
    elif values.dtype.kind == "M":
        values = values[~np.isnat(values)].astype("datetime64[us]")
    known = [each for each in values.tolist() if each is not None and each == each]
    kinds = set(map(type, known))
    if not known:
        return None
    if kinds == {bool}:
        return Boolean()
    if kinds <= {int, float, bool}:
        least, most = min(known), max(known)
        if all(each == int(each) for each in known) and -_HALF < least <= most < _HALF:
            return Integer(int(least), int(most))
        return Real(least, most if most > least else math.nextafter(least + abs(least) + 1.0, math.inf))
    if kinds <= {datetime.date, datetime.datetime}:
        moments = [each for each in map(moment_of, known) if each is not None]
        step = next(
            (step for step, unit in STEPS.items() if not any(each % unit for each in moments)), "microsecond"
        )
        first, last = datetime_of(min(moments)), datetime_of(max(moments))
        if any(each % DAY for each in moments):
            return Timestamp(first, last, step)
        return Date(first.date(), last.date())
    if kinds == {datetime.time}:
        return Time(step="microsecond")
    if kinds == {str}:
        longest = max(map(len, known))
        return Text(longest) if longest else None
    raise InputError(
        f"expected numbers, texts, dates or truth values in {table}.{column}, got several; declare it in schema="
    )
