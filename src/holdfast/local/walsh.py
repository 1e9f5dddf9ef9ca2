"""The Walsh-Hadamard matrix: H[x, z] = +1 if x & z has an even number of ones, else -1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def odd(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each number has an odd number of ones: whether its entry of H is -1."""
    folded = numbers.copy()
    for shift in (32, 16, 8, 4, 2, 1):
        folded ^= folded >> shift
    return (folded & 1).astype(np.bool_)


def transform(vectors: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each row times H, exactly, in integers; its length K is a power of two. Cost: K log2 K additions."""
    out = vectors.copy()
    size = out.shape[-1]
    half = 1
    while half < size:
        pairs = out.reshape(*out.shape[:-1], -1, 2, half)
        upper, lower = pairs[..., 0, :].copy(), pairs[..., 1, :]
        pairs[..., 0, :] += lower
        np.subtract(upper, lower, out=lower)
        half *= 2
    return out
