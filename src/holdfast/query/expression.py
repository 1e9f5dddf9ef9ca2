"""Arithmetic on columns: a frozen tree, total on the declared ranges.

An expression over Integer columns is exact in int64; one that touches a Real, a decimal constant or a division is
float64. It is NULL where any of its operands is, where a divisor is zero, and where no branch of a CASE applies
(`holdfast.query.presence`). `range` refuses what could overflow, before any row is read.
`holdfast.query.canonical` makes it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from holdfast.errors import QueryError
from holdfast.query import calendar
from holdfast.query.column import INTEGER_LIMIT, Boolean, Category, Real, Text
from holdfast.query.schema import Schema
from holdfast.query.temporal import Temporal
from holdfast.query.wording import quoted

if TYPE_CHECKING:
    from holdfast.query.predicate import Predicate


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


@dataclass(frozen=True, slots=True)
class Divide(_Written):
    """The quotient in float64; NULL where the divisor is zero."""

    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Floor(_Written):
    """The greatest whole number that is not larger."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class DatePart(_Written):
    """A part of a date or a moment as a whole number: its year, its day of the week, its hour
    (`holdfast.query.calendar`). The column counts steps of `unit` microseconds."""

    part: str
    name: str
    unit: int


@dataclass(frozen=True, slots=True)
class Case(_Written):
    """The value of the first branch whose condition is true; else the default; NULL where there is none."""

    branches: tuple[tuple[Predicate, Expression], ...]
    default: Expression | None


NULL = Case((), None)
"""What is NULL on every row."""


Expression: TypeAlias = (
    Column | Constant | Add | Subtract | Multiply | Negate | Absolute | Least | Greatest
    | Divide | Floor | DatePart | Case
)  # fmt: skip


def children(expression: Expression) -> tuple[Expression, ...]:
    """The operands, left to right."""
    match expression:
        case Add(left, right) | Subtract(left, right) | Multiply(left, right) | Divide(left, right):
            return left, right
        case Negate(operand) | Absolute(operand) | Floor(operand):
            return (operand,)
        case Least(operands) | Greatest(operands):
            return operands
        case Case(branches, default):
            return tuple(v for v in (*(value for _, value in branches), default) if v not in (None, NULL))
    return ()


def columns(expression: Expression) -> frozenset[str]:
    """The names of the columns it reads."""
    found = strict(expression)
    for case in cases(expression):
        from holdfast.query import predicate  # which is made of expressions

        found = found.union(*(predicate.columns(condition) for condition, _ in case.branches))
        found = found.union(*map(columns, children(case)))
    return found


def strict(expression: Expression) -> frozenset[str]:
    """The columns whose NULL makes it NULL, whatever else the row holds: all that stand outside a CASE."""
    if isinstance(expression, Column | DatePart):
        return frozenset((expression.name,))
    if isinstance(expression, Case):
        return frozenset()
    return frozenset().union(*map(strict, children(expression)))


def cases(expression: Expression) -> frozenset[Case]:
    """The CASEs in it that stand in no other."""
    if isinstance(expression, Case):
        return frozenset((expression,))
    return frozenset().union(*map(cases, children(expression)))


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
    Date counts days, a Timestamp its steps.
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
        case DatePart(part, name):
            kind = schema[name]
            assert isinstance(kind, Temporal)  # the parser has seen to it
            found = calendar.bounds(part, kind)
        case _:
            operands = children(expression)
            if not operands:
                raise QueryError("it is always NULL, so there is nothing to ask; give it a value somewhere")
            for operand in operands:
                its = schema[operand.name] if isinstance(operand, Column) else None
                if isinstance(its, Temporal):
                    raise QueryError(
                        f"{operand} is a {its.kind} column and has no arithmetic; compare it instead"
                    )
            parts = [range(operand, schema, known) for operand in operands]
            if isinstance(expression, Divide):
                found = _quotient(expression, *parts)
            else:
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
        case Divide():
            return False
        case Floor():
            return True
    return all(is_integer(operand, schema) for operand in children(expression))


def compute(expression: Expression, values: Mapping[str | Case, Any]) -> Any:
    """The values, from each column's values as an int64 or float64 array, and those of each CASE."""
    match expression:
        case Column(name):
            return values[name]
        case Case():
            return values[expression]
        case DatePart(part, name, unit):
            return calendar.compute(part, values[name], unit)
        case Divide(left, right):
            divisor = compute(right, values)
            return np.divide(compute(left, values), np.where(divisor == 0, 1, divisor), dtype=np.float64)
        case Floor(operand):
            return np.nan_to_num(np.floor(compute(operand, values))).astype(np.int64)
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
        case Divide(left, right):
            return f"{_factor(left)} / {_atom(right)}"
        case Floor(operand):
            return f"floor({text(operand)})"
        case DatePart(part, name):
            return f"{part}({quoted(name)})"
        case Case((), None):
            return "NULL"
        case Case(branches, default):
            whens = "".join(f" WHEN {condition} THEN {text(value)}" for condition, value in branches)
            return f"CASE{whens}{'' if default is None else f' ELSE {text(default)}'} END"
        case Negate(operand):
            return f"-{_atom(operand)}"
        case Absolute(operand):
            return f"abs({text(operand)})"
        case Least(operands):
            return f"least({', '.join(map(text, operands))})"
        case Greatest(operands):
            return f"greatest({', '.join(map(text, operands))})"


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
        case Case():
            return min(p[0] for p in parts), max(p[1] for p in parts)
        case Floor():
            return math.floor(lo), math.floor(hi)
    return max(p[0] for p in parts), max(p[1] for p in parts)


def _quotient(
    node: Divide, dividend: tuple[float, float], divisor: tuple[float, float]
) -> tuple[float, float]:
    """Between the corners, on either side of zero."""
    low, high = divisor
    if low <= 0 <= high and isinstance(low, float):
        raise QueryError(
            f"{node} has no bound, since its divisor may be as near to 0 as you like; divide by "
            f"greatest({node.right}, 0.1), or by whatever is the least that counts"
        )
    sides = (
        [(a, b) for a, b in ((low, min(high, -1)), (max(low, 1), high)) if a <= b]
        if low <= 0 <= high
        else [divisor]
    )
    if not sides:
        raise QueryError(f"{node} divides by what is always 0, so it is always NULL; there is nothing to ask")
    corners = [float(above) / float(below) for above in dividend for side in sides for below in side]
    return min(corners), max(corners)


def _is_square(product: Multiply) -> bool:
    """Whether every factor stands in it an even number of times: then it is not negative, after rounding too."""
    return all(count % 2 == 0 for count in Counter(_factors(product)).values())


def _factors(expression: Expression) -> list[Expression]:
    if isinstance(expression, Multiply):
        return _factors(expression.left) + _factors(expression.right)
    return [expression]


def _factor(expression: Expression) -> str:
    """As an operand on the right of + or -, or on the left of *."""
    bare = isinstance(expression, Multiply | Divide)
    return text(expression) if bare else _atom(expression)


def _atom(expression: Expression) -> str:
    negative = isinstance(expression, Constant) and expression.value < 0
    bare = not isinstance(expression, Add | Subtract | Multiply | Divide | Negate)
    return text(expression) if bare and not negative else f"({text(expression)})"
