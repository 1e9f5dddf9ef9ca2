"""Which group each row is in, column by column: what weights over more cells than memory holds are compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.query.region import GRID, Region, asked
from holdfast.query.universe import Universe

if TYPE_CHECKING:
    from holdfast.desk import RowAccess

_BLOCK = 1 << 20
_DENSE, _CELLS_PER_ROW = 2**20, 8


class RowGroups:
    """Secret: only mechanisms may look. Answers as `CellCounts` does, and never makes all cells.

    Guarantee: replacing one row moves a query into [0,1] by at most GRID steps.
    Cost: a byte or a few for each row and column; a pass over the columns that a query asks about, whatever is in them.
    """

    __slots__ = ("_groups", "_inside", "universe")

    def __init__(self, rows: RowAccess, universe: Universe) -> None:
        self.universe = universe
        kinds = [np.min_scalar_type(size - 1) for size in universe.shape]
        self._groups = [np.zeros(rows.count, dtype=kind) for kind in kinds]
        self._inside = np.ones(rows.count, dtype=np.bool_)
        at = 0
        for block in rows.scan(universe.columns):
            own = [universe.own_groups(axis, block) for axis in range(len(universe.axes))]
            end = at + len(own[0])
            for kept, groups in zip(self._groups, own, strict=True):
                self._inside[at:end] &= groups >= 0
                kept[at:end] = np.maximum(groups, 0)
            at = end

    def steps(self, query: Region) -> int:
        """The sum of the query over the rows, in steps of 1/GRID; an exact integer."""
        axes = asked(query, self.universe)
        return sum(
            self._steps(query, axes, slice(at, at + _BLOCK)) for at in range(0, len(self._inside), _BLOCK)
        )

    def _steps(self, query: Region, axes: tuple[int, ...], part: slice) -> int:
        inside = self._inside[part]
        if query.boxes is None:
            assert query.steps is not None
            shape = tuple(self.universe.shape[axis] for axis in axes)
            places = np.zeros(len(inside), dtype=np.int64)
            for axis, size in zip(axes, shape, strict=True):
                places = places * size + self._groups[axis][part]
            return int(query.steps.reshape(-1)[places[inside]].sum())
        found = 0
        for box in query.boxes:
            held: Any = inside
            for axis in axes:
                first, last = box[axis]
                own = self._groups[axis][part]
                held = held & (own == first if last == first + 1 else (own >= first) & (own < last))
            found += int(np.count_nonzero(held))
        return GRID * found


def by_rows(universe: Universe, rows: int) -> bool:
    """Whether so many rows are told apart more cheaply than all cells of a universe: both numbers are public."""
    return universe.size > max(_DENSE, _CELLS_PER_ROW * rows)


def all_cells(query: Region, universe: Universe) -> tuple[tuple[int, ...], NDArray[np.float64]]:
    """The axes that a query asks about, and its values on all cells of these."""
    axes = asked(query, universe)
    shape = tuple(universe.shape[axis] for axis in axes)
    if query.boxes is None:
        assert query.steps is not None
        return axes, query.steps.reshape(shape) / GRID
    values = np.zeros(shape)
    for box in query.boxes:
        values[tuple(slice(*box[axis]) for axis in axes)] = 1.0
    return axes, values
