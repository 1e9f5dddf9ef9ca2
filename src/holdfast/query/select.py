"""Whole SELECT statements: a few aggregates over one table, with at most one WHERE and one GROUP BY column.

SELECT smoker, avg(income) AS mean FROM people WHERE age > 40 GROUP BY smoker ORDER BY mean DESC LIMIT 3
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from holdfast.errors import InputError, QueryError
from holdfast.query.arrangement import Arrangement, Combined, Compared, Having
from holdfast.query.column import Boolean, Category, Date, Real, Text
from holdfast.query.comparison import FLIPPED, NEGATED
from holdfast.query.expression import Column, Expression
from holdfast.query.parse import COMPARISONS, Converter
from holdfast.query.predicate import Always, Predicate
from holdfast.query.scan import scan
from holdfast.query.schema import Schema
from holdfast.query.wording import quoted

MAX_AGGREGATES = 64

_ROLES = {
    "expressions",
    "from",
    "from_",
    "where",
    "group",
    "having",
    "order",
    "limit",
}  # the clause of FROM is spelt either way
_KINDS = {"count": "count", "sum": "sum", "avg": "avg", "median": "quantile", "quantile_cont": "quantile"}


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One number per group: count, sum, avg or quantile (at `rank`).

    `expression` is None for count(*); for count and quantile it is a plain column. `label` is its alias, or
    the way it would be written.
    """

    kind: str
    expression: Expression | None
    label: str
    rank: float | None = None
    where: Predicate = field(default_factory=Always)
    """What stands behind FILTER: it is over those rows alone."""


@dataclass(frozen=True, slots=True)
class Select:
    """What a SELECT statement asks. `by` is the GROUP BY column; `table` is what it calls the table, which is no part
    of the question."""

    aggregates: tuple[Aggregate, ...]
    by: str | None
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
            raise QueryError("a SELECT inside another is not in the language; ask twice", text, token.start)
    reader = Converter(text, schema, tokens)
    node = reader.parsed(statement=True)
    if node.key != "select":
        raise reader.refusal("expected one SELECT statement", node)
    for role, part in node.args.items():
        if part and role not in _ROLES:
            first = part[0] if isinstance(part, list) else part
            raise reader.refusal("this is not in the language", first if hasattr(first, "walk") else node)
    table = _table(reader, node.args.get("from_") or node.args.get("from"))
    by = _group(reader, node.args.get("group"), schema)
    where = node.args.get("where")
    condition = reader.predicate(where.this, positive=True) if where else Always()
    aggregates = [found for item in node.expressions if (found := _item(reader, item, by)) is not None]
    if not 1 <= len(aggregates) <= MAX_AGGREGATES:
        raise QueryError(
            f"expected between 1 and {MAX_AGGREGATES} aggregates, got {len(aggregates)}", text, 0
        )
    return Select(tuple(aggregates), by, condition, table, _arrangement(reader, node, aggregates, by))


def _arrangement(reader: Converter, node: Any, aggregates: list[Aggregate], by: str | None) -> Arrangement:
    """ORDER BY, HAVING and LIMIT over what is selected."""
    having, order, limit = (node.args.get(role) for role in ("having", "order", "limit"))
    if having is not None and by is None:
        raise reader.refusal("HAVING chooses among groups, and there is no GROUP BY", having)

    def place(item: Any) -> int | None:
        """Which aggregate an item means; None for the groups."""
        if item.key == "column" and reader.token(item.this).kind != "name":
            if reader.name(item) == by:
                return None
        elif item.key == "literal" and not item.is_string:
            number = reader.literal(item)
            grouped = by is not None and len(node.expressions) > len(aggregates)
            if number == 1 and grouped:
                return None
            if number.denominator == 1 and 1 <= number - grouped <= len(aggregates):
                return int(number) - grouped - 1
        else:
            found = _selected(reader, item, aggregates, by)
            if found is not None:
                return found
        raise reader.refusal(
            "expected something that is selected: its alias, its place, or as it is written", item
        )

    def dated(aggregate: int) -> bool:
        """Whether an aggregate is a date, which no number compares with."""
        value = aggregates[aggregate].expression
        return isinstance(value, Column) and isinstance(reader.schema[value.name], Date)

    orders = []
    for item in [] if order is None else order.expressions:
        orders.append((place(item.this), bool(item.args.get("desc"))))
    return Arrangement(
        tuple(aggregate.label for aggregate in aggregates),
        tuple(orders),
        None if having is None else _having(reader, having.this, place, dated, positive=True),
        None if limit is None else _limit(reader, limit),
    )


