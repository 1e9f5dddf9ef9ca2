"""Vectors under Laplace noise, as the lecture has them: what one row can move, in L1, and the answers.

Neighbours replace one row. All counts are whole numbers; a quotient by the public number of rows comes after
the noise and costs nothing.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import InputError
from holdfast.mechanisms.laplace import laplace
from holdfast.mechanisms.values import integers
from holdfast.noise.bits import Bits
from holdfast.noise.parameter import natural

Neighbours = Literal["replace", "add-remove"]


def histogram_sensitivity(neighbours: Neighbours = "replace") -> int:
    """What one row moves in a histogram, in L1: 2 if it moves to another cell, 1 if it comes or goes."""
    if neighbours not in ("replace", "add-remove"):
        raise InputError(f"neighbours: expected 'replace' or 'add-remove', got {neighbours!r}")
    return 2 if neighbours == "replace" else 1


def averages_sensitivity(queries: int, levels: int = 1) -> int:
    """What one row moves in `queries` sums of values in 0..levels, in L1: each sum by `levels`."""
    return natural("queries", queries, least=1) * natural("levels", levels, least=1)


def proportion(count: int, rows: int, *, epsilon: float, bits: Bits | None = None) -> float:
    """The share of rows with a property: (count + Z)/rows, Z of scale 1/epsilon.

    Guarantee: epsilon-DP, exactly: the count has sensitivity 1, the mean 1/rows.
    Reference: the lecture's proportion; Dwork et al. 2006. Cost: `events.Laplace(1, 1/epsilon)`.
    """
    n = natural("rows", rows, least=1)
    return float(Fraction(int(laplace(count, sensitivity=1, epsilon=epsilon, bits=bits)), n))


def histogram(
    counts: ArrayLike,
    *,
    epsilon: float,
    neighbours: Neighbours = "replace",
    bits: Bits | None = None,
) -> NDArray[np.int64]:
    """Every cell of a histogram with noise of scale 2/epsilon, however many cells there are.

    Guarantee: epsilon-DP, exactly, if the cells are declared and each row is in one of them.
    Cost: `events.Laplace(2, 2/epsilon)`, or `events.Laplace(1, 1/epsilon)` for neighbours that add or remove.
    """
    secret = _vector(counts)
    return _vector(laplace(secret, sensitivity=histogram_sensitivity(neighbours), epsilon=epsilon, bits=bits))


def averages(
    sums: ArrayLike, rows: int, *, epsilon: float, levels: int = 1, bits: Bits | None = None
) -> NDArray[np.float64]:
    """d statistical queries at once: d means of row values in 0..levels, divided by `levels` into [0, 1].

    Guarantee: epsilon-DP, exactly, if sums[j] is the sum over rows of whole values in 0..levels: one row
    moves each mean by at most 1/rows, all d of them by d/rows in L1.
    Reference: the lecture's d averages; Dwork et al. 2006.
    Cost: `events.Laplace(d*levels, d*levels/epsilon)`.
    """
    n, secret = natural("rows", rows, least=1), _vector(sums)
    noisy = laplace(secret, sensitivity=averages_sensitivity(secret.size, levels), epsilon=epsilon, bits=bits)
    return np.asarray(noisy, dtype=np.float64) / (n * levels)


def _vector(values: object) -> NDArray[np.int64]:
    secret = integers(values)
    if isinstance(secret, int) or secret.ndim != 1 or not secret.size:
        raise InputError("expected a flat list of integers with at least one entry, got another shape")
    return secret
