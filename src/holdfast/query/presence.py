"""Where an expression has a value: the condition that it is not NULL."""

from __future__ import annotations

import numpy as np

from holdfast.query import expression as arithmetic
from holdfast.query import predicate as tree
from holdfast.query.column import Real, Text
from holdfast.query.expression import Case, Divide, Expression
from holdfast.query.predicate import (
    Always,
    And,
    Compare,
    In,
    IsNull,
    NotNull,
    Predicate,
    Present,
    TextTest,
    among,
    conjunction,
    disjunction,
)
from holdfast.query.ranges import union
from holdfast.query.schema import Schema
from holdfast.query.temporal import Temporal

TABULATED = 1024
"""A condition on one column with at most this many values is tabulated into a set of codes."""
_MOMENTS = 2**17
_MAX_PIECES = 8


def known(*sides: Expression, schema: Schema) -> Predicate:
    """The rows on which all of these have a value."""
    names = frozenset().union(*map(arithmetic.strict, sides))
    partial = [tabulated(Present(side), schema) for side in sides if is_partial(side, schema)]
    return conjunction(*map(NotNull, names), *partial)


def absent(value: Expression, schema: Schema) -> Predicate:
    """The rows on which it is NULL."""
    if is_partial(value, schema):
        return tabulated(Present(value, negated=True), schema)
    return disjunction(*map(IsNull, arithmetic.strict(value)))


def tabulated(condition: Compare | Present, schema: Schema) -> Predicate:
    """The same condition; on one column of few values the set of codes, if it has few pieces."""
    from holdfast.query.evaluate import compiled  # which compares as is done here

    names = tree.columns(condition)
    name = next(iter(names))
    kind = schema[name]
    few = _MOMENTS if isinstance(kind, Temporal) else TABULATED
    if len(names) == 1 and not isinstance(kind, Real | Text) and kind.codes <= few:
        codes = np.arange(kind.codes + 1).astype(kind.dtype)
        true = compiled(condition, schema)({name: codes})
        pieces = union((int(code), int(code)) for code in np.flatnonzero(true[:-1]))
        if len(pieces) <= _MAX_PIECES:
            return among(name, pieces, kind, bool(true[-1]))
    return condition


def is_partial(expression: Expression, schema: Schema) -> bool:
    """Whether it may be NULL where none of its strict columns is: it divides by what may be zero, or has a CASE."""
    if isinstance(expression, Case):
        return expression.default is None or not all(
            arithmetic.strict(value) <= _certain(condition) and not is_partial(value, schema)
            for condition, value in (*expression.branches, (Always(), expression.default))
        )
    if isinstance(expression, Divide):
        low, high = arithmetic.range(expression.right, schema)
        if low <= 0 <= high:
            return True
    return any(is_partial(operand, schema) for operand in arithmetic.children(expression))


def _certain(condition: Predicate) -> frozenset[str]:
    """Columns that are not NULL wherever the condition is true."""
    match condition:
        case NotNull(name) | In(name, null=False) | TextTest(name):
            return frozenset((name,))
        case Compare(_, left, right):
            return arithmetic.strict(left) | arithmetic.strict(right)
        case Present(value, negated=False):
            return arithmetic.strict(value)
        case And(parts):
            return frozenset().union(*map(_certain, parts))
    return frozenset()
