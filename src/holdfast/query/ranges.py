"""Sets of codes as sorted, disjoint, closed ranges that do not touch: one set has one such form.

Whole codes step by one; the float64 codes of a Real step to the next float, so `x > 5` is a closed range too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeAlias

from holdfast.query.column import ColumnType, Real

Ranges: TypeAlias = tuple[tuple[int, int], ...] | tuple[tuple[float, float], ...]


def after(code: float) -> float:
    """The next code. 0.0 stands for both zeros."""
    return code + 1 if isinstance(code, int) else math.nextafter(code, math.inf) + 0.0


def before(code: float) -> float:
    """The code before. 0.0 stands for both zeros."""
    return code - 1 if isinstance(code, int) else math.nextafter(code, -math.inf) + 0.0


def domain(column: ColumnType) -> tuple[float, float]:
    """The least and the greatest code that is not NULL."""
    return (column.lo, column.hi) if isinstance(column, Real) else (0, column.codes - 1)


def union(pieces: Iterable[tuple[float, float]]) -> Ranges:
    """The set of all codes in any of the pieces; an empty piece has lo > hi."""
    merged: list[tuple[float, float]] = []
    for lo, hi in sorted(piece for piece in pieces if piece[0] <= piece[1]):
        if merged and lo <= after(merged[-1][1]):
            merged[-1] = (merged[-1][0], max(merged[-1][1], hi))
        else:
            merged.append((lo, hi))
    return tuple(merged)


def intersection(first: Ranges, second: Ranges) -> Ranges:
    """The codes in both sets."""
    found: list[tuple[float, float]] = []
    i = j = 0
    while i < len(first) and j < len(second):
        lo, hi = max(first[i][0], second[j][0]), min(first[i][1], second[j][1])
        if lo <= hi:
            found.append((lo, hi))
        if first[i][1] < second[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def complement(ranges: Ranges, lo: float, hi: float) -> Ranges:
    """The codes of [lo, hi] outside the set."""
    gaps: list[tuple[float, float]] = []
    start = lo
    for first, last in ranges:
        if start < first:
            gaps.append((start, before(first)))
        start = after(last)
    if start <= hi:
        gaps.append((start, hi))
    return tuple(gaps)
