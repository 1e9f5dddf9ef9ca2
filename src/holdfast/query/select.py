"""Whole SELECT statements: a few aggregates over one table, for all rows or by groups.

SELECT smoker, avg(income) AS mean FROM people WHERE age > 40 GROUP BY smoker ORDER BY mean DESC LIMIT 3
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeAlias

from holdfast.errors import InputError, QueryError
from holdfast.query.arrangement import Arrangement, Combined, Compared, Having
from holdfast.query.column import Boolean, Category, Real, Text
from holdfast.query.comparison import FLIPPED, NEGATED
from holdfast.query.expression import Column, Expression
from holdfast.query.extremes import EXTREMES
from holdfast.query.group_keys import Key, read_key
from holdfast.query.parse import COMPARISONS, Converter
from holdfast.query.predicate import Always, Predicate, conjunction
from holdfast.query.scan import scan
from holdfast.query.schema import Schema
from holdfast.query.select_statistics import (
    Combination,
    combination,
    is_combination,
    regression_part,
    running_sum,
)
from holdfast.query.temporal import Temporal
from holdfast.query.wording import quoted

MAX_AGGREGATES = 64

_Place: TypeAlias = tuple[int, int]
"""A part of an aggregate (0 its value, 1 and 2 the ends of its interval), or a column of the groups; and which."""
_GROUP = -1
_PARTS = ("value", "low", "high")
_ENDS = {"_low": 1, "_high": 2}

_ROLES = {
    "expressions",
    "from",
    "from_",
    "where",
    "group",
    "having",
    "order",
    "limit",
    "offset",
}  # the clause of FROM is spelt either way
_KINDS = {
    "count": "count",
    "sum": "sum",
    "avg": "avg",
    "median": "quantile",
    "quantile_cont": "quantile",
} | dict.fromkeys(EXTREMES, "quantile")


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One number per group: count, sum, avg or quantile (at `rank`).

    `expression` is None for count(*); for count and quantile it is a plain column. `label` is its alias, or
    the way it would be written.
    """

    kind: str
    expression: Expression | None
    label: str
    rank: float | tuple[float, ...] | None = None
    where: Predicate = field(default_factory=Always)
    """What stands behind FILTER: it is over those rows alone."""
    several: Combination | None = None
    """What is read off several sums."""
    running: bool = False
    """Whether the groups are added up one after another."""
    cells: tuple[Key, ...] | None = None
    """The two columns whose independence is asked about."""
    distinct: Key | None = None
    """What the different values are counted of."""


@dataclass(frozen=True, slots=True)
class Select:
    """What a SELECT statement asks. `by` is what it groups by; `table` is what it calls the table, which is no part
    of the question."""

    aggregates: tuple[Aggregate, ...]
    by: tuple[Key, ...]
    where: Predicate
    table: str = field(default="t", compare=False)
    arrangement: Arrangement = field(default=Arrangement(()), compare=False)
    """What is done with the groups once they are released."""


def parse_select(text: str, schema: Schema) -> Select:
    """The question in a SELECT statement. QueryError points at whatever else the statement holds."""
    if not isinstance(text, str):
        raise InputError(f"expected the text of a SELECT statement, got {type(text).__name__}")
    if not isinstance(schema, Schema):
        raise InputError(f"expected a Schema, got {type(schema).__name__}")
    return _parse(text, schema)


