"""How a comparison becomes its one form: constants on the right, ranges folded, one column a set of codes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from holdfast.check import near
from holdfast.errors import QueryError
from holdfast.query import calendar
from holdfast.query import expression as arithmetic
from holdfast.query.canonical import constant
from holdfast.query.column import Boolean, Category, Integer, Real, Text
from holdfast.query.dictionary import normal
from holdfast.query.expression import Add, Column, Constant, Expression, Negate, Subtract
from holdfast.query.like import like
from holdfast.query.predicate import Compare, Never, NotNull, Predicate, TextTest, among, conjunction
from holdfast.query.presence import known, tabulated
from holdfast.query.ranges import Ranges, after, before, complement, domain, union
from holdfast.query.schema import Schema
from holdfast.query.temporal import Temporal
from holdfast.query.wording import listed, quoted

Operand: TypeAlias = Expression | Fraction | str | bool
"""An expression, or a literal: an exact number, a text or a truth value."""

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
TESTS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}
# What a difference says about the order of its sides, in whole numbers.
_ORDERED = {
    ("<=", 0): "<=",
    ("<=", -1): "<",
    (">=", 0): ">=",
    (">=", 1): ">",
    ("=", 0): "=",
    ("<>", 0): "<>",
}


def comparison(op: str, left: Operand, right: Operand, schema: Schema) -> Predicate:
    """left op right, true as in SQL and false where any column is NULL.

    A whole-number expression is compared with a decimal exactly; a Real with the nearest float64.
    Raises QueryError where the two sides cannot be compared.
    """
    if isinstance(left, Column) and isinstance(right, str | bool | Fraction):
        return _column(op, left.name, right, schema)
    if isinstance(left, Constant) or isinstance(right, Constant):
        left, right = _exact(left, right), _exact(right, left)
    if not isinstance(left, Expression):
        op, left, right = FLIPPED[op], right, left
    if not isinstance(left, Expression):
        return _settled(op, left, right)
    if isinstance(right, Expression):
        return _two(op, left, right, schema)
    if isinstance(left, Column):  # a literal stood on the left
        return _column(op, left.name, right, schema)
    number = _number(right, f"{left} is a number")
    ranges = arithmetic.range(left, schema)
    if arithmetic.is_integer(left, schema):
        return _whole(op, left, number, schema)
    bound = _nearest(number)
    return _folded(_pieces(op, bound, *map(float, ranges)), ranges, left, schema) or _kept(
        op, left, constant(bound), schema
    )


def _exact(side: Operand, other: Operand) -> Operand:
    """Constants as literals; a literal beside a computed float is the nearest float."""
    if isinstance(side, Constant):
        return Fraction(side.value)
    if isinstance(side, Fraction) and isinstance(other, Constant) and isinstance(other.value, float):
        nearest = _nearest(side)
        return Fraction(nearest) if math.isfinite(nearest) else side
    return side


def _settled(op: str, left: Operand, right: Operand) -> Predicate:
    """Two literals."""
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return conjunction() if TESTS[op](left, right) else Never()
    raise QueryError("a comparison needs a column on one side at least; name one")


def _column(op: str, name: str, right: Fraction | str | bool, schema: Schema) -> Predicate:
    kind = schema[name]
    if isinstance(kind, Text):
        return _text(op, name, right, kind)
    pieces: Ranges
    number: Fraction | int
    if isinstance(kind, Real):
        pieces = _pieces(op, _nearest(_number(right, f"{quoted(name)} is a real column")), kind.lo, kind.hi)
        return among(name, pieces, kind)
    if isinstance(kind, Integer):
        number = _number(right, f"{quoted(name)} is an integer column") - kind.lo
    elif isinstance(kind, Temporal):
        number = Fraction(_moment(right, name, kind), kind.unit) - kind.lo
    elif op not in ("=", "<>"):
        raise QueryError(f"{quoted(name)} is a {kind.kind} column and has no order; use =, <> or IN")
    elif isinstance(kind, Boolean):
        if not isinstance(right, bool):
            raise QueryError(f"{quoted(name)} is a boolean column; compare it with TRUE or FALSE")
        number = int(right)
    else:
        number = _label(right, name, kind)
    return among(name, _whole_pieces(op, number, *domain(kind)), kind)


def _text(op: str, name: str, right: Fraction | str | bool, kind: Text) -> Predicate:
    if op not in ("=", "<>"):
        raise QueryError(
            f"{quoted(name)} is a text column and has no order; use =, <>, IN, LIKE, starts_with or length"
        )
    if not isinstance(right, str):
        raise QueryError(f"{quoted(name)} is a text column; compare it with a text such as 'JFK'")
    text = kind.canonical(right)
    if text is None:  # no row has it
        return Never() if op == "=" else NotNull(name)
    return TextTest(name, op, text)


def text_pattern(test: str, name: str, pattern: str, positive: bool) -> Predicate:
    """name LIKE pattern, or starts_with(name, pattern), in its one form; or the rows where it is false."""
    pattern = normal(pattern)
    if (set(pattern) == {"%"}) if test == "LIKE" else not pattern:  # every text
        return NotNull(name) if positive else Never()
    if test == "LIKE" and not set("%_").intersection(pattern):
        return TextTest(name, "=" if positive else "<>", pattern)
    return TextTest(name, test if positive else f"NOT {test}", pattern)


def label_pattern(test: str, name: str, pattern: str, positive: bool, kind: Category) -> Predicate:
    """The declared labels that match, which are public: name IN (those). Of NULL neither it nor its NOT is true."""
    if test == "starts_with":
        codes = [code for code, label in enumerate(kind.labels) if label.startswith(pattern) == positive]
    else:
        fold = str.lower if test == "ILIKE" else str
        matches = like(fold(pattern))
        codes = [code for code, label in enumerate(kind.labels) if matches(fold(label)) == positive]
    return among(name, union((code, code) for code in codes), kind)


def truncated_day(op: str, part: str, name: str, right: Operand, schema: Schema) -> Predicate:
    """date_trunc(part, name) op a moment: those whose year, week or hour begins at such a one."""
    kind = schema[name]
    assert isinstance(kind, Temporal)
    moment, starts = _moment(right, name, kind), calendar.starts(part, kind)
    codes = [*np.maximum(starts // kind.unit - kind.lo, 0).tolist(), kind.codes]
    places = np.flatnonzero(TESTS[op](starts, moment))
    runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
    return among(name, union((codes[run[0]], codes[run[-1] + 1] - 1) for run in runs if len(run)), kind)


def text_length(op: str, name: str, right: Operand, kind: Text) -> Predicate:
    """length(name) op right."""
    number = _number(right, f"length({quoted(name)}) is a number")
    pieces = _whole_pieces(op, number, 0, kind.max_length)
    if not pieces:
        return Never()
    (first, last), *more = pieces
    if (first, last) == (0, kind.max_length):
        return NotNull(name)
    if more:
        return TextTest(name, "length <>", int(last) + 1)
    if first == last:
        return TextTest(name, "length =", int(first))
    return TextTest(name, "length <=", int(last)) if first == 0 else TextTest(name, "length >=", int(first))


def _two(op: str, left: Expression, right: Expression, schema: Schema) -> Predicate:
    """Two expressions, both with columns."""
    if op in (">", ">=") or (op in ("=", "<>") and str(right) < str(left)):
        op, left, right = FLIPPED[op], right, left
    for side in (left, right):
        if isinstance(side, Column) and isinstance(schema[side.name], Category | Boolean | Text):
            raise QueryError(
                f"{quoted(side.name)} is a {schema[side.name].kind} column; compare it with a value"
            )
    kinds = [_counted(side, schema) for side in (left, right)]
    if kinds[0] != kinds[1]:
        raise QueryError(
            "a date, a time or a timestamp can only be compared with another of its kind and step; write '2020-01-31'"
        )
    (lo, hi), (low, high) = arithmetic.range(left, schema), arithmetic.range(right, schema)
    if isinstance(lo, float) or isinstance(low, float):  # the sides will meet as floats, after rounding
        lo, hi, low, high = map(float, (lo, hi, low, high))
    if left == right or lo == hi == low == high:
        return known(left, right, schema=schema) if op in ("<=", "=") else Never()
    if hi < low:
        return known(left, right, schema=schema) if op != "=" else Never()
    if high < lo:
        return known(left, right, schema=schema) if op == "<>" else Never()
    return _kept(op, left, right, schema)


def _whole(op: str, left: Expression, number: Fraction, schema: Schema) -> Predicate:
    """A whole-number expression against an exact number. What is added moves to the right."""
    match left:
        case Add(inner, Constant(value)):
            return comparison(op, inner, number - Fraction(value), schema)
        case Subtract(Constant(value), inner):
            return comparison(FLIPPED[op], inner, Fraction(value) - number, schema)
        case Negate(inner):
            return comparison(FLIPPED[op], inner, -number, schema)
        case Subtract(first, second) if str(second) < str(first):
            return comparison(FLIPPED[op], Subtract(second, first), -number, schema)
    lo, hi = map(int, arithmetic.range(left, schema))
    pieces = _whole_pieces(op, number, lo, hi)
    if (folded := _folded(pieces, (lo, hi), left, schema)) is not None:
        return folded
    start, end = int(pieces[0][0]), int(pieces[0][1])
    if len(pieces) == 2:
        op, bound = "<>", end + 1
    elif start == end:
        op, bound = "=", start
    elif start == lo:
        op, bound = "<=", end
    else:
        op, bound = ">=", start
    if isinstance(left, Subtract) and (op, bound) in _ORDERED:
        return _two(_ORDERED[op, bound], left.left, left.right, schema)
    return _kept(op, left, Constant(bound), schema)


def _kept(op: str, left: Expression, right: Expression, schema: Schema) -> Predicate:
    """A comparison node; on one small column the set of codes instead."""
    return tabulated(Compare(op, left, right), schema)


def _folded(
    pieces: Ranges, bounds: tuple[float, float], left: Expression, schema: Schema
) -> Predicate | None:
    """What the declared range alone decides."""
    if not pieces:
        return Never()
    return known(left, schema=schema) if pieces == (bounds,) else None


def _pieces(op: str, bound: float, lo: float, hi: float) -> Ranges:
    """The x in [lo, hi] with x op bound, one code after another."""
    first, last = lo, hi
    if op not in (">", ">="):
        last = min(hi, before(bound) if op == "<" else bound)
    if op not in ("<", "<="):
        first = max(lo, after(bound) if op == ">" else bound)
    found = ((first, last),) if first <= last else ()
    return complement(found, lo, hi) if op == "<>" else found


def _whole_pieces(op: str, number: Fraction | int, lo: float, hi: float) -> Ranges:
    """The whole x in [lo, hi] with x op number, exactly."""
    if number.denominator == 1:
        return _pieces(op, int(number), lo, hi)
    match op:
        case "<" | "<=":
            return _pieces("<=", math.floor(number), lo, hi)
        case ">" | ">=":
            return _pieces(">=", math.ceil(number), lo, hi)
    return () if op == "=" else ((lo, hi),)


def _nearest(number: Fraction) -> float:
    try:
        return float(number) + 0.0
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _number(right: Operand, what: str) -> Fraction:
    if not isinstance(right, Fraction):
        shown = "a text" if isinstance(right, str) else "a truth value"
        raise QueryError(f"{what}; compare it with a number, not with {shown}")
    return right


def _counted(side: Expression, schema: Schema) -> tuple[str, int] | None:
    """What a column of dates or times counts: its kind and its steps."""
    kind = schema[side.name] if isinstance(side, Column) else None
    return (kind.kind, kind.unit) if isinstance(kind, Temporal) else None


_WRITTEN = {"date": "2024-12-31", "time": "08:30:00", "timestamp": "2024-12-31 08:30:00"}


def _moment(right: Operand, name: str, kind: Temporal) -> int:
    """A literal in microseconds. What is finer than the steps of the column stays so."""
    dated = isinstance(right, str) and (kind.kind != "date" or len(right) == 10)
    found = kind.microseconds(right) if dated else None
    if found is None:
        raise QueryError(
            f"{quoted(name)} is a {kind.kind} column; compare it with a {kind.kind} such as {_WRITTEN[kind.kind]!r}"
        )
    return found


def _label(right: Operand, name: str, kind: Category) -> int:
    label = str(right) if isinstance(right, str | Fraction) else ""
    if isinstance(right, bool) or label not in kind.places:
        raise QueryError(
            f"expected one of the labels {listed(kind.labels)} of {quoted(name)}, got {label!r}"
            f"{near(label, kind.labels)}"
        )
    return kind.places[label]
