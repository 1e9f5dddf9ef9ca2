"""Quantiles by private selection among declared bins."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.noise.choice import choice, smoothed_choice
from holdfast.query.grouping import Grouping
from holdfast.query.time_reading import middle


def select_bins(
    counts: NDArray[np.int64],
    rank: Fraction,
    epsilon: Fraction,
    distance: int,
    rows: int,
    *,
    smoothed: bool = False,
) -> tuple[int, int, int]:
    """Three bins: one at the rank, one surely not above it, one surely not below it.

    A bin's score is minus the number of rows by which it misses the target rank, so the bin which holds it
    scores 0. Two outer bins hold the targets below the first row and above the last, and stand for the ends of
    the range. Replacing a row moves every score by at most one. A distance of more than all `rows` (public)
    leaves nothing to choose: the ends are those of the range.
    `smoothed`, the score is -ln(1 + e^x + e^y) instead of -max(0, x, y), x and y being epsilon/2 times what is
    missing below the target and what is too much.

    Guarantee: each selection has epsilon-bounded range. Except with chance 2*(bins+2)*exp(-epsilon*distance/2),
    three times that if it is smoothed, the left edge of the second bin is at most the quantile and the right edge of
    the third at least.
    Reference: McSherry, Talwar 2007; utility: Dwork and Roth 2014, Theorem 3.11; smoothed: docs/theorems.md,
    Theorem 33.
    Cost: three `BoundedRange(epsilon)`.
    """
    a, b = rank.numerator, rank.denominator
    below = b * np.concatenate([[0], np.cumsum(counts)])
    left, right = below[:-1], below[1:]
    chosen = []
    for shift in (0, -distance, distance):
        if abs(shift) > rows:
            chosen.append(0 if shift < 0 else len(counts) - 1)
            continue
        target = a * (right[-1] // b) + b * shift
        # The outer bins miss on one side only; on the other they are never wrong, by as much as all rows.
        missing = np.concatenate([[target], target - right, [-b * rows]])
        too_many = np.concatenate([[-b * rows], left - target, [right[-1] - target]])
        if smoothed:
            index = smoothed_choice(missing, too_many, epsilon / (2 * b)) - 1
        else:
            index = choice(-np.maximum(0, np.maximum(missing, too_many)), epsilon / (2 * b)) - 1
        chosen.append(min(max(index, 0), len(counts) - 1))
    return chosen[0], chosen[1], chosen[2]


def read_bins(bins: Grouping, chosen: tuple[int, int, int]) -> tuple[Any, Any, Any]:
    """The value and the ends of the interval, in the column's own scale."""
    place, first, last = chosen
    low, high = bins.starts[min(first, last)], bins.ends[max(first, last)]
    start, end = bins.starts[place], bins.ends[place]
    value = start if start == end else middle(start, end)
    return min(max(value, low), high), low, high
