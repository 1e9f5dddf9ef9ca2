"""Synthetic rows drawn from public weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.check import integer
from holdfast.noise.bits import Bits, source
from holdfast.query.grouping import Grouping
from holdfast.query.schema import ColumnType, Real, Text
from holdfast.weights.distribution import Weights

_UNITS = 1 << 62


def sample(weights: Weights, count: int, bits: Bits | None = None) -> dict[str, list[Any]]:
    """`count` independent rows as lists of values by column; a row from the outside is NULL in all columns, one
    from a cell is NULL in those columns where the cell is.

    The weights are rounded to whole units, 2^62 in all, and a cell is chosen by an exact uniform integer.
    Within a bin of several values one is drawn uniformly. Post-processing: no row of the table is touched.
    """
    count = integer("count", count, 0)
    draw = source(bits)
    probabilities, outside = weights.probabilities()
    units = np.append(probabilities.reshape(-1), outside) * float(_UNITS >> 1)
    ends = np.cumsum(units.astype(np.int64))
    cells = np.searchsorted(ends, draw.integers_below(int(ends[-1]), count), side="right")
    beyond = cells == probabilities.size
    places = np.unravel_index(np.where(beyond, 0, cells), weights.universe.shape)
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
    codes = starts + [draw.below(int(width)) for width in ends - starts] if len(place) else starts
    return list(kind.decode(np.asarray(codes, dtype=kind.dtype)))
