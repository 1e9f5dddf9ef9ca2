"""Which marginal to measure next: by how wrong the model is on it, in a form that the leave-out theorem covers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.mechanisms.grid_scores import STEPS
from holdfast.mechanisms.selection import exponential
from holdfast.weights.marginals import Axes

Array = NDArray[np.float64]
SENSITIVITY = 2
"""One row leaves a cell and comes into another."""
_PARTS = 25


def choose(
    candidates: Sequence[Axes],
    away: Mapping[Axes, Array],
    price: Mapping[Axes, float],
    epsilon: Fraction,
    rows: int,
) -> Axes:
    """A candidate, with chances in proportion to exp(-rate price) times the product over its cells of
    cosh(rate away), where `away` are counts of rows, less public numbers and times public weights up to 1.

    Guarantee: epsilon-bounded range, hence epsilon^2/8-zCDP. The product of cosh is the mean of
    exp(rate sum of +-away) over all signs, so this is the exponential mechanism over candidates with their signs (each
    sum of sensitivity 2), of which only the candidate is told. For the same reason the leave-out theorem covers it.
    Large errors count as in a total variation, and those that are small beside 1/rate hardly: noise chooses nothing.
    Requires: at most 2^7 cells a candidate; their sums err by less than rows/2^44, which the sensitivity pays for.
    Reference: docs/theorems.md, Theorem 95; McSherry and Talwar 2007. Cost: `events.BoundedRange(epsilon)`.
    """
    sensitivity = SENSITIVITY * (1 + Fraction(rows, 2**43))
    rate = float(epsilon / (2 * sensitivity) * Fraction(STEPS, STEPS + 1))  # as floats are put on the grid
    scores = [smoothed(away[axes], rate) / rate - price[axes] for axes in candidates]
    return candidates[exponential(np.array(scores), sensitivity=sensitivity, epsilon=epsilon)]


def smoothed(away: Array, rate: float) -> float:
    """The sum of ln cosh(rate away)."""
    size = rate * np.abs(away)
    return float((size + np.log1p(np.exp(-2 * size)) - math.log(2)).sum())


def parts(masses: Array, ordered: bool, ways: int) -> NDArray[np.int64]:
    """The bins of a column in a few parts of about equal mass, for a candidate of so many columns: errors are compared
    on few cells, where they stand out of the noise. A function of released numbers."""
    most = max(2, round(_PARTS ** (1 / ways)))
    if len(masses) <= most:
        return np.arange(len(masses))
    mass = np.maximum(masses, 0.0) + 1e-9
    if ordered:
        middle = (np.cumsum(mass) - mass / 2) / mass.sum()
        return np.unique((middle * most).astype(np.int64), return_inverse=True)[1]
    places = np.full(len(mass), most - 1, dtype=np.int64)
    places[np.argsort(-mass, kind="stable")[: most - 1]] = np.arange(most - 1)
    return places


def in_parts(cells: NDArray[Any], places: Sequence[NDArray[np.int64]]) -> NDArray[Any]:
    """Cells added up in the parts of each of their columns."""
    for axis, own in enumerate(places):
        moved = np.moveaxis(cells, axis, 0)
        added = np.zeros((int(own.max()) + 1, *moved.shape[1:]), dtype=moved.dtype)
        np.add.at(added, own, moved)
        cells = np.moveaxis(added, 0, axis)
    return cells
