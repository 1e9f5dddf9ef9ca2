"""Aggregates in a SELECT that are functions of several sums, under the names that PostgreSQL and DuckDB give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.query.casts import WHOLE
from holdfast.query.expression import Expression
from holdfast.query.group_keys import Key, read_key
from holdfast.query.parse import Converter, bare
from holdfast.query.predicate import Always, Predicate
from holdfast.query.presence import known
from holdfast.query.scan import REGRESSIONS

_OF_ONE = {
    "variance": ("variance", True, "var_samp"),
    "variancepop": ("variance", False, "var_pop"),
    "stddev": ("std", True, "stddev_samp"),
    "stddevsamp": ("std", True, "stddev_samp"),
    "stddevpop": ("std", False, "stddev_pop"),
}
_OF_TWO = {
    "covarsamp": ("covariance", True, "covar_samp"),
    "covarpop": ("covariance", False, "covar_pop"),
    "corr": ("correlation", False, "corr"),
}
_LINES = {"regr_slope": "slope", "regr_intercept": "intercept", "regr_r2": "r2"}


@dataclass(frozen=True, slots=True)
class Combination:
    """What is read off several sums: see `holdfast.query.statistic.Statistic`, whose words these are."""

    kind: str
    label: str
    values: tuple[Expression, ...] = ()
    sample: bool = False
    chosen: Predicate | None = None
    against: Predicate | None = None
    first: Predicate | None = None
    """Of a contrast, the rows that are compared with those of `compared`."""
    compared: Predicate | None = None


def is_combination(node: Any) -> bool:
    """Whether its name, or its form, is that of one."""
    return (
        node.key in _OF_ONE
        or node.key in _OF_TWO
        or _is_ratio(node)
        or _is_contrast(node)
        or called_regression(node) is not None
    )


def _is_ratio(node: Any) -> bool:
    return bool(node.key == "div" and node.this.key == node.expression.key == "sum")


def _is_contrast(node: Any) -> bool:
    sides = (node.this, node.expression) if node.key == "sub" else ()
    return bool(sides) and all(side.key in ("avg", "filter") for side in sides)


def called_regression(node: Any) -> str | None:
    """Which of PostgreSQL's regr_ functions it calls; these are read as functions of our own."""
    called = str(node.this).removeprefix("_") if node.key == "anonymous" else ""
    return called if called in REGRESSIONS else None


def regression_part(reader: Converter, node: Any) -> tuple[str, Expression | None, Predicate] | None:
    """regr_count, regr_avgx and regr_avgy: a count or a mean of the rows where both numbers are known."""
    called = called_regression(node)
    if called is None or called in _LINES:
        return None
    values = _two(reader, node)
    where = known(*values, schema=reader.schema)
    return called, None if called == "regr_count" else values[called == "regr_avgx"], where


def _two(reader: Converter, node: Any) -> tuple[Expression, Expression]:
    if len(node.expressions) != 2:
        raise reader.refusal(f"{called_regression(node)} takes two numbers, the explained one first", node)
    return reader.number(node.expressions[0]), reader.number(node.expressions[1])


def _contrast(reader: Converter, node: Any) -> Combination:
    """avg(x) FILTER (WHERE a) - avg(x) FILTER (WHERE b)."""
    sides = [side.this if side.key == "filter" else side for side in (node.this, node.expression)]
    wheres = [
        reader.predicate(side.expression.this, positive=True) if side.key == "filter" else Always()
        for side in (node.this, node.expression)
    ]
    if any(side.key != "avg" for side in sides) or wheres[0] == wheres[1]:
        raise reader.refusal(_CONTRAST, node)
    if all(reader.is_condition(side.this) for side in sides):
        both: list[Any] = [reader.predicate(side.this, positive=True) for side in sides]
        against = reader.predicate(sides[0].this, positive=False)
        parts: dict[str, Any] = {"chosen": both[0], "against": against}
    elif any(reader.is_condition(side.this) for side in sides):
        raise reader.refusal(_CONTRAST, node)
    else:
        both = [reader.number(side.this) for side in sides]
        parts = {"values": (both[0],)}
    if both[0] != both[1]:
        raise reader.refusal(_CONTRAST, node)
    first, second = (f"avg({each}) FILTER (WHERE {where})" for each, where in zip(both, wheres, strict=True))
    label = f"{first} - {second}"
    return Combination("contrast", label, first=wheres[0], compared=wheres[1], **parts)


_CONTRAST = (
    "a difference is of the same mean in two groups of rows; "
    "write avg(x) FILTER (WHERE a) - avg(x) FILTER (WHERE b)"
)


def combination(reader: Converter, node: Any) -> Combination | None:
    """A variance, a standard deviation, a covariance, a correlation; a line; the mean of a condition; a sum over a sum;
    a mean less a mean. None if it is none of them."""
    key = node.key
    if key in _OF_ONE:
        kind, sample, name = _OF_ONE[key]
        value = reader.number(node.this)
        return Combination(kind, f"{name}({value})", (value,), sample)
    if key in _OF_TWO:
        kind, sample, name = _OF_TWO[key]
        values = reader.number(node.this), reader.number(node.expression)
        return Combination(kind, f"{name}({values[0]}, {values[1]})", values, sample)
    if (called := called_regression(node)) in _LINES:
        values = _two(reader, node)
        return Combination(_LINES[called], f"{called}({values[0]}, {values[1]})", values)
    if _is_contrast(node):
        return _contrast(reader, node)
    if key == "avg" and reader.is_condition(cast := _uncast(node.this)):
        chosen, against = (reader.predicate(cast, positive=positive) for positive in (True, False))
        return Combination("share", f"avg({chosen})", (), chosen=chosen, against=against)
    if _is_ratio(node):
        values = reader.number(node.this.this), reader.number(node.expression.this)
        return Combination("ratio", f"sum({values[0]}) / sum({values[1]})", values)
    return None


def _uncast(node: Any) -> Any:
    """What is cast to a whole number: the average of a condition is a share, cast or not."""
    inner = bare(node)
    return inner.expressions[0] if inner.key == "anonymous" and str(inner.this) == f"_{WHOLE}" else inner


def running_sum(reader: Converter, node: Any, by: tuple[Key, ...]) -> Any:
    """What sum(...) OVER (ORDER BY the last group) adds up, group after group; None for what is no window."""
    if node.key != "window":
        return None
    order, keys = node.args.get("order"), node.args.get("partition_by") or []
    keys = [*keys, *(item.this for item in (order.expressions if order else []) if not item.args.get("desc"))]
    plain = set(filter(node.args.get, node.args)) <= {"this", "order", "partition_by", "over"}
    if not plain or not by or order is None or [read_key(reader, key) for key in keys] != list(by):
        raise reader.refusal(
            "a running total is sum(count(*)) OVER (PARTITION BY the other groups ORDER BY the last one), with "
            "the same groups in GROUP BY",
            node,
        )
    if node.this.key != "sum" or node.this.this is None:
        raise reader.refusal("running totals are of count and sum; write sum(count(*)) OVER (...)", node)
    return node.this.this
