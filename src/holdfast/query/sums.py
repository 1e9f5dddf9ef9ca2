"""Answers that are read off sums of several noisy totals: running totals, several quantiles, a table of two columns.

All totals of a question are told as one vector under one charge. Every statement that the answer rests on is a sum of
them with public weights, and a mean over rows of a function with one row's range: docs/theorems.md, Theorem 135.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.query.computed_groups import Product
from holdfast.query.grid import grid_of
from holdfast.query.grouping import Cross
from holdfast.query.joint import Joint
from holdfast.query.measurement import Measurement
from holdfast.query.predicate import conjunction
from holdfast.query.presence import known
from holdfast.query.running import Strategy, strategy
from holdfast.query.schema import Schema

if TYPE_CHECKING:
    from holdfast.query.statistic import Statistic

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Sums:
    """How many statements an answer rests on, and how long their weights are.

    `norms` has the squared length of each class of them, in units of the recipe's noise (times the measurement's
    scale); `running` is the factorisation by which the totals are told, None where they are told as they are.
    """

    statements: int
    norms: tuple[float, ...]
    running: Strategy | None = None

    def encoded(self, totals: Integers) -> Integers:
        """The whole numbers to which the noise is added."""
        return totals if self.running is None else self.running.encoded(totals)


Parts = tuple[Measurement, Joint, Sums, float, float]
"""What is added up, how it moves, which sums are read; what a unit of them is worth, and what rounding may move."""


def summed(statistic: Statistic, schema: Schema, rows: int, most: int) -> Parts | None:
    """The parts of a statistic that is read off such sums; None for others."""
    if statistic.cells is not None:
        return _contingency(statistic, statistic.cells, schema, most)
    if statistic.ranks:
        return _quantiles(statistic, schema, most)
    return _running(statistic, schema, rows, most) if statistic.running else None


def periods(statistic: Statistic) -> int:
    """How many groups are added up one after another: those of the last column."""
    by = statistic.by
    assert by is not None
    return by.parts[-1].size if isinstance(by, Product) else by.size


def _by_root(made: Strategy, least: int, greatest: int, most: int, lines: int) -> Joint:
    """How far a row moves what is told by a factorisation; it contributes from `least` to `greatest`, 0 among them, to
    one of so many lines."""
    reach = max(greatest, -least, 1)
    apart = 2 * made.longest if lines > 1 else max(made.apart, made.longest)
    farthest = max(reach**2 * apart, (greatest - least) ** 2 * made.longest)
    squared = Fraction(-(-farthest // reach**2))
    return Joint((reach,), Fraction(2 * made.whole), squared, Fraction(made.longest)).times(most)


def _running(statistic: Statistic, schema: Schema, rows: int, most: int) -> Parts:
    size, by, over = periods(statistic), statistic.by, statistic.over
    assert by is not None
    made = strategy(size)
    ends = sorted({min(2**power, size) for power in range(size.bit_length() + 1)})
    sums = Sums(by.size, tuple(made.norm(end) for end in ends), made)
    if statistic.value is None:
        counted = Measurement(schema, statistic.where, by=by, over=over)
        return counted, _by_root(made, 0, 1, most, by.size // size), sums, 1.0, 0.0
    present = conjunction(statistic.where, known(statistic.value, schema=schema))
    grid = grid_of(statistic.value, present, schema, rows * most * made.whole, centred=False)
    total = Measurement(schema, present, statistic.value, grid, by, over=over)
    joint = _by_root(made, total.low // most, total.high // most, most, by.size // size)
    return total, joint, sums, grid.step, 0.0 if grid.exact else rows * most * grid.step / 2


def _quantiles(statistic: Statistic, schema: Schema, most: int) -> Parts:
    assert statistic.bins is not None
    made = strategy(statistic.bins.size)
    by = statistic.bins if statistic.by is None else Cross(statistic.by, statistic.bins)
    norm = max(made.rank_norm(float(rank)) for rank in statistic.ranks)
    sums = Sums(by.size * len(statistic.ranks), (norm,), made)
    joint = _by_root(made, 0, 1, most, by.size // statistic.bins.size)
    return Measurement(schema, statistic.where, by=by, over=statistic.over), joint, sums, 1.0, 0.0


def _contingency(statistic: Statistic, cells: Product, schema: Schema, most: int) -> Parts:
    """For each cell its count, the rest of its line, the rest of its column and all others; and the count of all."""
    lines, columns = (part.size for part in cells.parts)
    norms = (1, columns - 1, lines - 1, (lines - 1) * (columns - 1), cells.size)
    joint = Joint((1,), Fraction(2), Fraction(2), 1 - Fraction(1, cells.size))
    sums = Sums(4 * cells.size + 1, tuple(map(float, norms)))
    counted = Measurement(schema, statistic.where, by=cells, over=statistic.over)
    return counted, joint.times(most), sums, 1.0, 0.0
