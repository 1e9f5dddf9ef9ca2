"""From a box that holds all totals of a question to an interval that holds the statistic: outward, no linearisation.

Guarantee (docs/theorems.md, Theorem 76): whenever every total lies in its ends, the statistic lies in the ends that are
given. Where the box tells nothing (no row may qualify, a variance or a divisor may be 0), they are all that it can be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.query.grid import Grid
from holdfast.query.least_squares import coefficients

if TYPE_CHECKING:
    from holdfast.query.statistic import Workload

Numbers = NDArray[np.float64]
Ends = tuple[Numbers, Numbers]
Box = Sequence[Ends]

UNFORESEEN = ("ratio", "correlation", "regression", "slope", "intercept", "r2")
"""Kinds of which no width is certain before the rows are read."""
_FLOATS = 2.0**-40
"""More than the floats of a reading can have moved it, relative to its terms."""


def propagated(totals: Workload, box: Box, rows: int) -> Ends:
    """The ends of a statistic, one for each group, given ends of its totals."""
    rows *= totals.most
    inside = []
    for ends, measurement in zip(box, totals.measurements, strict=True):
        least, most = (rows * end // totals.most for end in (measurement.low, measurement.high))
        inside.append((np.clip(ends[0], least, most), np.clip(ends[1], least, most)))
    with np.errstate(invalid="ignore"):  # what is no number is seen below
        low, high = _READ[totals.statistic.kind](totals, inside, rows)
    lowest, highest = extremes(totals)
    missed = (
        (low > highest) | (high < lowest) | np.isnan(low) | np.isnan(high)
    )  # the box does not hold the totals
    return (
        np.where(missed, lowest, np.maximum(low, lowest)),
        np.where(missed, highest, np.minimum(high, highest)),
    )


def extremes(totals: Workload) -> tuple[float, float]:
    """The range that a statistic cannot leave, whatever the rows are."""
    statistic, grids = totals.statistic, _grids(totals)
    lengths = [(grid.high - grid.low) * grid.step for grid in grids]
    match statistic.kind:
        case "share":
            return 0.0, 1.0
        case "variance" | "std":
            # Of two rows the sample variance is twice their variance; else at most a quarter of the range squared.
            most = lengths[0] ** 2 / (2 if statistic.sample else 4)
            return 0.0, most if statistic.kind == "variance" else math.sqrt(most)
        case "covariance":
            most = lengths[0] * lengths[1] / (2 if statistic.sample else 4)
            return -most, most
        case "correlation":
            return -1.0, 1.0
        case "r2":
            return 0.0, 1.0
        case "contrast":
            length = lengths[0] if lengths else 1.0
            return -length, length
    return -math.inf, math.inf


def foreseen(totals: Workload, in_units: tuple[float, ...], qualifying: int) -> float:
    """The half-width that is certain if so many rows qualify (of a contrast, in each of the two); inf if there is none.

    Guarantee: docs/theorems.md, Theorem 76.
    """
    kind = totals.statistic.kind
    if kind in UNFORESEEN:
        return math.inf
    grids = _grids(totals)
    if kind == "share" or not grids:
        both = [max(in_units[i : i + 2]) for i in range(0, len(in_units), 2)]
        if 2 * max(both) >= qualifying:
            return math.inf
        return sum(half / (qualifying - 2 * half) + 2 * _FLOATS for half in both)
    reaches, step = [grid.reach for grid in grids], [grid.step for grid in grids]
    rounding = [0.0 if grid.exact else 0.5 for grid in grids]
    if kind == "contrast":
        parts = [_of_a_mean(in_units[i + 1], in_units[i], reaches[0], qualifying) for i in (0, 2)]
        return (sum(parts) + 2 * rounding[0] + 2 * _FLOATS * reaches[0]) * step[0]
    means = [
        _of_a_mean(half, in_units[0], reach, qualifying)
        for half, reach in zip(in_units[1 : 1 + len(grids)], reaches, strict=True)
    ]
    factor = 1.0
    if totals.statistic.sample:
        fewest = qualifying - 2 * in_units[0]
        factor = fewest / (fewest - 1) if fewest > 1 else math.inf
    if kind == "covariance":
        whole = _of_a_mean(in_units[3], in_units[0], reaches[0] * reaches[1], qualifying)
        whole += reaches[0] * means[1] + reaches[1] * means[0]
        whole += rounding[0] * reaches[1] + rounding[1] * reaches[0] + rounding[0] * rounding[1]
        widest = reaches[0] * reaches[1]
        whole += 2 * _FLOATS * widest
        return (whole * factor + widest * (factor - 1)) * step[0] * step[1]
    whole = _of_a_mean(in_units[2], in_units[0], reaches[0] ** 2, qualifying) + 2 * reaches[0] * means[0]
    whole = whole * factor + reaches[0] ** 2 * (factor - 1) + 8 * _FLOATS * reaches[0] ** 2
    if kind == "std":
        rounded = rounding[0] * (1 + math.sqrt(factor)) / 2
        return (math.sqrt(whole / 2) + rounded + _FLOATS * reaches[0]) * step[0]
    return (whole + rounding[0] * 2 * (factor * reaches[0] + 1)) * step[0] ** 2


def _of_a_mean(total: float, count: float, reach: float, qualifying: int) -> float:
    """Half the ends of a mean ("The width of a mean")."""
    return (total + reach * count) / (qualifying - count) if count < qualifying else math.inf


def _grids(totals: Workload) -> list[Grid]:
    """Those of the numbers that are added up, without their squares and products."""
    made = [m.grid for m in totals.measurements if m.grid is not None and getattr(m, "times", None) is None]
    return made[:1] if totals.statistic.kind == "contrast" else made


def _mean(total: Ends, count: Ends, grid_low: float, grid_high: float) -> Ends:
    """Of a mean, in steps from the origin: the wider denominator for each end, cut to what it can be."""
    fewest, most = count
    known = fewest > 0
    few, many = np.where(known, fewest, 1.0), np.where(known, np.maximum(most, 1.0), 1.0)
    low = total[0] / np.where(total[0] < 0, few, many)
    high = total[1] / np.where(total[1] > 0, few, many)
    return (
        np.where(known, np.clip(low, grid_low, grid_high), grid_low),
        np.where(known, np.clip(high, grid_low, grid_high), grid_high),
    )


def _share(totals: Workload, box: Box, rows: int) -> Ends:
    """a/(a+b) grows with a and falls with b."""
    (a_low, a_high), (b_low, b_high) = box
    low = np.where(a_low + b_high > 0, a_low / np.maximum(a_low + b_high, 1e-300), 0.0)
    high = np.where(a_high + b_low > 0, a_high / np.maximum(a_high + b_low, 1e-300), 1.0)
    return low * (1 - _FLOATS), high * (1 + _FLOATS)


def _ratio(totals: Workload, box: Box, rows: int) -> Ends:
    """Of two sums; all numbers where the divisor may be 0."""
    scaled = []
    for (low, high), grid in zip(box, _grids(totals), strict=True):
        slack = 0.0 if grid.exact else rows / 2
        scaled.append(((low - slack) * grid.step, (high + slack) * grid.step))
    (a_low, a_high), (b_low, b_high) = scaled
    known = (b_low > 0) | (b_high < 0)
    below, above = np.where(known, b_low, 1.0), np.where(known, b_high, 1.0)
    corners = np.array([a / b for a in (a_low, a_high) for b in (below, above)])
    slack = np.abs(corners).max(axis=0) * _FLOATS
    low, high = corners.min(axis=0) - slack, corners.max(axis=0) + slack
    return np.where(known, low, -np.inf), np.where(known, high, np.inf)


def _spread(count: Ends, total: Ends, squares: Ends, grid: Grid) -> Ends:
    """The variance Q k - (S k)^2 in steps, k = 1/count: over the box, and over the ends of both means."""
    smallest = np.where(
        (total[0] <= 0) & (total[1] >= 0), 0.0, np.minimum(np.abs(total[0]), np.abs(total[1]))
    )
    largest = np.maximum(np.abs(total[0]), np.abs(total[1]))
    low = _least(count, squares[0], largest**2)
    high = -_least(count, -squares[1], -(smallest**2))
    mean = _mean(total, count, grid.low, grid.high)
    second = _mean(squares, count, 0.0, float(grid.reach) ** 2)
    near = np.where((mean[0] <= 0) & (mean[1] >= 0), 0.0, np.minimum(np.abs(mean[0]), np.abs(mean[1])))
    far = np.maximum(np.abs(mean[0]), np.abs(mean[1]))
    known = count[0] > 0
    widest = (grid.high - grid.low) ** 2 / 4
    low = np.where(known, np.maximum(low, second[0] - far**2), 0.0)
    high = np.where(known, np.minimum(high, second[1] - near**2), widest)
    slack = _FLOATS * float(grid.reach) ** 2
    return np.maximum(low - slack, 0.0), np.minimum(high + slack, widest)


def _least(count: Ends, linear: Numbers, square: Numbers) -> Numbers:
    """The least of linear*k - square*k^2 for k from 1/count[1] to 1/count[0], and no more than floats leave of it;
    meaningless where no row may qualify."""
    first, last = 1 / np.maximum(count[1], 1.0), 1 / np.where(count[0] > 0, count[0], 1.0)
    turn = np.where(square != 0, linear / np.where(square != 0, 2 * square, 1.0), first)
    places = np.array([first, last, np.clip(turn, first, last)])
    found = linear * places - square * places**2
    terms = np.abs(linear) * places + np.abs(square) * places**2
    least: Numbers = (found - _FLOATS * terms).min(axis=0)
    return least


def _together(count: Ends, one: Ends, other: Ends, products: Ends, grids: tuple[Grid, Grid]) -> Ends:
    """The covariance P k - S k T k in steps."""
    first, second = grids
    corners = np.array([a * b for a in one for b in other])
    low = _least(count, products[0], corners.max(axis=0))
    high = -_least(count, -products[1], -corners.min(axis=0))
    mean, mean_other = _mean(one, count, first.low, first.high), _mean(other, count, second.low, second.high)
    reach = float(first.reach) * second.reach
    both = _mean(products, count, -reach, reach)
    corners = np.array([a * b for a in mean for b in mean_other])
    known = count[0] > 0
    widest = (first.high - first.low) * (second.high - second.low) / 4
    low = np.where(known, np.maximum(low, both[0] - corners.max(axis=0)), -widest)
    high = np.where(known, np.minimum(high, both[1] - corners.min(axis=0)), widest)
    slack = _FLOATS * reach
    return np.maximum(low - slack, -widest), np.minimum(high + slack, widest)


def _rounded(ends: Ends, grid: Grid) -> Ends:
    """A standard deviation in steps; putting values on the grid moves it by at most half a step."""
    moved = 0.0 if grid.exact else 0.5
    return np.maximum(np.sqrt(ends[0]) - moved, 0.0), np.sqrt(ends[1]) + moved


def _deviation(totals: Workload, box: Box, rows: int) -> Ends:
    (grid,) = _grids(totals)
    low, high = _rounded(_spread(box[0], box[1], box[2], grid), grid)
    high = high * np.sqrt(_of_a_sample(totals, box[0]))  # what rounding moved is multiplied too
    return low * grid.step * (1 - _FLOATS), high * grid.step * (1 + _FLOATS)


def _variance(totals: Workload, box: Box, rows: int) -> Ends:
    low, high = _deviation(totals, box, rows)
    return low**2 * (1 - _FLOATS), high**2 * (1 + _FLOATS)


def _of_a_sample(totals: Workload, count: Ends) -> Numbers:
    """n/(n-1) at most for a sample, else 1: for the far end. The near end stays, so that a law's is held too."""
    if not totals.statistic.sample:
        return np.ones_like(count[0])
    return np.where(count[0] > 2, count[0] / np.maximum(count[0] - 1, 1.0), 2.0)


