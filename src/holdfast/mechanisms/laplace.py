"""The Laplace mechanism over the integers."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.check import exact_positive
from holdfast.mechanisms.values import Integers, integers
from holdfast.noise.bits import Bits
from holdfast.noise.laplace import laplace as draw
from holdfast.noise.laplace import laplace_vector as draw_vector


@overload
def laplace(values: int, *, sensitivity: float = 1, epsilon: float, bits: Bits | None = None) -> int: ...
@overload
def laplace(
    values: ArrayLike, *, sensitivity: float = 1, epsilon: float, bits: Bits | None = None
) -> Integers: ...
def laplace(
    values: object, *, sensitivity: float = 1, epsilon: float, bits: Bits | None = None
) -> int | NDArray[np.int64]:
    """Integers plus discrete Laplace noise of scale sensitivity/epsilon.

    Guarantee: epsilon-DP, exactly, if neighbouring inputs differ by at most `sensitivity` in L1 norm.
    Requires: integers; epsilon and sensitivity are taken as the exact fractions they are.
    Reference: Dwork, McSherry, Nissim, Smith 2006; over the integers Ghosh, Roughgarden, Sundararajan 2009.
    Cost: `events.Laplace(sensitivity, scale)`.
    """
    return add_laplace(values, scale_of(sensitivity, epsilon), bits)


def add_laplace(values: object, scale: Fraction, bits: Bits | None = None) -> Integers:
    """Integers plus discrete Laplace noise of this scale, one independent draw each."""
    secret = integers(values)
    if isinstance(secret, int):
        return secret + draw(scale, bits)
    return secret + draw_vector(scale, secret.size, bits).reshape(secret.shape)


@lru_cache(maxsize=1024, typed=True)
def scale_of(sensitivity: float, epsilon: float) -> Fraction:
    """The exact scale that makes so much sensitivity cost epsilon."""
    return exact_positive("sensitivity", sensitivity) / exact_positive("epsilon", epsilon)
