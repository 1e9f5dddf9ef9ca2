"""Expressions in their one form: equal ones become equal trees.

Constants are worked out first, and one that comes out whole is a whole number. The order of two operands is free, in
float64 too, so it is a fixed one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from holdfast.errors import QueryError
from holdfast.query.column import INTEGER_LIMIT
from holdfast.query.expression import (
    NULL,
    Absolute,
    Add,
    Case,
    Constant,
    Divide,
    Expression,
    Floor,
    Greatest,
    Least,
    Multiply,
    Negate,
    Subtract,
    height,
    is_integer,
    text,
)
from holdfast.query.predicate import Always, Never, Predicate
from holdfast.query.schema import Schema


def order(expression: Expression) -> tuple[bool, int, str]:
    """The place of an operand: tall ones first, constants last."""
    return isinstance(expression, Constant), -height(expression), text(expression)


def constant(value: int | float | Fraction) -> Constant:
    """A number in its one form."""
    whole = int(value)
    if value == whole and -INTEGER_LIMIT <= whole <= INTEGER_LIMIT:
        return Constant(whole)
    try:
        return Constant(float(value))
    except OverflowError:
        raise QueryError("the number is too large for arithmetic; write a smaller one") from None


def add(left: Expression, right: Expression) -> Expression:
    """left + right. The order of two operands is free, in float64 too."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        return _folded(Add(left, right), left.value + right.value)
    left, right = sorted((left, right), key=order)
    if right == Constant(0):
        return left
    if isinstance(right, Negate):
        return subtract(left, right.operand)
    if isinstance(left, Negate):
        return subtract(right, left.operand)
    return Add(left, right)


def subtract(left: Expression, right: Expression) -> Expression:
    """left - right. Taking a constant away is adding its opposite."""
    if isinstance(right, Constant):
        return add(left, Constant(-right.value))
    if isinstance(right, Negate):
        return add(left, right.operand)
    return negate(right) if left == Constant(0) else Subtract(left, right)


def multiply(left: Expression, right: Expression) -> Expression:
    """left * right. The order of two operands is free, in float64 too."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        return _folded(Multiply(left, right), left.value * right.value)
    left, right = sorted((left, right), key=order)
    if right == Constant(1):
        return left
    return negate(left) if right == Constant(-1) else Multiply(left, right)


def divide(left: Expression, right: Expression) -> Expression:
    """left / right, as real numbers."""
    if isinstance(left, Constant) and isinstance(right, Constant) and right.value:
        return _folded(Divide(left, right), left.value / right.value)
    return Divide(left, right)


def floor(operand: Expression, schema: Schema) -> Expression:
    """The greatest whole number that is not larger."""
    if is_integer(operand, schema):
        return operand
    return constant(math.floor(operand.value)) if isinstance(operand, Constant) else Floor(operand)


def case(branches: tuple[tuple[Predicate, Expression], ...], default: Expression = NULL) -> Expression:
    """The first branch that applies. What can never be, or need not be asked, goes."""
    kept: list[tuple[Predicate, Expression]] = []
    for condition, value in branches:
        if isinstance(condition, Always):
            default = value
            break
        if not isinstance(condition, Never) and condition not in [known for known, _ in kept]:
            kept.append((condition, value))
    while kept and kept[-1][1] == default:
        kept.pop()
    return Case(tuple(kept), None if default == NULL else default) if kept else default


def negate(operand: Expression) -> Expression:
    """-operand."""
    match operand:
        case Constant(value):
            return Constant(-value)
        case Negate(inner):
            return inner
        case Subtract(left, right):
            return subtract(right, left)
    return Negate(operand)


def absolute(operand: Expression) -> Expression:
    """abs(operand)."""
    match operand:
        case Constant(value):
            return Constant(abs(value))
        case Negate(inner):
            return absolute(inner)
        case Absolute():
            return operand
    return Absolute(operand)


def least(operands: tuple[Expression, ...]) -> Expression:
    """The least of the operands."""
    return _extreme(Least, operands, min)


def greatest(operands: tuple[Expression, ...]) -> Expression:
    """The greatest of the operands."""
    return _extreme(Greatest, operands, max)


def _extreme(
    node: type[Least] | type[Greatest], operands: tuple[Expression, ...], pick: Callable[..., Any]
) -> Expression:
    flat: set[Expression] = set()
    for operand in operands:
        flat.update(operand.operands if isinstance(operand, node) else (operand,))
    constants = [operand.value for operand in flat if isinstance(operand, Constant)]
    rest = sorted((operand for operand in flat if not isinstance(operand, Constant)), key=order)
    # least(x, 1.5) is float64 even where x wins, so only numbers of one kind may be folded into one.
    folded = [pick(same) for kind in (int, float) if (same := [c for c in constants if type(c) is kind])]
    chosen = (*rest, *map(Constant, [pick(folded)] if not rest and folded else folded))
    return chosen[0] if len(chosen) == 1 else node(chosen)


def _folded(expression: Expression, value: int | float) -> Expression:
    """A constant, unless it is too large: then `range` shall find and refuse it."""
    if isinstance(value, int):
        return Constant(value) if abs(value) <= INTEGER_LIMIT else expression
    return constant(value) if math.isfinite(value) else expression
