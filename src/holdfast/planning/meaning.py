"""Which statistic a question means: numbers and conditions that may be asked about, and those that are refused."""

from __future__ import annotations

from holdfast.check import shown
from holdfast.errors import InputError, QueryError
from holdfast.query.bounds import bounds
from holdfast.query.expression import Column, Expression
from holdfast.query.grouping import Groups, is_list
from holdfast.query.parse import parse_expression, parse_predicate
from holdfast.query.predicate import Predicate
from holdfast.query.schema import Date, Schema
from holdfast.query.select_statistics import Combination
from holdfast.query.statistic import Kind, Statistic
from holdfast.query.unit_schema import Over, RowSchema

MOST_FEATURES = 16
"""How many features a regression may have: the sums of all products of two are told."""


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
    if isinstance(value, Column) and isinstance(schema[value.name], Date):
        raise QueryError(f"dates are not added up; ask for a quantile or a histogram of {value.name!r}")
    return value


def refuse_no_features(features: object) -> None:
    """InputError unless it is a list of a few texts."""
    if not is_list(features) or not all(isinstance(text, str) for text in features):  # type: ignore[attr-defined]
        raise InputError(f"expected features as a list of columns or expressions, got {shown(features)}")
    if not 1 <= len(features) <= MOST_FEATURES:  # type: ignore[arg-type]
        raise InputError(f"expected between 1 and {MOST_FEATURES} features, got {len(features)}")  # type: ignore[arg-type]


def refuse_no_flag(sample: object) -> None:
    if not isinstance(sample, bool):
        raise InputError(f"expected sample= as True or False, got {shown(sample)}")


def varying(text: str, where: Predicate, schema: Schema) -> Expression:
    """A number that is not the same on all rows, as far as the schema shows."""
    return _refuse_constant(added_up(text, schema), where, schema)


def combined(schema: Schema, asked: Combination, where: Predicate, by: Groups | None) -> Statistic:
    """The same statistic, with the same refusals, as in a call."""
    kind: Kind = asked.kind  # type: ignore[assignment]
    if kind == "ratio":
        return ratio_of(*asked.values, schema=schema, where=where, by=by)
    values = [_refuse_constant(value, where, schema) for value in asked.values]
    if kind in ("covariance", "correlation"):
        refuse_twice(*values)
    return Statistic(
        kind, where, values[0] if values else None, by, over=events_of(schema), values=tuple(values[1:]),
        sample=asked.sample, chosen=asked.chosen, against=asked.against,
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
