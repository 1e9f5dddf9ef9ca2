"""The width of a mean: it depends on how many rows qualify, which is secret."""

from __future__ import annotations

import math
from bisect import bisect_left

from holdfast.query.propagation import foreseen
from holdfast.query.statistic import Workload

MARGIN = 1 + 2.0**-40


def aims(totals: Workload, rows: int) -> list[int]:
    """For how many qualifying rows a width is planned, the fewest first: for all, or (a mean by groups) for an
    equal share of them, then for twice as many, and so on. Public numbers only."""
    by, rows = totals.statistic.by, rows * totals.most
    groups = 1 if by is None else by.size
    if totals.statistic.compared is not None:
        groups = 2  # in each of the two that are compared
    found = [math.ceil(rows / groups) if totals.depends else rows]
    while found[-1] < rows:
        found.append(min(2 * found[-1], rows))
    return found


def mean_width(totals: Workload, in_units: tuple[float, ...], qualifying: int) -> float:
    """The half-width that a mean is certain to keep if so many rows qualify; infinite if there is none.

    Guarantee: let h and s be the half-widths of the sum and of the count, R the largest contribution, and m the
    rows that qualify. Whenever the noisy count is at least m - s, as it is while the totals are within their
    half-widths, half the interval that `readout.read` gives is at most (h + R s)/(m - s) (docs/theorems.md,
    "The width of a mean").
    """
    if totals.joint is not None:
        return foreseen(totals, in_units, qualifying) * MARGIN
    total, counted = totals.measurements
    grid = total.grid
    assert grid is not None
    missing = in_units[1] / counted.weight
    if missing >= qualifying:
        return math.inf
    steps = (in_units[0] + max(grid.high, -grid.low) * missing) / (qualifying - missing)
    return (steps * totals.unit + totals.rounding) * MARGIN


def least_rows(totals: Workload, in_units: tuple[float, ...], within: float, rows: int) -> int | None:
    """The fewest qualifying rows for which `mean_width` is at most `within`; None if even all rows are too few."""
    rows *= totals.most
    few = bisect_left(range(rows + 1), True, key=lambda m: mean_width(totals, in_units, m) <= within)
    return few if few <= rows else None


def when_it_holds(totals: Workload, rows: int, within: float | None, qualifying: int | None) -> str:
    """When the half-width of a mean holds, in words."""
    rows *= totals.most
    if totals.statistic.over is not None and qualifying in (None, rows):
        over = totals.statistic.over
        missed = "" if qualifying is not None else f" (within {within:.4g} cannot be promised)"
        return (
            f"if every {over.unit} has {over.most} rows that qualify{missed}; wider in proportion with fewer"
        )
    if qualifying is None:
        return f"if every row qualifies (within {within:.4g} cannot be promised); wider in proportion when fewer do"
    if qualifying == rows:
        return "if every row qualifies; wider in proportion when fewer do"
    if totals.statistic.compared is not None:
        return f"if at least {qualifying:,} of the {rows:,} rows are in each of the two; wider in proportion with fewer"
    if totals.statistic.by is None:
        return f"if at least {qualifying:,} of the {rows:,} rows qualify; wider in proportion when fewer do"
    return f"in groups of at least {qualifying:,} of the {rows:,} rows; wider in proportion in smaller ones"
