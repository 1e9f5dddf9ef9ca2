"""The square root of the prefix-sum matrix, and what it costs on the integers.

Let A be the T x T lower triangle of ones, so that Ax are the running totals of a stream x, and L the lower
triangular Toeplitz matrix with entries f(k), f(0) = 1, f(k) = (1 - 1/(2k)) f(k-1). Then A = L*L. The matrix
mechanism releases L(Lx + z) = Ax + Lz: running totals with correlated noise. We release, on a grid of g steps
to a unit,

    o_t = g*(Ax)_t + N_t,   N_t = z_t + floor(1/2 + sum over k >= 1 of F(k) z_{t-k} / 2^s),   F(k) ~ 2^s f(k),

with z one vector of independent discrete Gaussians of variance v. All of it is whole numbers.

Privacy (derived for Holdfast, docs/stream.md). Given the stream, o and z determine each other, one entry
after the other. For a neighbouring stream the same o comes from z - d, where d_t depends on z_1..z_{t-1}
only, is whole, and (L + E) d = g A(x' - x) + e with |E(k)| <= 2^-s and |e_t| <= 1 for the two roundings. The
inverse of L has l1 norm at most 2, so with u = 2T/2^s

    |d|_2 <= (g * largest * sqrt(sum f(k)^2) + 2 sqrt(T)) / (1 - u) = D   on every path,

and adaptive composition of discrete Gaussians with sum d_t^2 <= D^2 is D^2/(2v)-zCDP.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from holdfast.query.running import root_coefficients

SHIFT = 30
LONGEST = 1 << 21
_FINENESS = 8
_SAFE = 1 + 2.0**-30
"""Covers the float sums below: each of T terms errs by T*2^-52 relatively, T <= 2^21."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Public facts of a counter by square roots: grid steps to a unit, and the squared L2 sensitivity D^2."""

    steps: int
    sensitivity_squared: int

    @staticmethod
    def of(horizon: int, largest: int) -> Grid:
        """The grid on which rounding adds less than one percent to the noise."""
        root = math.isqrt(horizon - 1) + 1
        g = 1 << max(0, ((root << _FINENESS) // largest).bit_length())
        D = g * largest * math.sqrt(norm_squared(horizon)) + 2 * math.sqrt(horizon)
        D *= _SAFE / (1 - 2 * horizon * 2.0**-SHIFT)
        return Grid(g, math.ceil(Fraction(D) ** 2))


def scaled(count: int) -> NDArray[np.int64]:
    """F(k), the nearest whole number to 2^30 f(k)."""
    return np.rint(root_coefficients(count) * 2.0**SHIFT).astype(np.int64)


@lru_cache(maxsize=64)
def norm_squared(count: int) -> float:
    """The sum of f(k)^2 over k < count: about (ln(count) + 3.35)/pi.

    A printed bound, 1 - (1-gamma)/pi + ln(T)/pi + 2/T, is smaller than this at every T above 6 (4.40 against
    4.60 at T = 2^16) and so is none; this is the sum itself.
    """
    return float(np.sum(root_coefficients(count) ** 2))
