"""The declaration of units and their events: what is protected, drawn and generalised to, and what it may own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.check import near
from holdfast.errors import QueryError, SchemaError
from holdfast.query.column import ColumnType, Integer, Text
from holdfast.query.lookup_schema import Joined, LookupSchema, joined_of, lookups_json
from holdfast.query.schema import Schema
from holdfast.query.wording import Spelt

if TYPE_CHECKING:
    from holdfast.query.aggregate import Aggregate

LONE = "rows"
"""What a lone table of events is called in a question."""


@dataclass(frozen=True, slots=True)
class Events:
    """A table of which a unit owns any number of rows, and at most `most` are kept. `order` is the column by which
    the first and the last of them are known."""

    schema: Schema
    most: int
    order: str | None = None


@dataclass(frozen=True, slots=True)
class Over:
    """The events that a question is about, and how many of them one unit has at most."""

    table: str
    most: int
    unit: str

    def __str__(self) -> str:
        what = "rows" if self.table == LONE else f"rows of {self.table}"
        return f"over {what}, at most {self.most} a {self.unit}"


class UnitSchema(Schema):
    """The columns of a unit, and the tables of its events. A mapping from the unit's columns to their types.

    What events say of a unit is a column of it as well, under the name by which it is written:
    `count(visits, cost > 100)`. There is no end of those, so they are found by name and not listed; a unit that has
    no columns of its own lists how many rows it has.
    """

    __slots__ = ("beside", "events", "table", "unit")
    unit: str
    table: str | None
    events: dict[str, Events]
    beside: LookupSchema | None
    """The unit's columns with the public tables beside them, if there are any."""

    def __init__(
        self, unit: str, columns: Mapping[str, ColumnType], events: Mapping[str, Events], table: str | None
    ) -> None:
        (name, first), *_ = events.items()
        self._fill(dict(columns) or {Spelt(f"count({name})"): Integer(0, first.most)})
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "events", dict(events))
        object.__setattr__(self, "beside", columns if isinstance(columns, LookupSchema) else None)
        object.__setattr__(self, "_hash", hash((self._hash, unit, table, self.beside, *events.items())))

    @property
    def is_lone(self) -> bool:
        """Whether there is one table of events and nothing else."""
        return self.table is None

    def __getitem__(self, name: str) -> ColumnType:
        found = self._columns.get(name)
        if found is not None:
            return found
        aggregate = self.aggregate(name)
        if aggregate is None:
            raise KeyError(name)
        return aggregate.type

    def __contains__(self, name: object) -> bool:
        return name in self._columns or (isinstance(name, str) and self.aggregate(name) is not None)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UnitSchema):
            return NotImplemented if not isinstance(other, Schema) else False
        return self is other or (
            self._hash == other._hash
            and list(self._columns.items()) == list(other._columns.items())
            and (self.unit, self.table, self.events) == (other.unit, other.table, other.events)
            and self.beside == other.beside
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return UnitSchema, (self.unit, self.beside or self.own, self.events, self.table)

    def __repr__(self) -> str:
        events = ", ".join(
            f"{name}: at most {each.most} of {each.schema!r}" for name, each in self.events.items()
        )
        return f"UnitSchema({self.unit!r}: {Schema.__repr__(self)}; {events})"

    def spelling(self, name: str) -> str | None:
        """The declared name of a column that may be written with its table in front."""
        if self.beside is not None and (known := self.beside.spelling(name)) is not None:
            return known
        if name in self._columns:
            return name
        table, _, column = name.partition(".")
        if column in self._columns and table == self.table:
            return column
        found = self.aggregate(name)
        return None if found is None else found.name

    @property
    def texts(self) -> dict[str, Text]:
        """The text columns of units, and then of their events as a question names them."""
        own = {name: kind for name, kind in self.own.items() if isinstance(kind, Text)}
        types = ((name, self.events[table].schema[column]) for name, table, column in event_columns(self))
        return own | {name: kind for name, kind in types if isinstance(kind, Text)}

    def retyped(self, types: Mapping[str, ColumnType]) -> Schema:
        own = {name: types.get(name, kind) for name, kind in self.own.items()}
        columns = own if self.beside is None else self.beside.retyped(types)
        events = {}
        for table, each in self.events.items():
            names = self.of_rows(table).own
            kinds = {column: types[name] for name, column in names.items() if name in types}
            events[table] = replace(each, schema=each.schema.retyped(kinds)) if kinds else each
        return UnitSchema(self.unit, columns, events, self.table)

    def ordered(self, names: Iterable[str]) -> tuple[str, ...]:
        """Names in the declared order, then what is found by name."""
        wanted = frozenset(names)
        listed = tuple(name for name in self._columns if name in wanted)
        return (*listed, *sorted(wanted.difference(listed)))

    def aggregate(self, name: str) -> Aggregate | None:
        """What events say of a unit, by the name of that column; None if it is no such name."""
        try:
            return self.read(name) if name.endswith(")") else None
        except QueryError:
            return None

    def read(self, name: str) -> Aggregate:
        """The same; QueryError says what is wrong with the name."""
        return _aggregate(self, name)

    def unknown(self, name: str) -> str:
        """What to say of a name that is none of the unit's columns."""
        table, dot, column = name.partition(".")
        owners = self.owners(name)
        if (column or table) == self.unit and (not dot or table in (self.table, *self.events)):
            return (
                f"{name} is the key that tells one {self.unit} from another, and no question is about single keys; "
                f"count those who have such rows with exists({next(iter(self.events))}, ...)"
            )
        if dot and table in self.events and column in self.events[table].schema:
            owners = [table]
        elif dot and table in self.events:
            return f"there is no column {name!r}; {table} has {', '.join(self.events[table].schema)}"
        elif dot and table in self.lookups:
            return f"there is no column {name!r}; {table} has {', '.join(dict(self.lookups[table].columns))}"
        elif dot and table != self.table:
            known = (*filter(None, [self.table]), *self.events, *self.lookups)
            return f"there is no table {table!r}; there is {', '.join(known)}"
        if owners:
            return (
                f"{name} is a column of the rows of {owners[0]}, and this is asked of each {self.unit}; write "
                f"count({owners[0]}, ...), exists({owners[0]}, ...), or sum, avg, min or max of it"
            )
        return f"there is no column {name!r}{near(name, self)}"

    def of_rows(self, table: str) -> RowSchema:
        """What a question about the events of a table may use."""
        return _of_rows(self, table)

    def owners(self, column: str) -> list[str]:
        """The tables of events that have a column of this name."""
        return [table for table, each in self.events.items() if each.schema.spelling(column) is not None]

    @property
    def lookups(self) -> dict[str, Joined]:
        """The public tables beside that of the units and those of events."""
        schemas = [*filter(None, [self.beside]), *(each.schema for each in self.events.values())]
        return {name: each for schema in schemas for name, each in joined_of(schema).items()}

    @property
    def own(self) -> dict[str, ColumnType]:
        """The declared columns of the unit."""
        return {} if self.is_lone else self._columns

    def to_json(self) -> dict[str, Any]:
        columns = [{"name": name, **column.to_json()} for name, column in self.own.items()]
        events = [
            {"name": name, "most": each.most, "order": each.order, **each.schema.to_json()}
            for name, each in self.events.items()
        ]
        found = {"unit": self.unit, "table": self.table, "columns": columns, "events": events}
        return found | ({} if self.beside is None else {"lookups": lookups_json(self.beside.joined.values())})


class RowSchema(Schema):
    """The columns of the events of one table, and those of the unit that owns them.

    Events' columns are written with their table in front, `visits.cost`, and may be asked for without it where the
    unit has none of that name; where it has, neither may. In a lone table they are called as they are declared.
    """

    __slots__ = ("aliases", "of", "own", "table")
    of: UnitSchema
    table: str
    own: dict[str, str]
    """Each column of the events, and what the table calls it."""
    aliases: dict[str, str]

    def __init__(self, of: UnitSchema, table: str) -> None:
        own = {_event_name(of, table, column): column for column in of.events[table].schema}
        types = {name: of.events[table].schema[column] for name, column in own.items()}
        units = list(_unit_names(of, table))
        aliases = {f"{of.table}.{column}": name for name, column in units}
        for name, column in own.items():
            aliases[name] = aliases[f"{table}.{column}"] = name
            if column not in of.own:
                aliases[column] = name
        self._fill(types | {name: of.own[column] for name, column in units})
        aliases = _looked_up(of, table, self._columns) | aliases
        for slot, value in (("of", of), ("table", table), ("own", own), ("aliases", aliases)):
            object.__setattr__(self, slot, value)
        object.__setattr__(self, "_hash", hash((of, table)))

    def __getitem__(self, name: str) -> ColumnType:
        found = self._columns.get(name)
        return self.of[name] if found is None else found

    def __contains__(self, name: object) -> bool:
        return name in self._columns or (name not in self.of.own and name in self.of)

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, RowSchema) and (self.of, self.table) == (other.of, other.table)
        return same if isinstance(other, Schema) else NotImplemented

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return RowSchema, (self.of, self.table)

    @property
    def over(self) -> Over:
        """The events, as a question names them."""
        return Over(self.table, self.of.events[self.table].most, self.of.unit)

    def spelling(self, name: str) -> str | None:
        """The one name of a column, however it is written."""
        if name in self.aliases:
            return self.aliases[name]
        if name in self._columns:
            return name
        own = self.of.spelling(name)
        if own in self.of.own:
            raise QueryError(f"{own} may be two columns; write {self.of.table}.{own} or {self.table}.{own}")
        return own

    def ordered(self, names: Iterable[str]) -> tuple[str, ...]:
        """Names in the declared order, then what is found by name."""
        wanted = frozenset(names)
        listed = tuple(name for name in self._columns if name in wanted)
        return (*listed, *sorted(wanted.difference(listed)))