@lru_cache(maxsize=512)
def _parse(text: str, schema: Schema) -> Select:
    tokens = scan(text, schema, select=True)
    if tokens[0].value != "select":
        raise QueryError(
            "a statement starts with SELECT; write it, or ask for a fraction", text, tokens[0].start
        )
    for token in tokens[1:]:
        if token.value == "select" and token.kind == "keyword":
            raise QueryError(
                "a SELECT inside another stands in FROM or WITH, to choose rows; ask twice", text, token.start
            )
    reader = Converter(text, schema, tokens)
    node = reader.parsed(statement=True)
    if node.key != "select":
        raise reader.refusal("expected one SELECT statement", node)
    for role, part in node.args.items():
        if part and role not in _ROLES:
            first = part[0] if isinstance(part, list) else part
            raise reader.refusal("this is not in the language", first if hasattr(first, "walk") else node)
    table = _table(reader, node.args.get("from_") or node.args.get("from"))
    by = _group(reader, node)
    where = node.args.get("where")
    condition = reader.predicate(where.this, positive=True) if where else Always()
    items = _Items(reader, by)
    for item in node.expressions:
        items.show(item)
    aggregates = items.aggregates
    if not 1 <= len(aggregates) <= MAX_AGGREGATES:
        raise QueryError(
            f"expected between 1 and {MAX_AGGREGATES} aggregates, got {len(aggregates)}; for each group alone write "
            "count(*)"
            if not aggregates
            else f"expected between 1 and {MAX_AGGREGATES} aggregates, got {len(aggregates)}; ask twice",
            text,
            0,
        )
    if by and any(each.kind == "contrast" for each in aggregates):
        raise QueryError(
            "a difference compares two groups of rows, and has no groups of its own; ask for it without GROUP BY",
            text,
            0,
        )
    if by and any(each.cells is not None for each in aggregates):
        raise QueryError("independence is one number for all rows; ask for it without GROUP BY", text, 0)
    if len(aggregates) > 1 and any(isinstance(each.rank, tuple) for each in aggregates):
        raise QueryError("a list of ranks has an answer for each; ask for it in a SELECT of its own", text, 0)
    return Select(tuple(aggregates), by, condition, table, _arrangement(reader, node, items))


class _Items:
    """What is selected: aggregates, ends of their intervals, and columns of the groups."""

    def __init__(self, reader: Converter, by: tuple[Key, ...]) -> None:
        self.reader = reader
        self.by = by
        self.aggregates: list[Aggregate] = []
        self.shown: list[tuple[str, _Place]] = []

    def show(self, node: Any) -> None:
        """One more item of the SELECT."""
        alias = None
        if node.key == "alias":
            alias, node = self.reader.token(node.args["alias"]).value, node.this
        if (end := self._end(node)) is not None:
            part, inner = end
            place = self._found(inner)
            if place is None:
                place = self._added(self._item(inner, None))
            label = f"{_PARTS[part]}({self.aggregates[place].label})"
            self.shown.append((alias or label, (part, place)))
        elif (key := self._key(node)) is not None:
            self.shown.append((alias or self._name(key), (_GROUP, key)))
        else:
            found = self._item(node, alias)
            self.shown.append((found.label, (0, self._added(found))))

    def place(self, node: Any) -> int:
        """The place of an item of ORDER BY or HAVING; what is not selected is refused."""
        if (end := self._end(node)) is not None:
            part, inner = end
            if (aggregate := self._found(inner)) is not None:
                return self.number((part, aggregate))
        elif node.key == "literal" and not node.is_string:
            number = self.reader.literal(node)
            if number.denominator == 1 and 1 <= number <= len(self.shown):
                return self.number(self.shown[int(number) - 1][1])
        elif node.key == "column" and self.reader.token(node.this).kind == "name":
            labels = [label for label, _ in self.shown]
            return self.number(self.shown[labels.index(self.reader.token(node.this).value)][1])
        elif (key := self._key(node, quiet=True)) is not None:
            return self.number((_GROUP, key))
        elif node.key != "column" and (aggregate := self._found(node)) is not None:
            return self.number((0, aggregate))
        raise self.reader.refusal(
            "expected something that is selected: its alias, its place, or as it is written", node
        )

    def number(self, place: _Place) -> int:
        """A place as an `Arrangement` counts them."""
        part, index = place
        return -1 - index if part == _GROUP else part * len(self.aggregates) + index

    def _end(self, node: Any) -> tuple[int, Any] | None:
        """low(x) or high(x)."""
        part = _ENDS.get(str(node.this)) if node.key == "anonymous" else None
        if part is None:
            return None
        if len(node.expressions) != 1:
            raise self.reader.refusal(f"{_PARTS[part]} takes one aggregate, or the alias of one", node)
        return part, node.expressions[0]

    def _found(self, node: Any) -> int | None:
        """The place of an aggregate that is selected, by its alias or as it is written."""
        if node.key == "column":
            labels = [aggregate.label for aggregate in self.aggregates]
            name = self.reader.token(node.this).value
            return labels.index(name) if name in labels else None
        wanted = replace(self._item(node, None), label="")
        same = (i for i, each in enumerate(self.aggregates) if replace(each, label="") == wanted)
        return next(same, None)

    def _item(self, node: Any, alias: str | None) -> Aggregate:
        inner = running_sum(self.reader, node, self.by)
        if inner is None:
            return _item(self.reader, node, alias)
        found = _item(self.reader, inner, None)
        if found.kind not in ("count", "sum"):
            raise self.reader.refusal(
                "running totals are of count and sum; write sum(count(*)) OVER (...)", node
            )
        return replace(found, label=alias or f"running {found.label}", running=True)

    def _added(self, aggregate: Aggregate) -> int:
        self.aggregates.append(aggregate)
        return len(self.aggregates) - 1

    def _key(self, node: Any, *, quiet: bool = False) -> int | None:
        """Which column of the groups a node is; None for an aggregate."""
        if _is_aggregate(node) or (not self.by and node.key != "column"):
            return None
        key = read_key(self.reader, node)
        if key in self.by:
            return self.by.index(key)
        if quiet:
            return None
        what = quoted(key) if isinstance(key, str) else key.column
        raise self.reader.refusal(f"{what} must be in an aggregate, or in GROUP BY", node)

    def _name(self, key: int) -> str:
        return _called(self.by[key])


