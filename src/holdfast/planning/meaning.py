"""Which statistic a question means: numbers and conditions that may be asked about, and those that are refused."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from holdfast.check import shown
from holdfast.errors import InputError, QueryError
from holdfast.query.across import scope
from holdfast.query.bounds import bounds
from holdfast.query.computed_groups import ExpressionGroups, Product
from holdfast.query.expression import Column, Expression
from holdfast.query.grouping import Groups, is_list
from holdfast.query.parse import parse_expression, parse_predicate
from holdfast.query.predicate import Predicate, conjunction
from holdfast.query.running import LONGEST
from holdfast.query.schema import Integer, Real, Schema, Temporal
from holdfast.query.select_statistics import Combination
from holdfast.query.statistic import LINES, Kind, Statistic
from holdfast.query.unit_schema import Over, RowSchema

_SHORT = 500
"""Longer conditions are not kept: who writes them is anybody."""
MOST_FEATURES = 16
"""How many features a regression may have: the sums of all products of two are told."""
_MOST_WORK = 2**31
"""The products that running totals may need."""


def is_short(where: object) -> bool:
    """Whether this is a condition of which questions are kept."""
    return isinstance(where, str) and len(where) <= _SHORT


@lru_cache(maxsize=1024)
def by_condition(kind: Kind, where: str, schema: Schema) -> Statistic:
    """A question that has a condition only, kept by its words.

    It depends on them and on the columns alone, and on no rows and no ledger, so that one value serves all sessions.
    """
    schema = scope(schema, [where])
    asked = Statistic(kind, parse_predicate(where, schema), over=events_of(schema))
    asked.key  # noqa: B018  # kept with it
    return asked


def number_or_condition(
    text: str, schema: Schema
) -> tuple[Expression | None, Predicate | None, Predicate | None]:
    """What a mean is of: a number; or a condition, with where it is false: what is unknown is left out."""
    try:
        return added_up(text, schema), None, None
    except QueryError as refused:
        try:
            return None, parse_predicate(text, schema), parse_predicate(f"NOT ({text})", schema)
        except QueryError:
            raise refused from None


def added_up(text: str, schema: Schema) -> Expression:
    """A number that may be added up."""
    value = parse_expression(text, schema)
    if isinstance(value, Column) and isinstance(schema[value.name], Temporal):
        raise QueryError(
            f"dates and times are not added up; ask for a quantile or a histogram of {value.name!r}"
        )
    return value


def refuse_no_features(features: object) -> None:
    """InputError unless it is a list of a few texts."""
    if not is_list(features) or not all(isinstance(text, str) for text in features):  # type: ignore[attr-defined]
        raise InputError(f"expected features as a list of columns or expressions, got {shown(features)}")
    if not 1 <= len(features) <= MOST_FEATURES:  # type: ignore[arg-type]
        raise InputError(f"expected between 1 and {MOST_FEATURES} features, got {len(features)}")  # type: ignore[arg-type]


def is_flag(name: str, flag: object) -> bool:
    """A truth value as it is; InputError for what is none."""
    if not isinstance(flag, bool):
        raise InputError(f"expected {name}= as True or False, got {shown(flag)}")
    return flag


def added_up_by_groups(asked: Statistic, schema: Schema) -> Statistic:
    """The running totals of a count or a sum by groups, the last column of which has an order."""
    by = asked.by
    if by is None:
        raise InputError('expected by= with cumulative=, got none; name what it runs over, as in by="visit"')
    last = by.parts[-1] if isinstance(by, Product) else by
    if not _is_ordered(last, schema):
        raise QueryError(
            f"{last.column} has no order to add up along; let a number or a date come last in by="
        )
    refuse_long_lines(last.size, by.size // last.size)
    return replace(asked, running=True)


def refuse_long_lines(periods: int, lines: int) -> None:
    """InputError where sums along so many groups would take too long."""
    if periods > LONGEST or lines * periods**2 > _MOST_WORK:
        raise InputError(
            f"expected at most {LONGEST:,} groups to add up along, in few lines, got {lines:,} of {periods:,}; give "
            "coarser edges"
        )


def _is_ordered(groups: Groups, schema: Schema) -> bool:
    if isinstance(groups, ExpressionGroups):
        return groups.labels[0].lstrip("-").isdigit()
    return isinstance(schema[groups.column], Integer | Real | Temporal)


def varying(text: str, where: Predicate, schema: Schema) -> Expression:
    """A number that is not the same on all rows, as far as the schema shows."""
    return _refuse_constant(added_up(text, schema), where, schema)


def combined(schema: Schema, asked: Combination, where: Predicate, by: Groups | None) -> Statistic:
    """The same statistic, with the same refusals, as in a call."""
    kind: Kind = asked.kind  # type: ignore[assignment]
    if kind == "ratio":
        return ratio_of(*asked.values, schema=schema, where=where, by=by)
    values = [_refuse_constant(value, where, schema) for value in asked.values]
    if kind in ("covariance", "correlation", *LINES):
        refuse_twice(*values)
    if asked.first is None or asked.compared is None:
        compared = None
    else:
        where, compared = conjunction(where, asked.first), conjunction(where, asked.compared)
    return Statistic(
        kind, where, values[0] if values else None, by, over=events_of(schema), values=tuple(values[1:]),
        sample=asked.sample, chosen=asked.chosen, against=asked.against, compared=compared,
    )  # fmt: skip


def ratio_of(
    value: Expression, divisor: Expression, *, schema: Schema, where: Predicate, by: Groups | None
) -> Statistic:
    if bounds(divisor, where, schema) == (0, 0):
        raise QueryError(f"{divisor} is always 0, and nothing is divided by it; give another divisor")
    return Statistic("ratio", where, value, by, over=events_of(schema), values=(divisor,))


def refuse_twice(value: Expression, other: Expression) -> None:
    if value == other:
        raise QueryError(
            "this is one number twice: its correlation is 1, its covariance the variance; ask for variance"
        )


def _refuse_constant(value: Expression, where: Predicate, schema: Schema) -> Expression:
    """QueryError for a number that is the same on all rows, as far as the schema shows."""
    low, high = bounds(value, where, schema)
    if low == high:
        raise QueryError(f"{value} is the same number on all rows that qualify; there is nothing to ask")
    return value


def events_of(schema: Schema) -> Over | None:
    """The events that a question in these columns is about."""
    return schema.over if isinstance(schema, RowSchema) else None