class Slots(np.ndarray[Any, np.dtype[np.int64]]):
    """How many events each unit has, where each unit has `most` places for them: those beyond are of others, or empty.

    Whatever reads events that come so asks `counted` which of the places count.
    """

    most: int

    @classmethod
    def of(cls, lengths: NDArray[np.int64], most: int) -> Slots:
        """These lengths, each at most `most`."""
        slots = lengths.view(cls)
        slots.most = most
        return slots


def counted(chosen: NDArray[np.bool_], lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The places that were chosen and hold an event of their unit."""
    if not isinstance(lengths, Slots):
        return chosen
    full: NDArray[np.bool_] = _full(lengths.most).take(lengths.view(np.ndarray)).view(np.bool_)
    return chosen & full


@cache
def _full(most: int) -> NDArray[Any]:
    """For each length which of the places are full, as one value."""
    rows = np.arange(most) < np.arange(most + 1)[:, None]
    return np.ascontiguousarray(rows).view(f"V{most}")[:, 0]


def event_rows(
    block: Mapping[str, NDArray[Any]], schema: RowSchema, *, owners: bool = False
) -> dict[str, NDArray[Any]]:
    """The events of a block of units, one place for each: what is the unit's is repeated for each of its events.

    Under the table's own name stands, for each event, the place of its unit in the block, if `owners` are wanted or
    nothing else tells how many events there are.
    """
    lengths = block[schema.table]
    repeats = lengths.most if isinstance(lengths, Slots) else lengths
    rows: dict[str, NDArray[Any]] = {}
    if owners or not any(name in schema.own for name in block):
        rows[schema.table] = np.repeat(np.arange(len(lengths)), repeats)
    for name, codes in block.items():
        if name in schema.own:
            rows[name] = codes
        elif name in schema:
            rows[name] = np.repeat(codes, repeats)
    return rows


def by_unit(values: NDArray[Any], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sum of whole numbers over the events of each unit; exact. In slots those that do not count are 0."""
    if isinstance(lengths, Slots):
        wide = values.reshape(len(lengths), lengths.most)
        if wide.dtype == np.bool_ and lengths.most < 256:
            wide = wide.view(np.uint8)
        summed: NDArray[Any] = np.einsum("ij->i", wide)
        return summed.astype(np.int64)
    sums = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, dtype=np.int64, out=sums[1:])
    ends = np.cumsum(lengths)
    found: NDArray[np.int64] = sums[ends] - sums[ends - lengths]
    return found