def _arrangement(reader: Converter, node: Any, items: _Items) -> Arrangement:
    """ORDER BY, HAVING and LIMIT over what is selected."""
    having, order, limit, offset = (node.args.get(role) for role in ("having", "order", "limit", "offset"))
    if having is not None and not items.by:
        raise reader.refusal("HAVING chooses among groups, and there is no GROUP BY", having)

    def comparable(item: Any) -> int | None:
        """The place of a number; None for a group or a date, which no number compares with."""
        place = items.place(item)
        value = items.aggregates[place % len(items.aggregates)].expression
        dated = isinstance(value, Column) and isinstance(reader.schema[value.name], Temporal)
        return None if place < 0 or dated else place

    orders = [
        (items.place(item.this), bool(item.args.get("desc")))
        for item in ([] if order is None else order.expressions)
    ]
    return Arrangement(
        tuple(aggregate.label for aggregate in items.aggregates),
        tuple(orders),
        None if having is None else _having(reader, having.this, comparable, positive=True),
        None if limit is None else _limit(reader, limit, "LIMIT", 1),
        tuple((label, items.number(place)) for label, place in items.shown),
        0 if offset is None else _limit(reader, offset, "OFFSET", 0),
    )


def _having(reader: Converter, node: Any, place: Callable[[Any], int | None], *, positive: bool) -> Having:
    """A condition on released values: comparisons with numbers, AND, OR and NOT."""
    key = node.key
    if key == "paren":
        return _having(reader, node.this, place, positive=positive)
    if key == "not":
        return _having(reader, node.this, place, positive=not positive)
    if key in ("and", "or"):
        parts = (_having(reader, part, place, positive=positive) for part in (node.this, node.expression))
        return Combined(tuple(parts), (key == "and") == positive)
    if key in COMPARISONS:
        op = COMPARISONS[key]
        left, right = node.this, node.expression
        if left.key in ("literal", "neg"):
            left, right, op = right, left, FLIPPED[op]
        number = reader.number_literal(right)
        aggregate = place(left)
        if number is not None and aggregate is not None:
            return Compared(aggregate, op if positive else NEGATED[op], float(number))
    raise reader.refusal("HAVING compares what is selected with numbers", node)


