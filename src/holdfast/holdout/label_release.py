"""The one place where labels become numbers that leave."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.holdout.design import Design
from holdfast.holdout.metric import GRID
from holdfast.mechanisms.gaussian import add_gaussian
from holdfast.mechanisms.votes import FLIP, unbiased, votes
from holdfast.noise.subset import with_replacement

_BLOCK = 1 << 20

Rows = Callable[[NDArray[np.int64] | None], NDArray[Any]]
"""Row numbers (None for all rows in order) -> truth values, or integers in 0..GRID, one for each."""


def total(rows: Rows) -> int:
    """The exact sum over all rows, in steps of the grid."""
    values = rows(None)
    if values.dtype == np.bool_:
        return int(np.count_nonzero(values)) * GRID
    return int(values.sum(dtype=np.int64))


def mean(plan: Design, rows: Rows) -> float:
    """A noisy mean in units of [0,1], by votes, Gaussian noise or rounding, as the design says.

    Guarantee: of all `plan.queries` means, with probability `plan.confidence`, each is within `plan.width` of
    its population value, however the questions were chosen.
    Requires: at most `plan.queries` calls on these labels, and no other release from them.
    Reference: `validity.votes_width`, `validity.gaussian_width`, `validity.discretised`.
    Cost: `plan.rows_read` rows.
    """
    if plan.mode == "votes":
        drawn = rows(with_replacement(plan.rows, plan.votes))
        levels = 1 if drawn.dtype == np.bool_ else GRID
        return unbiased(votes(drawn, levels=levels), plan.votes, FLIP)
    held = total(rows)
    if plan.mode == "gaussian":
        noisy = add_gaussian(held, Fraction(plan.variance))
        assert isinstance(noisy, int)
        return noisy / (plan.rows * GRID)
    return cell_centre(plan, held)


def cell_centre(plan: Design, held: int) -> float:
    """The centre of the cell of width 2 alpha/c that holds the mean (Theorem D)."""
    size = 2.0 * plan.width / plan.cells
    return (math.floor(held / (plan.rows * GRID) / size) + 0.5) * size
