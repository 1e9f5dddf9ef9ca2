"""Arithmetic on columns: a frozen tree, total on the declared ranges.

An expression over Integer columns is exact in int64; one that touches a Real or a decimal constant is
float64. It is NULL where any of its columns is. `range` refuses what could overflow, before any row is read.
The small constructors (`add`, `multiply`, ...) put equal expressions into equal form: constants are worked
out first, and one that comes out whole is a whole number.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from holdfast.errors import QueryError
from holdfast.query.column import INTEGER_LIMIT, Boolean, Category, Date, Real, Text
from holdfast.query.schema import Schema
from holdfast.query.wording import quoted


class _Written:
    """`str` of a node is the text that parses back to it."""

    __slots__ = ()

    def __str__(self) -> str:
        return text(self)  # type: ignore[arg-type]  # only the nodes below inherit


@dataclass(frozen=True, slots=True)
class Column(_Written):
    name: str


@dataclass(frozen=True, slots=True)
class Constant(_Written):
    """A finite number: int where it is whole and within ±2^62, else float, so that equal means the same."""

    value: int | float


@dataclass(frozen=True, slots=True)
class Add(_Written):
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Subtract(_Written):
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Multiply(_Written):
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Negate(_Written):
    operand: Expression


@dataclass(frozen=True, slots=True)
class Absolute(_Written):
    operand: Expression


@dataclass(frozen=True, slots=True)
class Least(_Written):
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Greatest(_Written):
    operands: tuple[Expression, ...]


Expression: TypeAlias = Column | Constant | Add | Subtract | Multiply | Negate | Absolute | Least | Greatest


def children(expression: Expression) -> tuple[Expression, ...]:
    """The operands, left to right."""
    match expression:
        case Add(left, right) | Subtract(left, right) | Multiply(left, right):
            return left, right
        case Negate(operand) | Absolute(operand):
            return (operand,)
        case Least(operands) | Greatest(operands):
            return operands
    return ()


def columns(expression: Expression) -> frozenset[str]:
    """The names of the columns it reads."""
    if isinstance(expression, Column):
        return frozenset((expression.name,))
    return frozenset().union(*map(columns, children(expression)))


def height(expression: Expression) -> int:
    """The number of operations on the longest path down."""
    below = children(expression)
    return 1 + max(map(height, below)) if below else 0


def range(
    expression: Expression,
    schema: Schema,
    known: Mapping[Expression, tuple[float, float]] = MappingProxyType({}),
) -> tuple[float, float]:
    """The least and greatest value, by interval arithmetic on the declared bounds, and on those that are `known`.

    Guarantee: every value of `compute` on declared values lies within, on the rows where what is known holds. Integers
    bound integers. Float rounding is monotone, so bounds computed in float64 hold for values computed in float64. A
    Date counts days.
    Raises QueryError if a column has no arithmetic, or an integer may leave ±2^62, or a float be infinite.
    """
    match expression:
        case Column(name):
            column = schema[name]
            if isinstance(column, Category | Boolean | Text):
                raise QueryError(
                    f"{name} is a {column.kind} column and has no arithmetic; compare it, or group by it"
                )
            found: tuple[float, float] = column.lo, column.hi
        case Constant(value):
            found = (value, value)
        case _:
            operands = children(expression)
            for operand in operands:
                if isinstance(operand, Column) and isinstance(schema[operand.name], Date):
                    raise QueryError(
                        f"{operand.name} is a date column and has no arithmetic; compare it instead"
                    )
            parts = [range(operand, schema, known) for operand in operands]
            if any(isinstance(bound, float) for part in parts for bound in part):
                parts = [(float(lo), float(hi)) for lo, hi in parts]
            found = _interval(expression, parts)
    lo, hi = found
    if isinstance(lo, int):
        if lo < -INTEGER_LIMIT or hi > INTEGER_LIMIT:
            raise QueryError(
                f"{expression} may leave ±2^62, where integers are no longer exact; scale it down"
            )
    elif not (math.isfinite(lo) and math.isfinite(hi)):
        raise QueryError(f"{expression} may leave the range of floating-point numbers; scale it down")
    low, high = known.get(expression, found)
    # What is known and what is computed exclude each other only where no row is meant.
    return (max(lo, low), min(hi, high)) if max(lo, low) <= min(hi, high) else found


def is_integer(expression: Expression, schema: Schema) -> bool:
    """Whether its values are int64: no Real column and no decimal constant inside."""
    match expression:
        case Column(name):
            return not isinstance(schema[name], Real)
        case Constant(value):
            return isinstance(value, int)
    return all(is_integer(operand, schema) for operand in children(expression))


def compute(expression: Expression, values: Mapping[str, Any]) -> Any:
    """The values, from each column's values as an int64 or float64 array."""
    match expression:
        case Column(name):
            return values[name]
        case Constant(value):
            return value
        case Add(left, right):
            return compute(left, values) + compute(right, values)
        case Subtract(left, right):
            return compute(left, values) - compute(right, values)
        case Multiply(left, right):
            return compute(left, values) * compute(right, values)
        case Negate(operand):
            return -compute(operand, values)
        case Absolute(operand):
            return abs(compute(operand, values))
        case Least(operands):
            return reduce(np.minimum, [compute(operand, values) for operand in operands])
        case Greatest(operands):
            return reduce(np.maximum, [compute(operand, values) for operand in operands])