def _limit(reader: Converter, clause: Any, word: str, least: int) -> int:
    node = clause.expression
    number = reader.number_literal(node)
    if number is None or number.denominator != 1 or number < least:
        raise reader.refusal(f"{word} takes a whole number of at least {least}", node)
    return min(number.numerator, 2**31)


def _table(reader: Converter, clause: Any) -> str:
    if clause is None:
        raise QueryError("FROM and a table are missing; write FROM t", reader.text, len(reader.text))
    table = clause.this
    if (
        table.key != "table"
        or set(filter(table.args.get, table.args)) != {"this"}
        or table.this.key != "identifier"
    ):
        raise reader.refusal("FROM needs one plain table name", clause)
    return str(reader.token(table.this).value)


def _group(reader: Converter, select: Any) -> tuple[Key, ...]:
    """What is grouped by: columns, what is computed, or what is selected, by its alias or its place."""
    clause = select.args.get("group")
    if clause is None:
        return ()
    if clause.args.get("all"):
        items = [item.this if item.key == "alias" else item for item in select.expressions]
        return tuple(dict.fromkeys(_key(reader, item) for item in items if not _is_aggregate(item)))
    if set(filter(clause.args.get, clause.args)) != {"expressions"}:
        raise reader.refusal("GROUP BY takes columns and what is computed from them", clause)
    keys: list[Key] = []
    for node in clause.expressions:
        key = _key(reader, _meant(reader, node, select.expressions), node)
        if key not in keys:
            keys.append(key)
    return tuple(keys)


def _key(reader: Converter, node: Any, at: Any = None) -> Key:
    """What makes groups; a real column has none."""
    key = read_key(reader, node)
    if isinstance(key, str) and isinstance(reader.schema[key], Real):
        raise reader.refusal(
            f"{quoted(key)} is a real column and has no groups; write floor({quoted(key)} / 10), a CASE, or ask "
            "with by= and edges=",
            node if at is None else at,
        )
    return key


def _called(key: Key) -> str:
    return key if isinstance(key, str) else key.column


def _meant(reader: Converter, node: Any, selected: list[Any]) -> Any:
    """What GROUP BY 1 and GROUP BY alias mean."""
    if node.key == "literal" and not node.is_string:
        number = reader.literal(node)
        if number.denominator != 1 or not 1 <= number <= len(selected):
            raise reader.refusal(f"GROUP BY counts what is selected, from 1 to {len(selected)}", node)
        item = selected[int(number) - 1]
        node = item.this if item.key == "alias" else item
    elif node.key == "column" and reader.token(node.this).kind == "name":
        name = reader.token(node.this).value
        aliased = [item for item in selected if item.key == "alias"]
        node = next(item.this for item in aliased if reader.token(item.args["alias"]).value == name)
    if _is_aggregate(node):
        raise reader.refusal("an aggregate is of a group, and makes none; group by columns", node)
    return node


def _is_aggregate(node: Any) -> bool:
    called = _call(node)[0]
    return (
        node.key in ("filter", "window")
        or called in ("independence", "approxdistinct", "countif")
        or called in _KINDS
        or called in _ENDS
        or is_combination(node)
    )


