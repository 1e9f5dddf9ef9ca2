"""From noisy totals to a value and its interval. Post-processing: it costs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.query.distinct import DistinctMeasurement
from holdfast.query.grid import Grid
from holdfast.query.propagation import extremes, propagated
from holdfast.query.statistic import Workload

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Reading:
    """A value with its interval, one for each group."""

    value: Numbers
    low: Numbers
    high: Numbers


Totals = tuple[NDArray[Any], ...]
"""The totals of each measurement, as released."""


def read(totals: Workload, noisy: Totals, half_widths: tuple[float, ...], rows: int) -> Reading:
    """The statistic and its interval, given that the totals of each measurement are within its half-width.

    Guarantee: whenever that holds, [low, high] contains the statistic.
    """
    if totals.is_ratio:
        return _ratio(totals, noisy, half_widths, rows)
    if totals.joint is not None:
        return _propagated(totals, noisy, half_widths, rows)
    least, most = _extremes(totals, rows)
    reach = half_widths[0] * totals.unit + totals.rounding
    if totals.size == 1 and totals.statistic.labels is None:
        return _one_number(float(noisy[0][0]) * totals.unit, reach, least, most)
    value = noisy[0] * totals.unit
    ends = np.array((value, value - reach, value + reach))
    # np.clip, twice as quick on single numbers.
    kept = np.minimum(np.maximum(ends, least), most)
    missed = (ends[1] > most) | (ends[2] < least)
    if missed.any():  # then the totals are not within their half-widths, and nothing is known
        kept[1], kept[2] = np.where(missed, least, kept[1]), np.where(missed, most, kept[2])
    return Reading(*kept)


def _one_number(value: float, reach: float, least: float, most: float) -> Reading:
    """The same for a single number, without arrays on the way: most answers are one."""
    low, high = value - reach, value + reach
    if low > most or high < least:
        low, high = least, most
    ends = min(max(value, least), most), max(low, least), min(high, most)
    return Reading(*(np.array([end]) for end in ends))


def too_few(totals: Workload, reading: Reading) -> NDArray[np.bool_]:
    """Where the interval of a mean is its whole declared range: too few rows qualified for the noise."""
    if totals.joint is not None:
        lowest, highest = extremes(totals)
        return np.asarray((reading.low <= lowest) & (reading.high >= highest))
    grid = totals.measurements[0].grid
    if not totals.is_ratio or grid is None or grid.low == grid.high:
        return np.zeros(np.shape(reading.low), dtype=bool)
    lowest, highest = _range(grid)
    return np.asarray((reading.low <= lowest) & (reading.high >= highest))


def _range(grid: Grid) -> tuple[float, float]:
    """The declared range of a mean."""
    return grid.origin + grid.low * grid.step, grid.origin + grid.high * grid.step


def _extremes(totals: Workload, rows: int) -> tuple[float, float]:
    """The range that the statistic cannot leave, whatever the rows are."""
    measurement = totals.measurements[0]
    if isinstance(measurement, DistinctMeasurement):
        return 0.0, float(measurement.most_values(rows))
    return rows * measurement.low * totals.unit, rows * measurement.high * totals.unit


def read_between(totals: Workload, noisy: Totals, low: Totals, high: Totals, rows: int) -> Reading:
    """The statistic (no mean) and its interval, given bounds on its totals."""
    least, most = _extremes(totals, rows)
    value, bottom, top = (np.clip(part[0] * totals.unit, least, most) for part in (noisy, low, high))
    return Reading(value, bottom - totals.rounding, top + totals.rounding)


def _propagated(totals: Workload, noisy: Totals, half_widths: tuple[float, ...], rows: int) -> Reading:
    """A function of several totals; its value is that of the totals as they were told, inside its interval."""
    told = [np.asarray(total, dtype=np.float64) for total in noisy]
    box = [(total - half, total + half) for total, half in zip(told, half_widths, strict=True)]
    low, high = propagated(totals, box, rows)
    least, most = propagated(totals, [(total, total) for total in told], rows)
    least, most = np.where(np.isinf(least), 0.0, least), np.where(np.isinf(most), 0.0, most)
    middle = least / 2 + most / 2
    return Reading(np.clip(middle, low, high), low, high)


def _ratio(totals: Workload, noisy: Totals, half_widths: tuple[float, ...], rows: int) -> Reading:
    """A mean is a sum over a count, and its interval comes from both.

    Where the count may be zero the interval is the whole declared range.
    """
    total, counted = totals.measurements
    grid = total.grid
    assert grid is not None
    sums, counts = noisy[0].astype(float), noisy[1] / counted.weight
    slack = half_widths[1] / counted.weight
    fewest, most = counts - slack, np.minimum(counts + slack, rows * totals.most)
    lowest, highest = _range(grid)
    known = fewest > 0
    fewest, most = np.where(known, fewest, 1.0), np.where(known, np.maximum(most, fewest), 1.0)
    bottom, top = sums - half_widths[0], sums + half_widths[0]
    low = grid.origin + bottom / np.where(bottom < 0, fewest, most) * grid.step - totals.rounding
    high = grid.origin + top / np.where(top > 0, fewest, most) * grid.step + totals.rounding
    low = np.where(known, np.clip(low, lowest, highest), lowest)
    high = np.where(known, np.clip(high, lowest, highest), highest)
    middle = grid.origin + sums / np.maximum(counts, 1.0) * grid.step
    return Reading(np.clip(middle, low, high), low, high)
