"""Votes: one randomly rounded, randomly flipped bit from each drawn row."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.check import refusal
from holdfast.noise.bits import Bits, system_bits

FLIP = Fraction(1, 4)
"""The default: two random bits and an AND."""

_FINEST = 62


def votes(values: NDArray[Any], *, flip: Fraction = FLIP, levels: int = 1, bits: Bits | None = None) -> int:
    """The number of ones among the votes of drawn rows.

    `values` has one entry a vote: a truth value, or an integer in 0..levels which stands for values/levels and
    is rounded to a random bit with that mean. Each bit is then flipped with probability `flip` = i/2^j < 1/2.

    Guarantee: if every vote comes from a row drawn uniformly and independently with replacement out of n, one
    vote is ln(1 + (1-2a)/(a n))-DP and of bounded range ln[(a+B)(1-a)/(a(1-a-B))], B = (1-2a)/n; exact, no
    float decides.
    Requires: the drawn row numbers stay secret and fresh for every vote.
    Reference: Fish, Reyzin, Rubinstein 2020, Algorithm 3; theory: docs/theorems.md, Theorem 9.
    Cost: `events.Votes(n, len(values), flip)`.
    """
    bits = system_bits() if bits is None else bits
    chosen = round_randomly(values, levels, bits)
    packed = np.packbits(chosen)
    packed ^= _flips(len(chosen), flip, bits)
    return int(np.bitwise_count(packed).sum(dtype=np.int64))


def vote(bit: bool, bits: Bits | None = None) -> bool:
    """One vote with the default flip probability of 1/4: see `votes`."""
    return bit ^ ((system_bits() if bits is None else bits).below(FLIP.denominator) < FLIP.numerator)


def round_randomly(values: NDArray[Any], levels: int, bits: Bits) -> NDArray[np.bool_]:
    """Bits with the given means values/levels, each drawn exactly and on its own."""
    if values.dtype == np.bool_:
        return values
    if levels == 1:
        return values.astype(np.bool_)
    return bits.integers_below(levels, len(values)) < values


def unbiased(ones: int, count: int, flip: Fraction) -> float:
    """What the votes say of the mean: (ones/count - a)/(1 - 2a)."""
    a = float(flip)
    return (ones / count - a) / (1 - 2 * a)


def _flips(count: int, flip: Fraction, bits: Bits) -> NDArray[Any]:
    """Packed bits, each set with probability `flip`; those beyond `count` are clear."""
    length = -(-count // 8)
    if flip is FLIP or (isinstance(flip, Fraction) and flip == FLIP):
        draws = bits.chunks(2 * length, 8)
        packed = draws[:length] & draws[length:]
        if count % 8:
            packed[-1] &= (0xFF << (8 - count % 8)) & 0xFF
        return packed
    draws = bits.chunks(count, dyadic_width(flip))
    return np.packbits(draws < np.asarray(flip.numerator, dtype=draws.dtype))


def dyadic_width(flip: Fraction) -> int:
    """j of a flip probability i/2^j in (0, 1/2); InputError for any other."""
    if not isinstance(flip, Fraction) or not 0 < flip < Fraction(1, 2):
        raise refusal("a Fraction strictly between 0 and 1/2", "flip", flip)
    width = flip.denominator.bit_length() - 1
    if flip.denominator != 2**width or width > _FINEST:
        raise refusal(f"a Fraction i/2^j with j at most {_FINEST}", "flip", flip)
    return width


def votes_deviation(count: int, flip: Fraction) -> float:
    """sigma_v = 1/(2(1-2a) sqrt(m)): the estimate's error is sub-Gaussian with it, sampling included.

    Reference: Hoeffding's lemma on m independent bits, whatever the mean.
    """
    return 1 / (2 * (1 - 2 * float(flip)) * math.sqrt(count))
