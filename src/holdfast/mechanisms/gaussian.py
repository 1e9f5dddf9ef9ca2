"""The Gaussian mechanism over the integers."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.noise.bits import Bits
from holdfast.noise.gaussian import gaussian as draw
from holdfast.noise.gaussian import gaussian_vector as draw_vector
from holdfast.mechanisms.values import ROUND_UP, Integers, integers, positive, round_down


@overload
def gaussian(values: int, *, sensitivity: float = 1, rho: float, bits: Bits | None = None) -> int: ...
@overload
def gaussian(
    values: ArrayLike, *, sensitivity: float = 1, rho: float, bits: Bits | None = None
) -> Integers: ...
def gaussian(
    values: object, *, sensitivity: float = 1, rho: float, bits: Bits | None = None
) -> int | NDArray[np.int64]:
    """Integers plus discrete Gaussian noise of variance sensitivity^2/(2 rho).

    Guarantee: rho-zCDP, exactly, if neighbouring inputs differ by at most `sensitivity` in L2 norm.
    Requires: integers; rho and sensitivity are taken as the exact fractions they are.
    Reference: Canonne, Kamath, Steinke 2020, Theorem 4, and its multivariate form.
    Cost: `events.Gaussian(sensitivity**2, variance)`.
    """
    return add_gaussian(values, _variance(sensitivity, rho), bits)


def add_gaussian(values: object, variance: Fraction, bits: Bits | None = None) -> Integers:
    """Integers plus discrete Gaussian noise of this variance parameter, one independent draw each."""
    secret = integers(values)
    if isinstance(secret, int):
        return secret + draw(variance, bits)
    return secret + draw_vector(variance, secret.size, bits).reshape(secret.shape)


@lru_cache(maxsize=1024, typed=True)
def _variance(sensitivity: float, rho: float) -> Fraction:
    return positive("sensitivity", sensitivity) ** 2 / (2 * positive("rho", rho))


def gaussian_half_width(variance: Fraction, beta: float) -> int:
    """The least certified h with Pr[|noise| > h] <= beta.

    Guarantee: Pr[|N_Z| >= h+1] <= 2 Q(h/sigma) <= beta.
    Reference: Canonne, Kamath, Steinke 2020, Proposition 25: Pr[N_Z >= m] <= Pr[N >= m-1].
    """
    return math.ceil(math.sqrt(variance) * quantile(beta / 2) * ROUND_UP)


def gaussian_variance_within(half_width: int, beta: float) -> Fraction:
    """The most noise whose `gaussian_half_width` is at most `half_width` (at least 1)."""
    sigma = half_width / (quantile(beta / 2) * ROUND_UP**2)
    return round_down(sigma * sigma)


def quantile(tail: float) -> float:
    """Q^{-1}(tail): what a standard Gaussian exceeds with probability `tail`; at least 0."""
    return max(0.0, -NormalDist().inv_cdf(tail))
