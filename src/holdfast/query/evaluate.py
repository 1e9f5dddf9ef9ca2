"""Predicates and expressions over blocks of codes, in NumPy.

Total: on declared codes nothing raises, warns or overflows, and the result for a row depends on that row
alone. Every part is evaluated on every row; there is no short cut that depends on the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError
from holdfast.query import expression as arithmetic
from holdfast.query.column import Real
from holdfast.query.comparison import TESTS
from holdfast.query.dictionary import texts_of
from holdfast.query.expression import Case, Divide, Expression
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
from holdfast.query.presence import is_partial
from holdfast.query.ranges import domain
from holdfast.query.schema import Schema

Block: TypeAlias = Mapping[str, NDArray[Any]]
Mask: TypeAlias = NDArray[np.bool_]
Test: TypeAlias = Callable[[Block], Mask]
Values: TypeAlias = Callable[[Block], tuple[NDArray[Any], Mask | None]]

_TABLE = 2**20  # up to so many codes a set with many pieces is one table look-up
_FEW = 3


def evaluate(predicate: Predicate, columns: Block, schema: Schema) -> Mask:
    """Which rows of the block satisfy the predicate."""
    return compile_predicate(predicate, schema)(columns)


@lru_cache(maxsize=1024)
def compile_predicate(predicate: Predicate, schema: Schema) -> Test:
    """A function from a block of codes to a new array that says which rows satisfy the predicate.

    The block holds at least one column, and every column of the predicate, as arrays of the declared dtypes.
    """
    return compiled(predicate, schema)


def compiled(predicate: Predicate, schema: Schema) -> Test:
    """The same, made anew, for whoever keeps it."""
    match predicate:
        case In():
            return _in(predicate, schema)
        case Always():
            return lambda block: np.ones(_rows(block), dtype=np.bool_)
        case Never():
            return lambda block: np.zeros(_rows(block), dtype=np.bool_)
        case IsNull(name):
            return _null(name, schema)
        case NotNull(name):
            null = _null(name, schema)
            return lambda block: ~null(block)
        case Compare():
            return _compare(predicate, schema)
        case TextTest():
            return _text(predicate, schema)
        case Present(value, negated):
            missing = _missing(value, schema)
            return missing if negated else lambda block: ~missing(block)
        case And(parts):
            return _joined([compiled(part, schema) for part in parts], np.logical_and)
        case Or(parts):
            return _joined([compiled(part, schema) for part in parts], np.logical_or)


@lru_cache(maxsize=1024)
def compile_expression(expression: Expression, schema: Schema) -> Values:
    """A function from a block of codes to (values, null): int64 or float64 values, and which are NULL.

    Where NULL, the value is of no meaning. `null` is None if the expression has no columns. The values may be
    the block's own array: do not write to them.
    """
    computed, missing = _computed(expression, schema), _missing(expression, schema)
    if not arithmetic.columns(expression):
        return lambda block: (np.full(_rows(block), computed(block)), None)
    return lambda block: (_long(computed(block), block), missing(block))


def _computed(expression: Expression, schema: Schema) -> Callable[[Block], Any]:
    """Its values; of no meaning where it is NULL, and a single number where it reads no column."""
    readers: dict[str | Case, Callable[[Block], Any]] = {
        name: _reader(name, schema) for name in sorted(arithmetic.strict(expression))
    }
    for case in arithmetic.cases(expression):
        readers[case] = _case(case, schema)
    return lambda block: arithmetic.compute(expression, {leaf: read(block) for leaf, read in readers.items()})


def _case(case: Case, schema: Schema) -> Callable[[Block], NDArray[Any]]:
    """From the last branch to the first; every one of them is computed on every row."""
    branches = [(compiled(when, schema), _computed(value, schema)) for when, value in case.branches]
    default = None if case.default is None else _computed(case.default, schema)
    kind = np.int64 if arithmetic.is_integer(case, schema) else np.float64

    def values(block: Block) -> NDArray[Any]:
        found = np.full(_rows(block), 0 if default is None else default(block), dtype=kind)
        for test, value in reversed(branches):
            found = np.where(test(block), value(block), found)
        return found

    return values


def _missing(expression: Expression, schema: Schema) -> Test:
    """Where it is NULL."""
    nulls = [_null(name, schema) for name in sorted(arithmetic.strict(expression))]
    nulls += [test for part in _partial(expression, schema) for test in (_unsettled(part, schema),)]
    if not nulls:
        return lambda block: np.zeros(_rows(block), dtype=np.bool_)
    return _joined(nulls, np.logical_or)


def _partial(expression: Expression, schema: Schema) -> list[Case | Divide]:
    """The parts of it that may be NULL where none of its strict columns is; those of a CASE are its own."""
    own = [expression] if isinstance(expression, Case | Divide) and is_partial(expression, schema) else []
    below = () if isinstance(expression, Case) else arithmetic.children(expression)
    return own + [part for operand in below for part in _partial(operand, schema)]


def _unsettled(part: Case | Divide, schema: Schema) -> Test:
    """Where a divisor is zero, or the branch that applies has no value."""
    if isinstance(part, Divide):
        divisor = _computed(part.right, schema)
        return lambda block: _long(divisor(block) == 0, block)
    branches = [(compiled(when, schema), _missing(value, schema)) for when, value in part.branches]
    default = None if part.default is None else _missing(part.default, schema)

    def missing(block: Block) -> Mask:
        found = np.ones(_rows(block), dtype=np.bool_) if default is None else default(block)
        for test, null in reversed(branches):
            found = np.where(test(block), null(block), found)
        return found

    return missing


def _long(values: Any, block: Block) -> NDArray[Any]:
    """One value a row, also where it is the same for all."""
    return np.full(_rows(block), values) if np.ndim(values) == 0 else values


def _rows(block: Block) -> int:
    for column in block.values():
        return len(column)
    raise InputError("expected at least one column in a block, got none; it tells how many rows there are")


def _codes(name: str, schema: Schema) -> Callable[[Block], NDArray[Any]]:
    dtype = schema[name].dtype
    return lambda block: np.asarray(block[name], dtype)


def _reader(name: str, schema: Schema) -> Callable[[Block], NDArray[Any]]:
    """Codes into values: int64, days for a Date, float64."""
    codes, kind = _codes(name, schema), schema[name]
    if isinstance(kind, Real):
        return codes
    lo = kind.lo
    return lambda block: codes(block).astype(np.int64) + lo


def _null(name: str, schema: Schema) -> Test:
    codes, kind = _codes(name, schema), schema[name]
    if isinstance(kind, Real):
        return lambda block: np.isnan(codes(block))
    top = kind.dtype.type(kind.null_code)
    return lambda block: codes(block) >= top


def _text(leaf: TextTest, schema: Schema) -> Test:
    """Only blocks that know their dictionaries can be asked: those that a desk hands out."""
    name, value = leaf.column, leaf.value
    negated = leaf.test.startswith("NOT ") or leaf.test.endswith("<>")
    test = leaf.test.removeprefix("NOT ").replace("<>", "=")
    null = _null(name, schema)

    def passed(block: Block) -> Mask:
        found = texts_of(block[name]).passing(test, value)
        return ~(found | null(block)) if negated else found

    return passed


def _in(leaf: In, schema: Schema) -> Test:
    codes, kind = _codes(leaf.column, schema), schema[leaf.column]
    ranges: list[tuple[float, float]] = list(leaf.ranges)
    if leaf.null and not isinstance(kind, Real):
        # NULL is the code after the last: it joins a range that ends there, or is a range of its own.
        _, last = domain(kind)
        if ranges[-1][1] == last:
            ranges[-1] = (ranges[-1][0], last + 1)
        else:
            ranges.append((last + 1, last + 1))
    if isinstance(kind, Real):
        test = _joined([_within_floats(codes, lo, hi, kind) for lo, hi in ranges], np.logical_or)
        return _joined([test, _null(leaf.column, schema)], np.logical_or) if leaf.null else test
    if len(ranges) <= _FEW:
        return _joined(
            [_within_codes(codes, int(lo), int(hi), kind.dtype) for lo, hi in ranges], np.logical_or
        )
    if kind.codes <= _TABLE:
        table = np.zeros(kind.codes + 1, dtype=np.bool_)
        for lo, hi in ranges:
            table[int(lo) : int(hi) + 1] = True
        return lambda block: table.take(codes(block), mode="clip")
    # A code is inside if it lies after an odd number of the sorted bounds lo, hi + 1.
    bounds = np.array([bound for lo, hi in ranges for bound in (lo, int(hi) + 1)], dtype=kind.dtype)
    return lambda block: np.searchsorted(bounds, codes(block), side="right") % 2 == 1


def _within_codes(codes: Callable[[Block], NDArray[Any]], lo: int, hi: int, dtype: np.dtype[Any]) -> Test:
    if lo == 0 < hi:
        last = dtype.type(hi)
        return lambda block: codes(block) <= last
    first = dtype.type(lo)
    if lo == hi:
        return lambda block: codes(block) == first
    # Unsigned subtraction wraps round, so that codes below `lo` become large: one comparison for two.
    width = dtype.type(hi - lo)
    return lambda block: codes(block) - first <= width


def _within_floats(codes: Callable[[Block], NDArray[Any]], lo: float, hi: float, kind: Real) -> Test:
    if lo == hi:
        return lambda block: codes(block) == lo
    if lo == kind.lo:
        return lambda block: codes(block) <= hi
    if hi == kind.hi:
        return lambda block: codes(block) >= lo

    def test(block: Block) -> Mask:
        values = codes(block)
        inside: Mask = values >= lo
        inside &= values <= hi
        return inside

    return test


def _compare(predicate: Compare, schema: Schema) -> Test:
    check = TESTS[predicate.op]
    left, right = (_computed(side, schema) for side in (predicate.left, predicate.right))
    sides = [side for side in (predicate.left, predicate.right) if arithmetic.columns(side)]
    missing = _joined([_missing(side, schema) for side in sides], np.logical_or)

    def test(block: Block) -> Mask:
        true: Mask = check(left(block), right(block))
        return true & ~missing(block)

    return test


def _joined(tests: list[Test], join: np.ufunc) -> Test:
    first, *rest = tests
    if not rest:
        return first

    def test(block: Block) -> Mask:
        found = first(block)
        for other in rest:
            join(found, other(block), out=found)
        return found

    return test
