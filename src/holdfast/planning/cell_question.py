"""Questions about the cells of two columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from holdfast.errors import InputError, QueryError
from holdfast.planning.meaning import events_of
from holdfast.planning.question import Interval, Read
from holdfast.planning.question_parts import Edges, Key, Text, where_of
from holdfast.query.across import scope
from holdfast.query.computed_groups import Product
from holdfast.query.group_keys import computed_keys, groups_of, key_texts
from holdfast.query.grouping import Groups
from holdfast.query.predicate import Predicate
from holdfast.query.schema import Real, Schema
from holdfast.query.statistic import Statistic


@dataclass(frozen=True, slots=True, kw_only=True)
class Independence(Interval):
    """How far two columns are from independent."""

    kind: Literal["independence"] = "independence"
    column: Key
    other: Key
    where: Text | None = None
    edges: Mapping[Key, Edges] | None = None

    def read(self, schema: Schema) -> Read:
        keys = [self.column, self.other]
        if not all(isinstance(key, str) for key in keys):
            raise InputError("expected two columns, each as a text, got something else")
        if self.edges is not None and not isinstance(self.edges, Mapping):
            raise InputError("expected edges= as a dict from columns to their edges, got something else")
        schema = scope(schema, [self.where, *computed_keys(keys)], key_texts(keys))
        for key in keys:
            if isinstance(schema.get(schema.spelling(key) or key), Real) and key not in (self.edges or {}):
                raise InputError(
                    f"expected edges= for the real column {key!r}, got none; cut it into a few bins"
                )
        cells = groups_of(schema, keys, self.edges)
        return self._read(independence_of(schema, cells, where_of(self.where, schema)))


def independence_of(schema: Schema, cells: Groups, where: Predicate) -> Statistic:
    """The dependence of two columns, given the groups of both."""
    assert isinstance(cells, Product)
    for part in cells.parts:
        if part.size < 2:
            raise QueryError(f"{part.column} has one group, so it is independent of everything; give it more")
    return Statistic("independence", where, over=events_of(schema), cells=cells)
