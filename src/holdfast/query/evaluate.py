"""Predicates and expressions over blocks of codes, in NumPy.

Total: on declared codes nothing raises, warns or overflows, and the result for a row depends on that row
alone. Every part is evaluated on every row; there is no short cut that depends on the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError
from holdfast.query import expression as arithmetic
from holdfast.query.column import Real
from holdfast.query.comparison import TESTS
from holdfast.query.dictionary import texts_of
from holdfast.query.expression import Expression
from holdfast.query.predicate import Always, And, Compare, In, IsNull, Never, NotNull, Or, Predicate, TextTest
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
    return _compiled(predicate, schema)


def _compiled(predicate: Predicate, schema: Schema) -> Test:
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
        case And(parts):
            return _joined([_compiled(part, schema) for part in parts], np.logical_and)
        case Or(parts):
            return _joined([_compiled(part, schema) for part in parts], np.logical_or)


@lru_cache(maxsize=1024)
def compile_expression(expression: Expression, schema: Schema) -> Values:
    """A function from a block of codes to (values, null): int64 or float64 values, and which are NULL.

    Where NULL, the value is of no meaning. `null` is None if the expression has no columns. The values may be
    the block's own array: do not write to them.
    """
    names = sorted(arithmetic.columns(expression))
    readers = {name: _reader(name, schema) for name in names}
    nulls = [_null(name, schema) for name in names]

    def values(block: Block) -> tuple[NDArray[Any], Mask | None]:
        found = arithmetic.compute(expression, {name: read(block) for name, read in readers.items()})
        if not nulls:
            return np.full(_rows(block), found), None
        return found, reduce(np.logical_or, [null(block) for null in nulls])

    return values


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
    left, right = predicate.left, predicate.right
    names = sorted(arithmetic.columns(left) | arithmetic.columns(right))
    readers = {name: _reader(name, schema) for name in names}
    nulls = [_null(name, schema) for name in names]

    def test(block: Block) -> Mask:
        values = {name: read(block) for name, read in readers.items()}
        true: Mask = check(arithmetic.compute(left, values), arithmetic.compute(right, values))
        for null in nulls:
            true &= ~null(block)
        return true

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
