"""The geometric law on 0, 1, 2, ..."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.check import integer, rational, refusal
from holdfast.noise.bits import Bits
from holdfast.noise.kept_draws import DrawCache
from holdfast.noise.law import LARGEST_SCALE, Law


def _law(rate: Fraction | int) -> Law:
    r = rational("rate", rate, positive=True)
    if r * LARGEST_SCALE < 1:
        raise refusal("at least 2**-52", "rate", rate, "such draws would not fit into 64 bits")
    return Law.of(r, Fraction(0), two_sided=False)


_cache = DrawCache(_law)


def geometric(rate: Fraction | int, bits: Bits | None = None) -> int:
    """An integer x >= 0 with probability proportional to exp(-rate*x).

    Guarantee: exactly that law for the rational rate given.
    Requires: rate >= 2**-52.
    Cost: below a microsecond for a rate in use, under a millisecond for a new one.
    """
    return _cache.of(rate).one(bits)


def geometric_vector(rate: Fraction | int, count: int, bits: Bits | None = None) -> NDArray[np.int64]:
    """`count` independent draws of `geometric(rate)`. Cost: some nanoseconds a draw."""
    return _cache.of(rate).many(integer("count", count, 0), bits)
