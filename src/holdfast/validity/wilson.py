"""Wilson's limits for the de-biased mean of votes, and how far they can overshoot on average."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from holdfast.privacy.rounding import down

_BLOCK = 1 << 19


def wilson_low(ones: int, votes: int, flip: float, z: float) -> float:
    """Wilson's lower limit of (A/m - a)/(1-2a) at z standard deviations, given A = `ones`; may be
    negative."""
    return down_signed(float(_limits(np.array([float(ones)]), votes, flip, z)[0]))


@lru_cache(maxsize=256)
def overshoot(votes: int, flip: float, z: float) -> float:
    """An upper bound of sup over s in [0,1] of E (s_lo(A) - s)_+, A ~ Bin(m, a + (1-2a) s).

    Guarantee: rigorous between the grid points: A grows stochastically with s and s_lo grows with A, so on
    [s_i, s_{i+1}] the mean is at most E (s_lo(A) - s_i)_+ under s_{i+1}. What lies beyond the window of
    summation is bounded by the tail of the binomial law. The upper limit is its mirror image.
    Reference: docs/theorems.md, Theorem 11. Cost: O(z m), vectorised.
    """
    from scipy.special import bdtrc, gammaln, xlog1py, xlogy

    m, keep = votes, 1.0 - 2.0 * flip
    ones = np.arange(m + 1, dtype=np.float64)
    low = _limits(ones, m, flip, z)
    cells = 64 + math.ceil(8.0 * keep * z * math.sqrt(m))
    edges = np.linspace(0.0, 1.0, cells + 1)
    start = np.searchsorted(low, edges[:-1], side="right")
    window = np.arange(16 + math.ceil(3.0 * math.sqrt(m)))
    log_choose = gammaln(m + 1.0) - gammaln(ones + 1.0) - gammaln(m - ones + 1.0)
    worst = 0.0
    for first in range(0, cells, max(1, _BLOCK // len(window))):
        part = slice(first, min(cells, first + max(1, _BLOCK // len(window))))
        s, p = edges[:-1][part, None], (flip + keep * edges[1:])[part, None]
        place = start[part, None] + window[None, :]
        inside = place <= m
        place = np.minimum(place, m)
        law = np.exp(log_choose[place] + xlogy(place, p) + xlog1py(m - place, -p))
        mean = np.sum(np.where(inside, law * np.maximum(0.0, low[place] - s), 0.0), axis=1)
        last = np.minimum(start[part] + window[-1], m)
        beyond = np.where(last < m, bdtrc(np.minimum(last, m - 1), m, p[:, 0]), 0.0)
        worst = max(worst, float(np.max(mean + beyond)))
    # gammaln errs by some 1e-16 of m ln m, which the exponential turns into a relative error.
    return worst * (1.0 + 1e-6) + 1e-300


def down_signed(value: float) -> float:
    """A little below `value`, which may be negative."""
    return down(value) if value > 0.0 else math.nextafter(value * (1.0 + 2.0**-44), -math.inf)


def _limits(ones: NDArray[np.float64], votes: int, flip: float, z: float) -> NDArray[np.float64]:
    rate, square = ones / votes, z * z / votes
    root = np.sqrt(square * rate * (1.0 - rate) + square * square / 4.0)
    low: NDArray[np.float64] = ((rate + square / 2.0 - root) / (1.0 + square) - flip) / (1.0 - 2.0 * flip)
    return low
