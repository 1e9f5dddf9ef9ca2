"""The number of distinct values as a question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from holdfast.check import shown
from holdfast.errors import InputError, QueryError
from holdfast.planning.meaning import events_of
from holdfast.planning.question import Grouped
from holdfast.planning.question_parts import Key
from holdfast.query.distinct import Values, column_values
from holdfast.query.group_keys import Key as Read
from holdfast.query.group_keys import computed_keys, key_of, key_texts
from holdfast.query.grouping import Groups
from holdfast.query.predicate import Predicate
from holdfast.query.schema import Schema
from holdfast.query.statistic import Statistic
from holdfast.query.unit_schema import no_column


@dataclass(frozen=True, slots=True, kw_only=True)
class Distinct(Grouped):
    """How many different values a column has, or something that is computed from columns."""

    kind: Literal["distinct"] = "distinct"
    column: Key

    @property
    def _texts(self) -> tuple[str, ...]:
        if not isinstance(self.column, str):
            raise InputError(f"expected the name of one column, got {shown(self.column)}")
        return tuple(computed_keys(self.column))

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(key_texts(self.column))

    def _statistic(self, schema: Schema, where: Predicate, by: Groups | None) -> Statistic:
        return distinct_of(schema, key_of(self.column, schema), where, by)


def distinct_of(schema: Schema, key: Read, where: Predicate, by: Groups | None) -> Statistic:
    """The number of distinct values of what could be grouped by."""
    values: Values
    if not isinstance(key, str):
        values = key
    elif key in schema:
        values = column_values(schema, key, 1 if by is None else by.size)
    else:
        raise QueryError(no_column(schema, key))
    return Statistic("distinct", where, None, by, over=events_of(schema), distinct=values)
