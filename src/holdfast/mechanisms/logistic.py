"""The logistic mechanism over the integers."""

from __future__ import annotations

from fractions import Fraction
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.mechanisms.laplace import scale_of
from holdfast.mechanisms.values import Integers, integers
from holdfast.noise.bits import Bits
from holdfast.noise.logistic import logistic as draw
from holdfast.noise.logistic import logistic_vector as draw_vector


@overload
def logistic(values: int, *, sensitivity: float = 1, epsilon: float, bits: Bits | None = None) -> int: ...
@overload
def logistic(
    values: ArrayLike, *, sensitivity: float = 1, epsilon: float, bits: Bits | None = None
) -> Integers: ...
def logistic(
    values: object, *, sensitivity: float = 1, epsilon: float, bits: Bits | None = None
) -> int | NDArray[np.int64]:
    """Integers plus discrete logistic noise of scale sensitivity/epsilon.

    Guarantee: epsilon-DP, exactly, if neighbouring inputs differ by at most `sensitivity` in L1 norm. Unlike Laplace
    noise it is smooth: what it tells of the population is bounded by the leave-out theorem, and it is epsilon^2/4-zCDP.
    Requires: integers; epsilon and sensitivity are taken as the exact fractions they are.
    Reference: docs/theorems.md, Theorems 100 and 101.
    Cost: `events.Logistic(sensitivity, sensitivity**2, scale)`.
    """
    return add_logistic(values, scale_of(sensitivity, epsilon), bits)


def add_logistic(values: object, scale: Fraction, bits: Bits | None = None) -> Integers:
    """Integers plus discrete logistic noise of this scale, one independent draw each."""
    secret = integers(values)
    if isinstance(secret, int):
        return secret + draw(scale, bits)
    return secret + draw_vector(scale, secret.size, bits).reshape(secret.shape)
