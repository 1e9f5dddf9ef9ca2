"""A noisy pair of columns without most of its noise: what stands out beside independent columns is of low rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def denoised(pair: Array, first: Array, second: Array, deviation: float) -> Array:
    """The counts of a pair: those of independent columns, and the singular values that stand out beside them.

    A function of released numbers, the counts of the columns by themselves among them. How columns hang together has a
    few large singular values; white noise has many, each below `deviation` (sqrt(rows) + sqrt(columns)). What is beyond
    that is kept, less what the noise has added to it: the best in squared error, among all functions of the singular
    values, as the sides grow.
    Reference: Gavish and Donoho 2017, Optimal Shrinkage of Singular Values, equation 7 (Frobenius loss).
    """
    even = np.outer(first, second) / max(float(second.sum()), 1.0)
    away = pair - even
    away = away - away.mean(axis=0) - away.mean(axis=1, keepdims=True) + away.mean()
    short, long = sorted(size - 1 for size in pair.shape)
    if not short:
        return even
    left, values, right = np.linalg.svd(away, full_matrices=False)
    unit = deviation * np.sqrt(long)
    sizes, part = values / unit, short / long
    inner = np.maximum((sizes**2 - part - 1) ** 2 - 4 * part, 0.0)
    kept = np.where(sizes > 1 + np.sqrt(part), np.sqrt(inner) / np.maximum(sizes, 1.0), 0.0)
    return np.asarray(even + (left * (kept * unit)) @ right)
