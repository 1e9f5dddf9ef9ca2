"""Coins of probability p/q."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from holdfast.check import integer, rational
from holdfast.noise.bits import Bits, source
from holdfast.noise.uniform_comparison import are_below


def bernoulli(probability: Fraction | int, bits: Bits | None = None) -> bool:
    """True with the given probability, exactly. Cost: one uniform integer below its denominator."""
    p = rational("probability", probability, most=1)
    return source(bits).below(p.denominator) < p.numerator


def bernoulli_vector(
    probability: Fraction | int, count: int, bits: Bits | None = None, *, width: int | None = None
) -> NDArray[np.bool_]:
    """`count` independent coins, each true with the given probability, exactly.

    `width` is how many bits of a coin are looked at first: it moves time, not the law.
    Cost: about a nanosecond a coin; one or two bytes of randomness.
    """
    p = rational("probability", probability, most=1)
    if width is None:
        width = 8 if 256 % p.denominator == 0 else 16
    width = integer("width", width, most=64)
    return are_below(integer("count", count, 0), width, partial(_quotient, p), source(bits))


def _quotient(p: Fraction, width: int) -> tuple[int, int]:
    low, rest = divmod(p.numerator << width, p.denominator)
    return low, low + bool(rest)
