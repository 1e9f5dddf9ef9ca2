"""A SELECT as a question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from holdfast.planning.cell_question import independence_of
from holdfast.planning.distinct_question import distinct_of
from holdfast.planning.meaning import added_up_by_groups, combined, events_of
from holdfast.planning.quantile_question import quantile_of
from holdfast.planning.question import Interval, Read
from holdfast.planning.question_parts import Text
from holdfast.query.across import parse_statement
from holdfast.query.expression import Column
from holdfast.query.group_keys import crossed
from holdfast.query.grouping import Groups
from holdfast.query.predicate import NotNull, Predicate, conjunction
from holdfast.query.schema import Schema
from holdfast.query.select import Aggregate
from holdfast.query.statistic import Kind, Statistic
from holdfast.query.unit_schema import UnitSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Sql(Interval):
    """A SELECT with aggregates, for all rows or by groups."""

    kind: Literal["sql"] = "sql"
    text: Text

    def read(self, schema: Schema) -> Read:
        several = isinstance(schema, UnitSchema) and not schema.is_lone
        select, schema = parse_statement(self.text, schema)
        by = crossed(schema, select.by) if select.by else None
        statistics = [_aggregate(schema, each, select.where, by) for each in select.aggregates]
        called = None if several else select.table
        return self._read(*statistics, table=called, arrangement=select.arrangement)


def _aggregate(schema: Schema, aggregate: Aggregate, where: Predicate, by: Groups | None) -> Statistic:
    value, where = aggregate.expression, conjunction(where, aggregate.where)
    if aggregate.several is not None:
        return combined(schema, aggregate.several, where, by)
    if aggregate.cells is not None:
        return independence_of(schema, crossed(schema, aggregate.cells), where)
    if aggregate.distinct is not None:
        return distinct_of(schema, aggregate.distinct, where, by)
    if aggregate.kind == "quantile":
        assert isinstance(value, Column) and aggregate.rank is not None
        return quantile_of(schema, value.name, aggregate.rank, where, by)
    if aggregate.kind == "count":
        present = [NotNull(value.name)] if isinstance(value, Column) else []
        asked = Statistic("count", conjunction(where, *present), None, by, over=events_of(schema))
    else:
        kind: Kind = "mean" if aggregate.kind == "avg" else "sum"
        asked = Statistic(kind, where, value, by, over=events_of(schema))
    return added_up_by_groups(asked, schema) if aggregate.running else asked