def _event_name(of: UnitSchema, table: str, column: str) -> str:
    return column if of.is_lone or isinstance(column, Spelt) else Spelt(f"{table}.{column}")


def _looked_up(of: UnitSchema, table: str, taken: Mapping[str, ColumnType]) -> dict[str, str]:
    """What the columns of public tables may be called beside events; a word that may mean two of them is none."""
    found: dict[str, str] = {}
    twice = set(taken)
    for schema in (of.beside, of.events[table].schema):
        for alias, name in schema.aliases.items() if isinstance(schema, LookupSchema) else ():
            twice |= {alias} & set(found)
            found[alias] = name
    return {alias: name for alias, name in found.items() if "." in alias or alias not in twice}


def _unit_names(of: UnitSchema, table: str) -> Iterator[tuple[str, str]]:
    """What the unit's own columns are called beside those of its events, and how they were declared."""
    for column in of.own:
        yield (Spelt(f"{of.table}.{column}") if column in of.events[table].schema else column), column


def event_columns(schema: UnitSchema) -> Iterator[tuple[str, str, str]]:
    """Each column of events: the name in a question, its table, what the table calls it."""
    for table in schema.events:
        for name, column in schema.of_rows(table).own.items():
            yield name, table, column


def no_column(schema: Schema, name: str) -> str:
    """What to say of a name that is no column of a schema."""
    of = schema.of if isinstance(schema, RowSchema) else schema
    if isinstance(of, UnitSchema):
        return of.unknown(name)
    return f"there is no column {name!r}; the columns are {', '.join(schema)}"


