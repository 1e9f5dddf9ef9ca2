"""A question over a universe: a few boxes of cells (views of any array over it), or a value for each cell."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError, QueryError
from holdfast.query import predicate as tree
from holdfast.query.evaluate import compile_predicate
from holdfast.query.grouping import Grouping
from holdfast.query.parse import condition_of
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
    columns,
)
from holdfast.query.ranges import before, domain, intersection
from holdfast.query.schema import ColumnType, Real
from holdfast.query.universe import MAX_CELLS, WIDE, Universe

MOST_BOXES = 64
_DIMENSIONS = 64
"""An array of NumPy's has no more axes."""
GRID = 2**20
"""Values in [0,1] are multiples of 1/GRID, so that a sum over rows is a whole number of steps."""

Box = tuple[tuple[int, int], ...]
"""One half-open range of groups for each axis."""


@dataclass(frozen=True, eq=False, slots=True)
class Region:
    """A query from cells into [0,1]; the outside has 0.

    `boxes` are disjoint, and the query is 1 on them and 0 elsewhere. Otherwise `steps` holds its values in
    steps of 1/GRID, as an integer array that broadcasts to the universe's shape. `text` tells queries apart;
    `factors` is of how many columns' numbers it is the product, None for a condition.
    """

    text: str
    boxes: tuple[Box, ...] | None
    steps: NDArray[np.int64] | None
    factors: int | None = None

    @property
    def is_counting(self) -> bool:
        """Whether every value is 0 or 1."""
        return self.steps is None or bool(np.all((self.steps == 0) | (self.steps == GRID)))


def region(universe: Universe, where: str | Predicate) -> Region:
    """The cells that satisfy a condition.

    QueryError where a bin holds both rows that satisfy it and rows that do not; the message names the column.
    Cost: nothing of the size of the universe, unless the condition compares columns with one another.
    """
    return _region(universe, condition_of(where, universe.schema))


def asked(one: Region, universe: Universe) -> tuple[int, ...]:
    """The axes that a query depends on."""
    if one.boxes is not None:
        whole = [(0, size) for size in universe.shape]
        return tuple(i for i, full in enumerate(whole) if any(box[i] != full for box in one.boxes))
    assert one.steps is not None
    return tuple(i for i, length in enumerate(one.steps.shape) if length > 1)


