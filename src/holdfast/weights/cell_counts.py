"""How many rows lie in each cell of a universe. Secret: only mechanisms may look."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.query.measurement import Measurement
from holdfast.query.predicate import Always
from holdfast.query.region import GRID, Region
from holdfast.query.universe import Universe
from holdfast.weights.column_bins import Bins
from holdfast.weights.distribution import views
from holdfast.weights.marginals import Axes, marginals

if TYPE_CHECKING:
    from holdfast.desk import RowAccess

_PUSHED_DOWN = 2**20


class CellCounts:
    """The exact histogram of the rows over a universe, counted once.

    Guarantee: replacing one row moves at most two cells, each by 1, so a query into [0,1] by at most GRID
    steps.
    Cost: one pass over the columns; the source's own totals up to 2^20 cells, block by block above.
    """

    __slots__ = ("cells", "universe")

    def __init__(self, rows: RowAccess, universe: Universe) -> None:
        self.universe = universe
        self.cells = _counted(rows, universe)

    def steps(self, query: Region) -> int:
        """The sum of the query over the rows, in steps of 1/GRID; an exact integer."""
        shape = self.universe.shape
        if query.boxes is not None:
            return GRID * sum(int(v.sum()) for box in query.boxes for v in views(self.cells, shape, box))
        assert query.steps is not None
        axes = tuple(i for i, length in enumerate(query.steps.shape) if length > 1)
        marginal = marginals(self.cells.reshape(shape), [axes])[axes]
        return int((marginal * query.steps.reshape(marginal.shape)).sum())


def _counted(rows: RowAccess, universe: Universe) -> NDArray[np.int64]:
    if universe.size <= _PUSHED_DOWN:
        # A universe groups rows as a Grouping does; a Measurement asks no more of it.
        return rows.totals(Measurement(universe.schema, Always(), by=cast(Any, universe)))
    histogram = np.zeros(universe.size, dtype=np.int64)
    for block in rows.scan(universe.columns):
        cells = universe.groups(block)
        np.add.at(histogram, cells[cells >= 0], 1)
    return histogram


def groups_of_columns(block: Mapping[str, NDArray[Any]], universe: Universe) -> list[NDArray[Any]]:
    """The group of each row in each column by itself; NULL, and a value outside of the edges, is in the last one.

    Requires: a group for NULL in every column. Cost: a byte or two for each value, as many columns are held at once.
    """
    found = []
    for axis in universe.axes:
        groups = axis.groups(block)
        inside = (groups >= 0) & (groups < axis.size)
        found.append(np.where(inside, groups, axis.size).astype(np.min_scalar_type(axis.size)))
    return found


def marginal_counts(
    rows: RowAccess,
    universe: Universe,
    wanted: Iterable[Axes],
    bins: Sequence[Bins] | None = None,
) -> dict[Axes, NDArray[np.int64]]:
    """How many rows lie in each group (or bin) of each sorted tuple of columns. Secret. One pass over the rows.

    Guarantee: every row lies in one cell of each, so replacing one row moves two cells of each by at most 1.
    """
    shape = universe.shape if bins is None else tuple(own.size for own in bins)
    sizes = {axes: [shape[axis] for axis in axes] for axes in wanted}
    found = {axes: np.zeros(math.prod(lengths), dtype=np.int64) for axes, lengths in sizes.items()}
    places = [own.places.astype(np.min_scalar_type(own.size)) for own in bins or ()]
    for block in rows.scan(universe.columns):
        groups = groups_of_columns(block, universe)
        if bins is not None:
            groups = [own[group] for own, group in zip(places, groups, strict=True)]
        for axes, counts in found.items():
            place = groups[axes[0]].astype(np.int64)
            for axis in axes[1:]:
                place = place * shape[axis] + groups[axis]
            counts += np.bincount(place, minlength=len(counts))
    return {axes: counts.reshape(sizes[axes]) for axes, counts in found.items()}