def _covariance(totals: Workload, box: Box, rows: int) -> Ends:
    first, second = _grids(totals)
    ends = _together(box[0], box[1], box[2], box[3], (first, second))
    moved = [0.0 if grid.exact else 0.5 for grid in (first, second)]
    slack = moved[0] * second.reach + moved[1] * first.reach + moved[0] * moved[1]
    low, high, factor = ends[0] - slack, ends[1] + slack, _of_a_sample(totals, box[0])
    unit = first.step * second.step
    return np.where(low < 0, low * factor, low) * unit, np.where(high > 0, high * factor, high) * unit


def _correlation(totals: Workload, box: Box, rows: int) -> Ends:
    """The covariance over both deviations, each at its worst; from -1 to 1 where a deviation may be 0."""
    first, second = _grids(totals)
    count, one, other, square, square_other, products = box
    deviations = [
        _rounded(_spread(count, one, square, first), first),
        _rounded(_spread(count, other, square_other, second), second),
    ]
    low, high = _together(count, one, other, products, (first, second))
    moved = [0.0 if grid.exact else 0.5 for grid in (first, second)]
    slack = moved[0] * deviations[1][1] + moved[1] * deviations[0][1] + moved[0] * moved[1]
    least, most = deviations[0][0] * deviations[1][0], deviations[0][1] * deviations[1][1]
    known = least > 0
    few, many = np.where(known, least, 1.0), np.where(known, np.maximum(most, least), 1.0)
    low, high = low - slack, high + slack
    low, high = low / np.where(low < 0, few, many), high / np.where(high > 0, few, many)
    return np.where(known, low - _FLOATS, -1.0), np.where(known, high + _FLOATS, 1.0)


