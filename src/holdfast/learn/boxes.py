"""Axis-aligned boxes on a grid, all scored in one pass."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import InputError
from holdfast.learn.labelled_rows import Labels, Matrix, edges

_MOST = 1 << 27


class Boxes:
    """True inside a product of intervals [low, high), whose ends are declared edges, one list for each feature.

    Cost: one histogram over the cells, running sums along each axis, and one difference for each box.
    """

    def __init__(self, grid: Sequence[ArrayLike]) -> None:
        self.edges = tuple(edges(f"grid[{j}]", values) for j, values in enumerate(grid))
        if not self.edges or any(ends.size < 2 for ends in self.edges):
            raise InputError("expected at least two edges of the grid for each feature, got fewer")
        self._ends = tuple(np.triu_indices(ends.size, 1) for ends in self.edges)
        self.shape = tuple(low.size for low, _ in self._ends)
        if math.prod(self.shape) > _MOST:
            raise InputError(f"expected a grid of at most {_MOST} boxes, got more; use fewer edges")

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def mistakes(self, rows: Matrix, truth: Labels) -> NDArray[np.int64]:
        """For each hypothesis, how many rows it labels wrongly."""
        tensor = self._histogram(rows[truth]) - self._histogram(rows[~truth])
        for axis, (low, high) in enumerate(self._ends):
            sums = np.cumsum(np.insert(tensor, 0, 0, axis=axis), axis=axis)
            tensor = np.take(sums, high, axis) - np.take(sums, low, axis)
        wrong: NDArray[np.int64] = np.count_nonzero(truth) - tensor.ravel()
        return wrong

    def predict(self, index: int, rows: Matrix) -> Labels:
        """What hypothesis `index` says of the rows."""
        inside = np.ones(len(rows), dtype=np.bool_)
        for column, (low, high) in enumerate(self._box(index)):
            inside &= (rows[:, column] >= low) & (rows[:, column] < high)
        return inside

    def describe(self, index: int) -> str:
        return " and ".join(f"{low:g} <= x[{j}] < {high:g}" for j, (low, high) in enumerate(self._box(index)))

    def _box(self, index: int) -> list[tuple[float, float]]:
        places = np.unravel_index(index, self.shape)
        return [
            (float(ends[low[place]]), float(ends[high[place]]))
            for ends, (low, high), place in zip(self.edges, self._ends, places, strict=True)
        ]

    def _histogram(self, rows: Matrix) -> NDArray[np.int64]:
        shape = tuple(ends.size - 1 for ends in self.edges)
        cells = [np.searchsorted(ends, rows[:, j], side="right") - 1 for j, ends in enumerate(self.edges)]
        inside = np.ones(len(rows), dtype=np.bool_)
        for place, count in zip(cells, shape, strict=True):
            inside &= (place >= 0) & (place < count)
        flat = np.ravel_multi_index([place[inside] for place in cells], shape)
        return np.bincount(flat, minlength=math.prod(shape)).astype(np.int64).reshape(shape)
