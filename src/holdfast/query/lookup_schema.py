"""Public tables as questions see them: their columns stand beside those of the rows, found by key.

SELECT carriers.name, avg(dep_delay) FROM flights JOIN carriers USING (carrier) GROUP BY carriers.name
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.query.column import ColumnType
from holdfast.query.schema import Schema
from holdfast.query.wording import Spelt, quoted


@dataclass(frozen=True, slots=True)
class Joined:
    """A public table: its name, the columns of the rows that are its key with what it calls them, and its columns.

    `digest` tells its contents from others': a session goes on with those that it was opened with.
    """

    name: str
    keys: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, ColumnType], ...]
    digest: str

    def called(self, column: str) -> Spelt:
        """What a column of it is called in a question."""
        return Spelt(f"{self.name}.{quoted(column)}")

    @property
    def matched(self) -> Spelt:
        """A column that is NULL exactly on the rows whose key it does not have."""
        return self.called(self.keys[0][1])


class LookupSchema(Schema):
    """Declared columns, and those of public tables: `carriers.name`, or `name` where nothing else is called so."""

    __slots__ = ("aliases", "base", "joined")
    base: Schema
    joined: dict[str, Joined]
    aliases: dict[str, str]

    def __init__(self, base: Schema, joined: Iterable[Joined]) -> None:
        tables = {each.name: each for each in joined}
        found = [(each, column, kind) for each in tables.values() for column, kind in each.columns]
        self._fill(dict(base) | {each.called(column): kind for each, column, kind in found})
        aliases: dict[str, str] = {}
        for each, column, _ in found:
            name = each.called(column)
            aliases[name] = aliases[f"{each.name}.{column}"] = name
            if column not in base and sum(column == other for _, other, _ in found) == 1:
                aliases[column] = name
        for slot, value in (("base", base), ("joined", tables), ("aliases", aliases)):
            object.__setattr__(self, slot, value)
        object.__setattr__(self, "_hash", hash((base, *tables.values())))

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, LookupSchema) and (self.base, self.joined) == (other.base, other.joined)
        return same if isinstance(other, Schema) else NotImplemented

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return LookupSchema, (self.base, list(self.joined.values()))

    @property
    def lookups(self) -> dict[str, Joined]:
        """The public tables."""
        return self.joined

    def spelling(self, name: str) -> str | None:
        return self.aliases.get(name) or self.base.spelling(name)

    def retyped(self, types: Mapping[str, ColumnType]) -> Schema:
        return LookupSchema(self.base.retyped(types), self.joined.values())

    def to_json(self) -> dict[str, Any]:
        return {**self.base.to_json(), "lookups": lookups_json(self.joined.values())}


def lookups_json(joined: Iterable[Joined]) -> list[list[str]]:
    """What tells public tables from others."""
    return [[each.name, each.digest] for each in joined]


def joined_of(schema: Schema) -> Mapping[str, Joined]:
    """The public tables beside a table's columns."""
    return schema.joined if isinstance(schema, LookupSchema) else {}
