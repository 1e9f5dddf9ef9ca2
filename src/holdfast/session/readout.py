"""From noisy totals to a value and its interval. Post-processing: it costs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.query.statistic import Workload

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Reading:
    """A value with its interval, one for each group."""

    value: Numbers
    low: Numbers
    high: Numbers


def read(totals: Workload, noisy: NDArray[np.int64], half_width: int, rows: int) -> Reading:
    """The statistic and its interval, given that every noisy total is within `half_width` of the true one.

    Guarantee: whenever that holds, [low, high] contains the statistic of the table.
    """
    if totals.statistic.kind == "mean":
        return _ratio(totals, noisy, half_width, rows)
    least, most = _extremes(totals, rows)
    value = noisy * totals.unit
    reach = half_width * totals.unit + totals.rounding
    return Reading(
        np.clip(value, least, most), np.clip(value - reach, least, most), np.clip(value + reach, least, most)
    )


def _extremes(totals: Workload, rows: int) -> tuple[float, float]:
    """The range that the statistic cannot leave, whatever the rows are."""
    measurement = totals.measurements[0]
    return rows * measurement.low * totals.unit, rows * measurement.high * totals.unit


def _ratio(totals: Workload, noisy: NDArray[Any], half_width: int, rows: int) -> Reading:
    """A mean is a sum over a count, and its interval comes from both.

    Where the count may be zero the interval is the whole declared range.
    """
    total, counted = totals.measurements
    grid = total.grid
    assert grid is not None
    sums, counts = noisy[: total.size].astype(float), noisy[total.size :] / counted.weight
    slack = half_width / counted.weight
    fewest, most = counts - slack, np.minimum(counts + slack, rows)
    lowest, highest = grid.origin + grid.low * grid.step, grid.origin + grid.high * grid.step
    known = fewest > 0
    fewest, most = np.where(known, fewest, 1.0), np.where(known, np.maximum(most, fewest), 1.0)
    bottom, top = sums - half_width, sums + half_width
    low = grid.origin + bottom / np.where(bottom < 0, fewest, most) * grid.step - totals.rounding
    high = grid.origin + top / np.where(top > 0, fewest, most) * grid.step + totals.rounding
    low = np.where(known, np.clip(low, lowest, highest), lowest)
    high = np.where(known, np.clip(high, lowest, highest), highest)
    middle = grid.origin + sums / np.maximum(counts, 1.0) * grid.step
    return Reading(np.clip(middle, low, high), low, high)