def _item(reader: Converter, node: Any, alias: str | None) -> Aggregate:
    """One aggregate."""
    if node.key == "filter":
        inner = _item(reader, node.this, None)
        condition = reader.predicate(node.expression.this, positive=True)
        label = alias or f"{inner.label} FILTER (WHERE {condition})"
        return replace(inner, where=conjunction(inner.where, condition), label=label)
    several = combination(reader, node)
    if several is not None:
        return Aggregate(several.kind, None, alias or several.label, several=several)
    if (part := regression_part(reader, node)) is not None:
        name, value, where = part
        return Aggregate("count" if value is None else "avg", value, alias or name, where=where)
    if node.key == "countif":
        condition = reader.predicate(node.this, positive=True)
        return Aggregate("count", None, alias or f"count_if({condition})", where=condition)
    called, arguments = _call(node)
    if called == "independence":
        keys = tuple(_key(reader, each) for each in arguments)
        if len(keys) != 2:
            raise reader.refusal("independence takes two columns", node)
        return Aggregate(called, None, alias or f"independence({', '.join(map(_called, keys))})", cells=keys)
    if (apart := _distinct(reader, node)) is not None:
        name = alias or f"count(DISTINCT {_called(apart)})"
        return Aggregate("distinct", None, name, distinct=apart)
    if node.key in ("add", "sub", "mul", "div"):
        raise reader.refusal(
            "arithmetic on what was released is free, on the answers; in SQL a share is avg(c), a ratio "
            "sum(x) / sum(y), a difference avg(x) FILTER (WHERE a) - avg(x) FILTER (WHERE b)",
            node,
        )
    if called not in _KINDS:
        raise reader.refusal(
            "expected an aggregate (count, sum, avg, median, quantile_cont, stddev, corr, regr_slope, …): rows never "
            "leave, and arithmetic on what was released is free, on the answers",
            node,
        )
    kind = _KINDS[called]
    if len(arguments) != (2 if called == "quantile_cont" else 1):
        wanted = "a column and a rank" if called == "quantile_cont" else "one argument"
        raise reader.refusal(f"{called} takes {wanted}", node)
    inner = arguments[0]
    if kind == "count" and inner.key == "star":
        return Aggregate(kind, None, alias or "count(*)")
    if kind == "count":
        name = _column(reader, inner)
        return Aggregate(kind, Column(name), alias or f"count({quoted(name)})")
    if kind == "quantile":
        name = _ordered(reader, inner)
        if called == "quantile_cont":
            rank = _rank(reader, arguments[1])
            written = repr(list(rank) if isinstance(rank, tuple) else rank)
            return Aggregate(kind, Column(name), alias or f"quantile_cont({quoted(name)}, {written})", rank)
        rank, label = float(EXTREMES.get(called, 0.5)), f"{called}({quoted(name)})"
        return Aggregate(kind, Column(name), alias or label, rank)
    expression = reader.number(inner)
    return Aggregate(kind, expression, alias or f"{kind}({expression})")


def _distinct(reader: Converter, node: Any) -> Key | None:
    """Of what the different values are counted; None for anything else."""
    if node.key != "approxdistinct":
        return None
    if set(filter(node.args.get, node.args)) != {"this"}:
        raise reader.refusal("DISTINCT takes one column, or what is computed from some", node)
    return read_key(reader, node.this)


def _call(node: Any) -> tuple[str, list[Any]]:
    """The function a node calls and its arguments; one that sqlglot does not know is "anonymous" there."""
    if node.key == "anonymous":
        return str(node.this), node.expressions
    if node.key not in _KINDS:
        return node.key, []
    if set(filter(node.args.get, node.args)) <= {"this", "big_int"}:
        return node.key, [] if node.this is None else [node.this]
    return node.key, []


def _rank(reader: Converter, node: Any) -> float | tuple[float, ...]:
    """A rank, or several in brackets, which are told together."""
    if node.key == "array" and node.expressions:
        return tuple(_one_rank(reader, each) for each in node.expressions)
    return _one_rank(reader, node)


def _one_rank(reader: Converter, node: Any) -> float:
    rank = float(reader.literal(node)) if node.key == "literal" and not node.is_string else 0.0
    if not 0 < rank < 1:
        raise reader.refusal("the rank must be a number strictly between 0 and 1", node)
    return rank


def _column(reader: Converter, node: Any) -> str:
    if node.key != "column":
        raise reader.refusal("expected a column here", node)
    return reader.name(node)


def _ordered(reader: Converter, node: Any) -> str:
    name = _column(reader, node)
    if isinstance(reader.schema[name], Category | Boolean | Text):
        raise reader.refusal(f"{quoted(name)} has no order, so it has no quantiles", node)
    return name
