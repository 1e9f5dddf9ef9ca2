"""The canonical text of a predicate: what a person would write, and what parses back to the same tree."""

from __future__ import annotations

from holdfast.query.column import Boolean, Category, ColumnType, Integer, Real, Text
from holdfast.query.predicate import (
    Always,
    And,
    Compare,
    In,
    IsNull,
    Never,
    NotNull,
    Or,
    Predicate,
    Present,
    TextTest,
)
from holdfast.query.ranges import Ranges, after, before, complement, domain
from holdfast.query.temporal import Temporal
from holdfast.query.wording import quoted, string


def spelt(predicate: Predicate) -> str:
    """The canonical text."""
    match predicate:
        case In():
            return " OR ".join(_pieces(predicate))
        case And(parts):
            return " AND ".join(f"({part})" if _is_choice(part) else str(part) for part in parts)
        case Or(parts):
            return " OR ".join(map(str, parts))
        case Always():
            return "TRUE"
        case Never():
            return "FALSE"
        case IsNull(name):
            return f"{quoted(name)} IS NULL"
        case NotNull(name):
            return f"{quoted(name)} IS NOT NULL"
        case Compare(op, left, right):
            return f"{left} {op} {right}"
        case TextTest(name, test, value):
            return _text(quoted(name), test, value)
        case Present(value, negated):
            return f"({value}) IS {'NULL' if negated else 'NOT NULL'}"


def _text(name: str, test: str, value: str | int) -> str:
    subject, _, sign = test.rpartition(" ")
    if subject == "length":
        return f"length({name}) {sign} {value}"
    if sign == "starts_with":
        return f"{test}({name}, {string(str(value))})"
    return f"{name} {test} {string(str(value))}"


def _is_choice(part: Predicate) -> bool:
    if isinstance(part, In):
        return (len(part.ranges) > 1 or part.null) and len(_pieces(part)) > 1
    return isinstance(part, Or)


def _pieces(leaf: In) -> list[str]:
    """Conditions whose OR is the leaf."""
    name, kind = quoted(leaf.column), leaf.kind
    if isinstance(kind, Category):
        pieces = [_labels(name, leaf.ranges, kind)]
    elif isinstance(kind, Boolean):
        pieces = [name if leaf.ranges == ((1, 1),) else f"NOT {name}"]
    elif isinstance(kind, Real):
        pieces = [_between(name, lo, hi, kind) for lo, hi in leaf.ranges]
    else:
        assert not isinstance(kind, Text)  # its tests are no sets of codes
        pieces = _numbers(name, leaf.ranges, kind)
    return [*pieces, f"{name} IS NULL"] if leaf.null else pieces


def _labels(name: str, ranges: Ranges, kind: Category) -> str:
    others = complement(ranges, *domain(kind))
    negated = _size(others) < _size(ranges)
    codes = [code for lo, hi in (others if negated else ranges) for code in range(int(lo), int(hi) + 1)]
    return _one_of(name, [string(kind.labels[code]) for code in codes], negated)


def _numbers(name: str, ranges: Ranges, kind: Integer | Temporal) -> list[str]:
    others = complement(ranges, *domain(kind)) if len(ranges) > 1 else ranges
    if len(others) < len(ranges) and _size(others) == len(others):
        return [_one_of(name, [_value(int(lo), kind) for lo, _ in others], negated=True)]
    single = [_value(int(lo), kind) for lo, hi in ranges if lo == hi]
    wide = [(int(lo), int(hi)) for lo, hi in ranges if lo != hi]
    pieces = []
    for lo, hi in wide:
        if lo == 0:
            pieces.append(f"{name} <= {_value(hi, kind)}")
        elif hi == kind.codes - 1:
            pieces.append(f"{name} >= {_value(lo, kind)}")
        else:
            pieces.append(f"{name} BETWEEN {_value(lo, kind)} AND {_value(hi, kind)}")
    return [*pieces, _one_of(name, single, negated=False)] if single else pieces


def _between(name: str, lo: float, hi: float, kind: Real) -> str:
    """A range of floats by the shorter of its closed and its open bounds: > 5, not >= 5.000000000000001."""
    if lo == hi:
        return f"{name} = {_float(lo)}"
    bounds = []
    if lo > kind.lo:
        bounds.append(_shorter(f"{name} >= ", lo, f"{name} > ", before(lo)))
    if hi < kind.hi:
        bounds.append(_shorter(f"{name} <= ", hi, f"{name} < ", after(hi)))
    return " AND ".join(bounds)


def _shorter(closed: str, inner: float, opened: str, outer: float) -> str:
    first, second = _float(inner), _float(outer)
    return closed + first if len(first) <= len(second) else opened + second


def _float(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _one_of(name: str, values: list[str], negated: bool) -> str:
    if len(values) == 1:
        return f"{name} {'<>' if negated else '='} {values[0]}"
    return f"{name} {'NOT ' if negated else ''}IN ({', '.join(values)})"


def _value(code: int, kind: ColumnType) -> str:
    return string(str(kind.value(code))) if isinstance(kind, Temporal) else str(code + int(kind.lo))


def _size(ranges: Ranges) -> int:
    return sum(int(hi) - int(lo) + 1 for lo, hi in ranges)