def _selected(reader: Converter, item: Any, aggregates: list[Aggregate], by: str | None) -> int | None:
    """The place of an aggregate, by its alias or as it is written."""
    if item.key == "column":
        labels = [aggregate.label for aggregate in aggregates]
        name = reader.token(item.this).value
        return labels.index(name) if name in labels else None
    wanted = _item(reader, item, by)
    for place, aggregate in enumerate(aggregates):
        if wanted is not None and replace(aggregate, label="") == replace(wanted, label=""):
            return place
    return None


def _having(
    reader: Converter,
    node: Any,
    place: Callable[[Any], int | None],
    dated: Callable[[int], bool],
    *,
    positive: bool,
) -> Having:
    """A condition on released values: comparisons with numbers, AND, OR and NOT."""
    key = node.key
    if key == "paren":
        return _having(reader, node.this, place, dated, positive=positive)
    if key == "not":
        return _having(reader, node.this, place, dated, positive=not positive)
    if key in ("and", "or"):
        parts = (
            _having(reader, part, place, dated, positive=positive) for part in (node.this, node.expression)
        )
        return Combined(tuple(parts), (key == "and") == positive)
    if key in COMPARISONS:
        op = COMPARISONS[key]
        left, right = node.this, node.expression
        if left.key in ("literal", "neg"):
            left, right, op = right, left, FLIPPED[op]
        number = reader.number_literal(right)
        aggregate = place(left)
        if number is not None and aggregate is not None and not dated(aggregate):
            return Compared(aggregate, op if positive else NEGATED[op], float(number))
    raise reader.refusal("HAVING compares what is selected with numbers", node)


def _limit(reader: Converter, clause: Any) -> int:
    node = clause.expression
    number = reader.number_literal(node)
    if number is None or number.denominator != 1 or number < 1:
        raise reader.refusal("LIMIT takes a whole number of at least 1", node)
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


def _group(reader: Converter, clause: Any, schema: Schema) -> str | None:
    if clause is None:
        return None
    if set(filter(clause.args.get, clause.args)) != {"expressions"} or len(clause.expressions) != 1:
        raise reader.refusal("GROUP BY takes one column", clause)
    node = clause.expressions[0]
    name = _column(reader, node)
    if isinstance(schema[name], Real):
        raise reader.refusal(f"{quoted(name)} is a real column and has no groups; ask for a histogram", node)
    return name


def _item(reader: Converter, node: Any, by: str | None) -> Aggregate | None:
    """One selected item; None for the GROUP BY column itself."""
    alias = None
    if node.key == "alias":
        alias, node = reader.token(node.args["alias"]).value, node.this
    if node.key == "column":
        name = reader.name(node)
        if name != by:
            raise reader.refusal(f"{quoted(name)} must be in an aggregate, or be the GROUP BY column", node)
        return None
    if node.key == "filter":
        inner, condition = _item(reader, node.this, ""), reader.predicate(node.expression.this, positive=True)
        assert inner is not None
        label = alias or f"{inner.label} FILTER (WHERE {condition})"
        return replace(inner, where=condition, label=label)
    called, arguments = _call(node)
    if called not in _KINDS:
        raise reader.refusal("select count, sum, avg, median or quantile_cont", node)
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
        rank = 0.5 if called == "median" else _rank(reader, arguments[1])
        label = (
            f"median({quoted(name)})" if called == "median" else f"quantile_cont({quoted(name)}, {rank!r})"
        )
        return Aggregate(kind, Column(name), alias or label, rank)
    expression = reader.number(inner)
    return Aggregate(kind, expression, alias or f"{kind}({expression})")


def _call(node: Any) -> tuple[str, list[Any]]:
    """The function a node calls and its arguments; one that sqlglot does not know is "anonymous" there."""
    if node.key == "anonymous":
        return str(node.this), node.expressions
    if set(filter(node.args.get, node.args)) <= {"this", "big_int"}:
        return node.key, [] if node.this is None else [node.this]
    return node.key, []


def _rank(reader: Converter, node: Any) -> float:
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