def text(expression: Expression) -> str:
    """The expression as it would be written; parses back to the same tree."""
    match expression:
        case Column(name):
            return quoted(name)
        case Constant(value):
            return repr(value)
        case Add(left, Constant(value)) if value < 0:
            return f"{text(left)} - {-value!r}"
        case Add(left, right):
            return f"{text(left)} + {_factor(right)}"
        case Subtract(left, right):
            return f"{text(left)} - {_factor(right)}"
        case Multiply(left, right):
            return f"{_factor(left)} * {_atom(right)}"
        case Negate(operand):
            return f"-{_atom(operand)}"
        case Absolute(operand):
            return f"abs({text(operand)})"
        case Least(operands):
            return f"least({', '.join(map(text, operands))})"
        case Greatest(operands):
            return f"greatest({', '.join(map(text, operands))})"


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


def _interval(node: Expression, parts: list[tuple[float, float]]) -> tuple[float, float]:
    (lo, hi), (low, high) = parts[0], parts[-1]
    match node:
        case Add():
            return lo + low, hi + high
        case Subtract():
            return lo - high, hi - low
        case Multiply():
            corners = [lo * low, lo * high, hi * low, hi * high]
            return max(min(corners), lo * 0) if _is_square(node) else min(corners), max(corners)
        case Negate():
            return -hi, -lo
        case Absolute():
            return (lo * 0 if lo <= 0 <= hi else min(abs(lo), abs(hi))), max(abs(lo), abs(hi))
        case Least():
            return min(p[0] for p in parts), min(p[1] for p in parts)
    return max(p[0] for p in parts), max(p[1] for p in parts)


def _is_square(product: Multiply) -> bool:
    """Whether every factor stands in it an even number of times: then it is not negative, after rounding too."""
    return all(count % 2 == 0 for count in Counter(_factors(product)).values())


def _factors(expression: Expression) -> list[Expression]:
    if isinstance(expression, Multiply):
        return _factors(expression.left) + _factors(expression.right)
    return [expression]


def _factor(expression: Expression) -> str:
    """As an operand on the right of + or -, or on the left of *."""
    bare = isinstance(expression, Multiply)
    return text(expression) if bare else _atom(expression)


def _atom(expression: Expression) -> str:
    negative = isinstance(expression, Constant) and expression.value < 0
    bare = isinstance(expression, Column | Constant | Absolute | Least | Greatest)
    return text(expression) if bare and not negative else f"({text(expression)})"
