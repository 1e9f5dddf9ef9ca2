"""Means and second moments of bounded rows: whole numbers that add up exactly, with Gaussian noise."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.learn.linear_loss import on_grid
from holdfast.mechanisms.gaussian import add_gaussian

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

_SIDE = 1 << 15
"""Grid steps in 1. A product of two times 2^22 rows stays below 2^53, so that sums in floats are exact."""
_CHUNK = 1 << 16


def mean_sensitivity_squared(columns: int) -> int:
    """Of the sum that `noisy_mean` releases: two rows of [-1,1]^d are at most 2 sqrt d apart."""
    return 4 * columns * _SIDE**2


def noisy_mean(rows: Matrix, variance: Fraction) -> Vector:
    """The mean of rows in [-1,1]^d, on a grid. Cost: `events.Gaussian(mean_sensitivity_squared(d), variance)`."""
    whole = np.trunc(np.clip(rows, -1.0, 1.0) * _SIDE)
    total = np.asarray(add_gaussian(whole.sum(axis=0).astype(np.int64), variance))
    return total / (len(rows) * float(_SIDE))


GRAM_SENSITIVITY_SQUARED = 2 * _SIDE**4
"""|vv' - ww'|^2 = |v|^4 + |w|^4 - 2 (v w)^2 over all entries, so no more over those on and above the diagonal."""


def noisy_gram(rows: Matrix, variance: Fraction) -> Matrix:
    """The mean of vv' over rows v, shortened to norm 1 and on a grid.

    Cost: `events.Gaussian(GRAM_SENSITIVITY_SQUARED, variance)`.
    """
    width = rows.shape[1]
    total = np.zeros((width, width), dtype=np.int64)
    for start in range(0, len(rows), _CHUNK):
        part = on_grid(rows[start : start + _CHUNK], _SIDE)
        total += (part.T @ part).astype(np.int64)
    upper = np.triu_indices(width)
    noisy = np.zeros((width, width))
    noisy[upper] = np.asarray(add_gaussian(total[upper], variance)) / (len(rows) * float(_SIDE) ** 2)
    return noisy + np.triu(noisy, 1).T


def gram_deviation(variance: Fraction, rows: int) -> float:
    """The standard deviation of the noise in an entry of `noisy_gram`."""
    return math.sqrt(variance) / (rows * float(_SIDE) ** 2)


def gram_rounding(columns: int) -> float:
    """How far the grid can move the mean of vv', as an operator: 2 sqrt d/side for rows of norm at most 1."""
    return (2 * math.sqrt(columns) + 1) / _SIDE
