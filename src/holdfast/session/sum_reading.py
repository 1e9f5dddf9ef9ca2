"""From noisy totals to running totals, quantiles and the dependence of two columns. Post-processing: it costs nothing.

Guarantee (docs/theorems.md, Theorems 135 to 138): whenever every statement is within the half-width of its class, the
interval holds what is asked about.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.query.grouping import Grouping
from holdfast.query.statistic import Workload
from holdfast.session.readout import Reading

Numbers = NDArray[np.float64]
_FLOATS = 2.0**-40


def read_sums(totals: Workload, noisy: NDArray[Any], reaches: tuple[float, ...], rows: int) -> Reading:
    """The statistic and its interval, given that each class of its statements is within its half-width."""
    if totals.statistic.cells is not None:
        return _dependence(totals, noisy, reaches, rows)
    return (_quantiles if totals.statistic.ranks else _running)(totals, noisy, reaches, rows)


def nothing_known(totals: Workload, reading: Reading) -> NDArray[np.bool_]:
    """Where the interval is all that the schema leaves possible."""
    if totals.statistic.cells is not None:
        return np.asarray((reading.low <= 0) & (reading.high >= 1))
    bins = totals.statistic.bins
    if bins is None:
        return np.zeros(np.shape(reading.low), dtype=bool)
    return np.asarray((reading.low <= bins.starts[0]) & (reading.high >= bins.ends[-1]), dtype=bool)


def _running(totals: Workload, noisy: NDArray[Any], reaches: tuple[float, ...], rows: int) -> Reading:
    """Totals up to each group. Where rows add nothing negative they do not fall, and neither do their ends."""
    assert totals.sums is not None and totals.sums.running is not None
    (measurement,) = totals.measurements
    found, slack = totals.sums.running.decoded(noisy)
    classes = np.ceil(np.log2(np.arange(1, found.shape[1] + 1))).astype(int)
    reach = np.asarray(reaches)[classes] + slack
    least, most = rows * measurement.low, rows * measurement.high
    low, high = np.clip(found - reach, least, most), np.clip(found + reach, least, most)
    if measurement.low == 0:
        low = np.maximum.accumulate(low, axis=1)
        high = np.minimum.accumulate(high[:, ::-1], axis=1)[:, ::-1]
    missed = low > high  # then the statements do not hold, and nothing is known
    low, high = np.where(missed, least, low) * totals.unit, np.where(missed, most, high) * totals.unit
    low = np.maximum(low - totals.rounding, least * totals.unit)
    high = np.minimum(high + totals.rounding, most * totals.unit)
    return Reading(*(part.ravel() for part in (np.clip(found * totals.unit, low, high), low, high)))


def _quantiles(totals: Workload, noisy: NDArray[Any], reaches: tuple[float, ...], rows: int) -> Reading:
    """All values with at most the rank below them and at least the rank up to them, for each group and rank."""
    assert totals.sums is not None and totals.sums.running is not None
    bins = totals.statistic.bins
    assert bins is not None
    found, slack = totals.sums.running.decoded(noisy)
    reach = reaches[0] + 2 * slack
    chosen = [
        _between(bins, line - float(rank) * line[-1], reach)
        for line in found
        for rank in totals.statistic.ranks
    ]
    kind = float if isinstance(bins.starts[0], int | float) else object
    return Reading(*(np.array(column, dtype=kind) for column in zip(*chosen, strict=True)))


def _between(bins: Grouping, above: Numbers, reach: float) -> tuple[Any, Any, Any]:
    """The value and its ends; `above` is by how many rows each running total exceeds its part of all.

    The last one cannot be below 0, however noisy it is.
    """
    last = len(above) - 1
    short, enough = np.flatnonzero(above[:last] + reach < 0), np.flatnonzero(above[:last] - reach > 0)
    first = int(short[-1]) + 1 if len(short) else 0
    end = int(enough[0]) if len(enough) else last
    if first > end:  # the statements do not hold, and nothing is known
        first, end = 0, last
    reached = np.flatnonzero(above[first:end] >= 0)
    middle = first + int(reached[0]) if len(reached) else end
    start, stop = bins.starts[middle], bins.ends[middle]
    return start if start == stop else start + (stop - start) / 2, bins.starts[first], bins.ends[end]


def _dependence(totals: Workload, noisy: NDArray[Any], reaches: tuple[float, ...], rows: int) -> Reading:
    """Half the sum over the cells of |share of the cell - share of its line x share of its column|, with its ends."""
    cells = totals.statistic.cells
    assert cells is not None
    table = np.asarray(noisy, dtype=np.float64).reshape([part.size for part in cells.parts])
    lines, columns = table.sum(axis=1, keepdims=True) - table, table.sum(axis=0, keepdims=True) - table
    others = table.sum() - table - lines - columns
    most = rows * totals.most
    ends = [
        (np.clip(part - reach, 0, most), np.clip(part + reach, 0, most))
        for part, reach in zip((table, lines, columns, others, table.sum()), reaches, strict=True)
    ]
    (a, b, c, d, whole) = ends
    low, high = a[0] * d[0] - b[1] * c[1], a[1] * d[1] - b[0] * c[0]
    near = np.maximum(np.maximum(low, -high), 0.0) / np.maximum(whole[1], 1.0) ** 2
    least = near.sum() / 2 * (1 - _FLOATS)
    greatest = _greatest(np.maximum(np.abs(low), np.abs(high)), float(whole[0]))
    least = 0.0 if least > greatest else least  # the statements do not hold
    told = np.maximum(table, 0.0)
    shares = told / max(told.sum(), 1.0)
    value = np.abs(shares - shares.sum(axis=1, keepdims=True) * shares.sum(axis=0, keepdims=True)).sum() / 2
    return Reading(*(np.array([part]) for part in (min(max(value, least), greatest), least, greatest)))


def _greatest(far: Numbers, fewest: float) -> float:
    """The most that the dependence can be if there are at least so many rows; of a law that may be less than one."""
    if fewest <= _FLOATS:
        return 1.0
    return min(1.0, float(np.minimum(far / fewest**2, 0.25).sum()) / 2 * (1 + _FLOATS))
