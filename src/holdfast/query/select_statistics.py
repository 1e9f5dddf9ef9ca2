"""Aggregates in a SELECT that are functions of several sums, under the names that PostgreSQL and DuckDB give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.query.expression import Expression
from holdfast.query.group_keys import Key, read_key
from holdfast.query.parse import Converter
from holdfast.query.predicate import Predicate

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


@dataclass(frozen=True, slots=True)
class Combination:
    """What is read off several sums: see `holdfast.query.statistic.Statistic`, whose words these are."""

    kind: str
    label: str
    values: tuple[Expression, ...] = ()
    sample: bool = False
    chosen: Predicate | None = None
    against: Predicate | None = None


def is_combination(node: Any) -> bool:
    """Whether its name, or its form, is that of one."""
    return node.key in _OF_ONE or node.key in _OF_TWO or _is_ratio(node)


def _is_ratio(node: Any) -> bool:
    return bool(node.key == "div" and node.this.key == node.expression.key == "sum")


def combination(reader: Converter, node: Any) -> Combination | None:
    """A variance, a standard deviation, a covariance, a correlation; the mean of a condition; a sum over a sum. None if
    it is none of them."""
    key = node.key
    if key in _OF_ONE:
        kind, sample, name = _OF_ONE[key]
        value = reader.number(node.this)
        return Combination(kind, f"{name}({value})", (value,), sample)
    if key in _OF_TWO:
        kind, sample, name = _OF_TWO[key]
        values = reader.number(node.this), reader.number(node.expression)
        return Combination(kind, f"{name}({values[0]}, {values[1]})", values, sample)
    if key == "avg" and _is_condition(reader, node.this):
        chosen, against = (reader.predicate(node.this, positive=positive) for positive in (True, False))
        return Combination("share", f"avg({chosen})", (), chosen=chosen, against=against)
    if _is_ratio(node):
        values = reader.number(node.this.this), reader.number(node.expression.this)
        return Combination("ratio", f"sum({values[0]}) / sum({values[1]})", values)
    return None


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


def _is_condition(reader: Converter, node: Any) -> bool:
    """Whether it is a truth value: a comparison, or a Boolean column."""
    if node.key == "paren":
        return _is_condition(reader, node.this)
    if node.key == "column":
        return bool(reader.schema[reader.name(node)].kind == "boolean")
    return node.key in _TRUTHS


_TRUTHS = frozenset(
    ["eq", "neq", "gt", "gte", "lt", "lte", "and", "or", "not", "in", "between", "is", "like", "exists"]
)