def _regression(totals: Workload, box: Box, rows: int) -> Ends:
    return coefficients(_grids(totals), list(box), rows)


def _line(totals: Workload, box: Box, rows: int) -> Ends:
    """The intercept or the slope of one number by another, in each group by itself."""
    place, grids = int(totals.statistic.kind == "slope"), _grids(totals)
    groups = range(len(box[0][0]))
    boxes = [[(low[i : i + 1], high[i : i + 1]) for low, high in box] for i in groups]
    found = [coefficients(grids, each, rows) for each in boxes]
    return np.array([low[place] for low, _ in found]), np.array([high[place] for _, high in found])


def _determination(totals: Workload, box: Box, rows: int) -> Ends:
    """The square of a correlation."""
    low, high = _correlation(totals, box, rows)
    near = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    return near**2 * (1 - _FLOATS), np.maximum(np.abs(low), np.abs(high)) ** 2 * (1 + _FLOATS)


def _contrast(totals: Workload, box: Box, rows: int) -> Ends:
    """One mean or share less another."""
    grids = _grids(totals)
    if not grids:
        one, other = _share(totals, box[:2], rows), _share(totals, box[2:], rows)
        return one[0] - other[1], one[1] - other[0]
    (grid,) = grids
    parts = [_mean(box[i + 1], box[i], grid.low, grid.high) for i in (0, 2)]
    slack = _FLOATS * grid.reach + (0.0 if grid.exact else 1.0)
    low, high = parts[0][0] - parts[1][1] - slack, parts[0][1] - parts[1][0] + slack
    return low * grid.step, high * grid.step


_READ: dict[str, Callable[[Workload, Box, int], Ends]] = {
    "share": _share, "ratio": _ratio, "variance": _variance, "std": _deviation, "covariance": _covariance,
    "correlation": _correlation, "contrast": _contrast, "regression": _regression,
    "slope": _line, "intercept": _line, "r2": _determination,
}  # fmt: skip
