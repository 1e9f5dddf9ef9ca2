"""Many marginals of one array, sharing their partial sums; on any array library that slices and adds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

Axes = tuple[int, ...]

_SHORT = 8


def marginals(cells: Any, wanted: Iterable[Axes]) -> dict[Axes, Any]:
    """For each sorted tuple of axes the sum over all others, exact for integers.

    An axis that no marginal needs is summed out at once. Otherwise the marginals are parted by the axis that
    the fewest of them need: the others go on with it summed out, on an array that is smaller by its length.
    Cost: some tens of passes for hundreds of three-way marginals, instead of one pass each.
    """
    found: dict[Axes, Any] = {}
    _part(cells, tuple(range(len(cells.shape))), sorted(set(wanted)), found)
    return found


def _part(cells: Any, axes: Axes, wanted: list[Axes], found: dict[Axes, Any]) -> None:
    if not wanted:
        return
    uses = dict.fromkeys(axes, 0)
    for one in wanted:
        for axis in one:
            uses[axis] += 1
    # First axes first: their slices are long and contiguous.
    for axis in [axis for axis, count in uses.items() if count == 0]:
        cells, axes = _summed(cells, axes, axis)
    if len(wanted) == 1:
        found[wanted[0]] = cells
        return
    axis = min(axes, key=uses.__getitem__)
    _part(*_summed(cells, axes, axis), [one for one in wanted if axis not in one], found)
    _part(cells, axes, [one for one in wanted if axis in one], found)


def _summed(cells: Any, axes: Axes, axis: int) -> tuple[Any, Axes]:
    place = axes.index(axis)
    shape = tuple(cells.shape)
    length = shape[place]
    parts = cells.reshape(math.prod(shape[:place]), length, math.prod(shape[place + 1 :]))
    # Adding the slices of a short axis is several times quicker than a reduction over it.
    if 2 <= length <= _SHORT:
        total = parts[:, 0] + parts[:, 1]
        for i in range(2, length):
            total += parts[:, i]
    else:
        total = parts.sum(1)
    return total.reshape(shape[:place] + shape[place + 1 :]), axes[:place] + axes[place + 1 :]
