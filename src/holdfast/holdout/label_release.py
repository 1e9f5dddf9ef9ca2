"""The one place where labels become numbers that leave."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.holdout.design import FLIP, Design
from holdfast.holdout.metric import GRID
from holdfast.mechanisms.gaussian import add_gaussian
from holdfast.mechanisms.votes import unbiased, votes
from holdfast.noise.subset import with_replacement
from holdfast.validity.option import Epoch

_BLOCK = 1 << 20

Rows = Callable[[NDArray[np.int64] | None], NDArray[Any]]
"""Row numbers (None for all rows in order) -> truth values, or integers in 0..GRID, one for each."""

Cells = Callable[[NDArray[np.int64] | None], tuple[NDArray[np.int64], NDArray[np.int64]]]
"""Row numbers (None for all rows in order) -> the cell of each row, and its value there in steps of the grid."""


def total(rows: Rows) -> int:
    """The exact sum over all rows, in steps of the grid."""
    values = rows(None)
    if values.dtype == np.bool_:
        return int(np.count_nonzero(values)) * GRID
    return int(values.sum(dtype=np.int64))


def noisy_mean(plan: Design, epoch: Epoch, rows: Rows) -> float:
    """A noisy mean in units of [0,1], by the votes or the Gaussian noise of an epoch.

    Guarantee: see `look_meter.Meter`. Cost: the votes, or all rows.
    """
    if plan.mode == "votes":
        count = int(epoch.noise)
        drawn = rows(with_replacement(plan.rows, count))
        levels = 1 if drawn.dtype == np.bool_ else GRID
        return unbiased(votes(drawn, flip=FLIP, levels=levels), count, FLIP)
    return _with_noise(plan, total(rows), epoch.noise)


def noisy_difference(
    plan: Design, first: Rows, second: Rows, variance: Fraction, disagreement_variance: Fraction | None
) -> tuple[float, float | None]:
    """(the mean of first - second with noise, the mean of its size with noise or None where that is not asked for).

    Both variances are in squared steps of the grid, on the sum. Cost: all rows, in blocks.
    """
    signed = size = 0
    for start in range(0, plan.rows, _BLOCK):
        ids = None if plan.rows <= _BLOCK else np.arange(start, min(plan.rows, start + _BLOCK))
        values = whole_steps(first(ids)) - whole_steps(second(ids))
        signed += int(values.sum(dtype=np.int64))
        size += int(np.abs(values).sum(dtype=np.int64))
    # The disagreement first: what follows is planned from what came before it.
    told = None if disagreement_variance is None else _with_noise(plan, size, disagreement_variance)
    return _with_noise(plan, signed, variance), told


def noisy_table(plan: Design, epoch: Epoch, rows: Cells, cells: int) -> NDArray[np.float64]:
    """The means over all rows of what falls into each cell, each with the Gaussian noise of an epoch."""
    places, values = rows(None)
    held = np.zeros(cells, dtype=np.int64)
    np.add.at(held, places, values)
    noisy = np.asarray(add_gaussian(held, epoch.noise), dtype=np.float64)
    return noisy / (plan.rows * GRID)


def rounded_mean(plan: Design, rows: Rows) -> float:
    """The centre of the cell of width 2 alpha/c that holds the mean (Theorem D). Not private.

    Guarantee: of all `plan.queries` means, with probability `plan.confidence`, each is within `plan.width` of
    its population value, however the questions were chosen.
    Requires: at most `plan.queries` calls on these labels, and no other release from them.
    """
    size = 2.0 * plan.width / plan.cells
    return (math.floor(total(rows) / (plan.rows * GRID) / size) + 0.5) * size


def whole_steps(values: NDArray[Any]) -> NDArray[np.int64]:
    """Row values in whole steps of the grid."""
    return values.astype(np.int64) * GRID if values.dtype == np.bool_ else values


def _with_noise(plan: Design, held: int, variance: Fraction) -> float:
    noisy = add_gaussian(held, variance)
    assert isinstance(noisy, int)
    return noisy / (plan.rows * GRID)