def table_of(schema: Schema, name: str) -> str | None:
    """The table of events that a column belongs to, by its one name; None if it is no column of events."""
    columns = event_columns(schema) if isinstance(schema, UnitSchema) else ()
    return next((table for column, table, _ in columns if column == name), None)


def schema_from_json(value: object) -> Schema:
    """The schema that `to_json` wrote, of rows or of units and their events."""
    if not isinstance(value, Mapping) or "unit" not in value:
        return Schema.from_json(value)
    unit, table, events = value["unit"], value["table"], value["events"]
    own = {} if table is None else dict(Schema.from_json({"columns": value["columns"]}))
    if not isinstance(unit, str) or not isinstance(events, list) or not events:
        raise SchemaError("expected a unit with at least one table of events, got none")
    return UnitSchema(unit, own, {each["name"]: _events_from_json(each) for each in events}, table)


def _events_from_json(value: Any) -> Events:
    schema, most, order = Schema.from_json(value), value["most"], value["order"]
    if type(most) is not int or not 1 <= most < 2**31 or (order is not None and order not in schema):
        raise SchemaError(
            "expected events with a bound of at least 1, and an order among their columns, got others"
        )
    return Events(schema, most, order)


@lru_cache(maxsize=4096)
def _aggregate(schema: UnitSchema, name: str) -> Aggregate:
    # A name is a text in the language of questions, whose reader needs schemas.
    from holdfast.query.across import read_aggregate

    return read_aggregate(name, schema)


@lru_cache(maxsize=256)
def _of_rows(schema: UnitSchema, table: str) -> RowSchema:
    return RowSchema(schema, table)
