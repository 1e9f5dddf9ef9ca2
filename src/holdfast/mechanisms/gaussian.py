"""The Gaussian mechanism over the integers."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.check import exact_positive
from holdfast.mechanisms.values import Integers, integers
from holdfast.noise.bits import Bits
from holdfast.noise.gaussian import gaussian as draw
from holdfast.noise.gaussian import gaussian_vector as draw_vector


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
    return exact_positive("sensitivity", sensitivity) ** 2 / (2 * exact_positive("rho", rho))
