"""Synthetic rows drawn from public weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.check import integer
from holdfast.noise.bits import Bits, source
from holdfast.query.grouping import Grouping
from holdfast.query.schema import ColumnType, Real, Text
from holdfast.query.universe import Universe


class Drawable(Protocol):
    """A public distribution over the cells of a universe from which rows can be drawn."""

    @property
    def universe(self) -> Universe: ...

    def sampled(self, count: int, draw: Bits) -> tuple[Sequence[NDArray[np.int64]], NDArray[np.bool_]]:
        """The groups of `count` rows, column by column, and which rows lie outside."""


def sample(weights: Drawable, count: int, bits: Bits | None = None) -> dict[str, list[Any]]:
    """`count` rows as lists of values by column; a row from the outside is NULL in all columns, one
    from a cell is NULL in those columns where the cell is.

    Within a bin of several values one is drawn uniformly. Post-processing: no row of the table is touched.
    """
    count = integer("count", count, 0)
    draw = source(bits)
    places, beyond = weights.sampled(count, draw)
    rows: dict[str, list[Any]] = {}
    for axis, place in zip(weights.universe.axes, places, strict=True):
        kind, null = weights.universe.schema[axis.column], beyond | (place == axis.size)
        values = _values(axis, kind, np.where(null, 0, place), draw)
        rows[axis.column] = [None if gone else value for gone, value in zip(null, values, strict=True)]
    return rows


def _values(axis: Grouping, kind: ColumnType, place: Any, draw: Bits) -> list[Any]:
    bounds = np.array(axis.bounds)
    starts, ends = bounds[:-1][place], bounds[1:][place]
    if isinstance(kind, Real):
        uniform = (draw.words(len(place)) >> np.uint64(11)) * 2.0**-53
        return list(np.clip(starts + (ends - starts) * uniform, kind.lo, kind.hi).tolist())
    assert not isinstance(kind, Text)  # no universe has one
    codes = starts.copy()
    for width in np.unique(ends - starts):
        own = ends - starts == width
        codes[own] += draw.integers_below(int(width), int(np.count_nonzero(own)))
    return list(kind.decode(np.asarray(codes, dtype=kind.dtype)))
