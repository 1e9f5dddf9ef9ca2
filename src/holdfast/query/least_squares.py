"""Least squares from sums that are known within a box: each coefficient with ends that hold whatever the sums are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.query.grid import Grid

Numbers = NDArray[np.float64]
_FLOATS = 2.0**-40
_LARGEST_CONDITION = 1e9
"""Beyond this a matrix is as good as singular in floats, and nothing is certified."""


def coefficients(grids: list[Grid], box: list[tuple[Numbers, Numbers]], rows: int) -> tuple[Numbers, Numbers]:
    """The ends of the intercept and of each slope of the first number by the others, in their own units.

    `box` holds the ends of the count, the sums, the squares and the products (`holdfast.query.joint.moments`).
    Guarantee: docs/theorems.md, Theorem 78. Every number where the box holds a singular matrix, or may.
    """
    middle, radius = _gram(grids, box, rows)
    features = [0, *range(2, len(grids) + 1)]
    gram, right = middle[np.ix_(features, features)], middle[features, 1]
    around, beside = radius[np.ix_(features, features)], radius[features, 1]
    nothing = np.full(len(features), np.inf)
    condition = np.linalg.cond(gram)
    if not condition < _LARGEST_CONDITION:
        return -nothing, nothing
    inverse = np.linalg.inv(gram)
    found, size = inverse @ right, np.abs(inverse)
    spread = size @ around
    if not np.abs(np.linalg.eigvals(spread)).max() < 1 - _FLOATS:
        return -nothing, nothing
    left = np.abs(right - gram @ found)
    reach = np.linalg.solve(np.eye(len(features)) - spread, size @ (beside + around @ np.abs(found) + left))
    reach = np.abs(reach) * (1 + _FLOATS * condition) + _FLOATS * condition * np.abs(found)
    return _own_units(grids, found, reach)


def _gram(grids: list[Grid], box: list[tuple[Numbers, Numbers]], rows: int) -> tuple[Numbers, Numbers]:
    """The matrix of all second moments of (1, z), each number over its reach, and how far each entry may be off."""
    many = len(grids)
    sizes = np.array([1.0, *(grid.reach for grid in grids)])
    moved = np.array([0.0, *(0.0 if grid.exact else 0.5 for grid in grids)])
    places = [(0, 0), *((0, i) for i in range(1, many + 1)), *((i, i) for i in range(1, many + 1))]
    places += [(i, j) for i in range(1, many + 1) for j in range(i + 1, many + 1)]
    middle, radius = np.zeros((many + 1, many + 1)), np.zeros((many + 1, many + 1))
    for (i, j), (low, high) in zip(places, box, strict=True):
        rounding = rows * (sizes[i] * moved[j] + sizes[j] * moved[i] + moved[i] * moved[j])
        scale = sizes[i] * sizes[j] * rows
        middle[i, j] = middle[j, i] = (low[0] + high[0]) / 2 / scale
        radius[i, j] = radius[j, i] = ((high[0] - low[0]) / 2 + rounding) / scale
    return middle, radius


def _own_units(grids: list[Grid], found: Numbers, reach: Numbers) -> tuple[Numbers, Numbers]:
    """From numbers over their reach, around their origins, to the columns' own: the intercept takes what these add."""
    target, others = grids[0], grids[1:]
    slopes = np.array([target.reach * target.step / (grid.reach * grid.step) for grid in others])
    origins = np.array([grid.origin for grid in others])
    values, reaches = found[1:] * slopes, reach[1:] * slopes
    intercept = target.origin + target.reach * target.step * found[0] - values @ origins
    far = target.reach * target.step * reach[0] + reaches @ np.abs(origins)
    values, reaches = np.append(intercept, values), np.append(far, reaches)
    slack = _FLOATS * (np.abs(values) + abs(target.origin))
    return values - reaches - slack, values + reaches + slack