def factors(universe: Universe, values: Mapping[str, Sequence[float]]) -> Region:
    """The query whose value on a cell is the product of one number in [0,1] for each column named.

    The numbers of a column are given bin by bin and rounded to multiples of 1/GRID, as the product is. A NULL in a
    column that is named has the number 0.
    """
    cells = math.prod(universe.shape[universe.axis(column)] for column in values)
    if cells > MAX_CELLS or len(universe.axes) > _DIMENSIONS:
        raise InputError(
            f"expected numbers for at most {MAX_CELLS:,} cells in a universe of at most {_DIMENSIONS} columns, got "
            f"{cells:,} cells and {len(universe.axes)} columns; name fewer columns, or ask for a fraction"
        )
    steps = np.full((1,) * len(universe.axes), GRID, dtype=np.int64)
    for column, numbers in sorted(values.items()):
        axis = universe.axis(column)
        bins, array = universe.axes[axis].size, np.asarray(numbers, dtype=np.float64)
        if array.shape != (bins,) or not np.all((array >= 0) & (array <= 1)):
            raise InputError(f"expected {bins} numbers between 0 and 1 for {column!r}, got another list")
        array = np.append(array, np.zeros(universe.shape[axis] - bins))
        own = _along(np.rint(array * GRID).astype(np.int64), axis, len(universe.axes))
        steps = (steps * own + GRID // 2) // GRID
    text = json.dumps({column: [float(v) for v in numbers] for column, numbers in sorted(values.items())})
    return Region(text, None, steps, len(values))


def _region(universe: Universe, condition: Predicate) -> Region:
    parts = condition.parts if isinstance(condition, And) else (condition,)
    text = str(condition)
    if all(isinstance(part, In | IsNull | NotNull | Always | Never) for part in parts):
        runs = [[(0, size)] for size in universe.shape]
        for part in parts:
            if isinstance(part, Never):
                return Region(text, (), None)
            if isinstance(part, In | IsNull | NotNull):
                # A conjunction in canonical form has at most one leaf a column.
                runs[universe.axis(part.column)] = _runs(_leaf(universe, part))
        if math.prod(map(len, runs)) <= MOST_BOXES:
            return Region(text, tuple(product(*runs)), None)
    _refuse_wide(universe, condition)
    mask = _mask(universe, condition)
    if np.count_nonzero(mask) <= MOST_BOXES:
        free = [
            (0, size) if length == 1 else None
            for size, length in zip(universe.shape, mask.shape, strict=True)
        ]
        boxes = tuple(
            tuple(whole or (int(i), int(i) + 1) for whole, i in zip(free, cell, strict=True))
            for cell in np.argwhere(mask)
        )
        return Region(text, boxes, None)
    return Region(text, None, mask.astype(np.int64) * GRID)


def _refuse_wide(universe: Universe, condition: Predicate) -> None:
    """A condition that is no conjunction has a value for each cell of its columns, of which a wide table has many."""
    asked_about = sorted(columns(condition))
    cells = math.prod(universe.shape[universe.axis(column)] for column in asked_about)
    if cells > MAX_CELLS and universe.size > WIDE:
        raise InputError(
            f"expected a condition on at most {MAX_CELLS:,} cells, got one on {cells:,} of {', '.join(asked_about)}; "
            "ask about fewer columns at once, or for conjunctions"
        )


def _mask(universe: Universe, condition: Predicate) -> NDArray[np.bool_]:
    """Truth values that broadcast to the universe: an axis that is not asked about has length 1."""
    d = len(universe.axes)
    match condition:
        case Always():
            return np.ones((1,) * d, dtype=np.bool_)
        case Never():
            return np.zeros((1,) * d, dtype=np.bool_)
        case In() | IsNull() | NotNull():
            return _along(_leaf(universe, condition), universe.axis(condition.column), d)
        case And(parts):
            return reduce(np.logical_and, [_mask(universe, part) for part in parts])
        case Or(parts):
            return reduce(np.logical_or, [_mask(universe, part) for part in parts])
        case Compare() | Present():
            return _compared(universe, condition)
        case TextTest(name):
            return _along(np.empty(0, dtype=np.bool_), universe.axis(name), d)  # no universe has it: refused


def _leaf(universe: Universe, leaf: In | IsNull | NotNull) -> NDArray[np.bool_]:
    """Which groups of the leaf's column satisfy it; NULL's, if there is one, is the last."""
    axis, null = universe.axes[universe.axis(leaf.column)], isinstance(leaf, IsNull)
    if isinstance(leaf, In):
        values, null = _bins(axis, leaf), leaf.null
    else:
        values = np.full(axis.size, isinstance(leaf, NotNull))
    return np.append(values, [null]) if leaf.column in universe.nulls else values


def _bins(axis: Grouping, leaf: In) -> NDArray[np.bool_]:
    """Which bins of values lie in the leaf's ranges: wholly, or not at all."""
    least, greatest = domain(leaf.kind)
    starts = np.maximum(np.array(axis.bounds[:-1]), least)
    ends = np.minimum(np.array([before(bound) for bound in axis.bounds[1:]]), greatest)
    inside, touched = np.zeros(axis.size, dtype=np.bool_), np.zeros(axis.size, dtype=np.bool_)
    for lo, hi in leaf.ranges:
        inside |= (starts >= lo) & (ends <= hi)
        touched |= (ends >= lo) & (starts <= hi)
    held = starts <= ends  # a bin beyond the declared range holds no value
    cut = np.flatnonzero((inside != touched) & held)
    if cut.size:
        label, whole_bin = axis.labels[cut[0]], in_bin(axis, leaf.kind, int(cut[0]))
        raise QueryError(
            f"{leaf} cuts through the bin {label} of {leaf.column!r}, which is {whole_bin}; ask along the bins' edges, "
            "or open a universe with finer ones"
        )
    whole: NDArray[np.bool_] = inside & held
    return whole


def in_bin(axis: Grouping, kind: ColumnType, place: int) -> Predicate:
    """The condition that a value lies in a bin: [low, high), and the last one includes its end."""
    ends = ((axis.bounds[place], before(axis.bounds[place + 1])),)
    return tree.among(axis.column, intersection(ends, (domain(kind),)), kind)


def _compared(universe: Universe, condition: Compare | Present) -> NDArray[np.bool_]:
    """Columns compared with one another: evaluated on the product of their groups, each of one value."""
    names = [name for name in universe.columns if name in tree.columns(condition)]
    for name in tree.columns(condition):
        axis = universe.axes[universe.axis(name)]
        if isinstance(universe.schema[name], Real) or axis.bounds[-1] - axis.bounds[0] != axis.size:
            raise QueryError(
                f"{condition} compares {name!r}, whose bins hold more than one value; use finer edges"
            )
    shape = [universe.shape[universe.axis(name)] if name in names else 1 for name in universe.columns]
    codes = np.meshgrid(*[_codes(universe, name) for name in names], indexing="ij")
    block = {
        name: grid.ravel().astype(universe.schema[name].dtype)
        for name, grid in zip(names, codes, strict=True)
    }
    return compile_predicate(condition, universe.schema)(block).reshape(shape)


def _codes(universe: Universe, column: str) -> NDArray[np.int64]:
    """The code of each group of a column whose bins hold one value each."""
    bounds = universe.axes[universe.axis(column)].bounds
    codes = np.arange(int(bounds[0]), int(bounds[-1]))
    return np.append(codes, universe.schema[column].null_code) if column in universe.nulls else codes


def _runs(vector: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The maximal stretches of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], vector, [False])).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _along(vector: NDArray[Any], axis: int, dimensions: int) -> NDArray[Any]:
    return vector.reshape([-1 if i == axis else 1 for i in range(dimensions)])
