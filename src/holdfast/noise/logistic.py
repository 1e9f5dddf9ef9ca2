"""Logistic noise: on the integers, and in comparisons."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from holdfast.check import integer, rational
from holdfast.noise.bits import Bits, source
from holdfast.noise.exponential import exponential
from holdfast.noise.laplace import laplace_vector
from holdfast.noise.law import LARGEST_SCALE
from holdfast.noise.uniform_comparison import is_below

_FARTHEST = 64
"""Past this a chance is 1 up to the margin."""
_MARGIN = 2.0**-40
_SPARE = 2
"""So many Laplace draws more than are likely to be needed are made, which is quicker than to come again."""


def logistic(scale: Fraction | int, bits: Bits | None = None) -> int:
    """An integer x with probability proportional to 1/cosh(x/(2 scale))^2.

    Guarantee: exactly that law for the rational scale given. Added to an integer of sensitivity D it is
    (D/scale)-differentially private, and D^2/(4 scale^2)-zCDP.
    Requires: 0 < scale <= 2**52.
    Reference: docs/theorems.md, Theorem 100.
    Cost: some tens of microseconds.
    """
    return int(logistic_vector(scale, 1, bits)[0])


def logistic_vector(scale: Fraction | int, count: int, bits: Bits | None = None) -> NDArray[np.int64]:
    """`count` independent draws of `logistic(scale)`: Laplace draws x, of which 1/(1 + exp(-|x|/scale))^2 are kept."""
    s = rational("scale", scale, positive=True, most=LARGEST_SCALE)
    found = np.empty(integer("count", count, 0), dtype=np.int64)
    filled = 0
    while filled < found.size:
        drawn = laplace_vector(s, 2 * (found.size - filled) + _SPARE, bits)
        kept = drawn[_kept(drawn, s, source(bits))][: found.size - filled]
        found[filled : filled + kept.size] = kept
        filled += kept.size
    return found


def _kept(drawn: NDArray[np.int64], scale: Fraction, bits: Bits, width: int = 32) -> NDArray[np.bool_]:
    """Whether each draw x stays: with probability 1/(1 + exp(-|x|/scale))^2. Floats only filter, as in `exceeds`."""
    heads = bits.chunks(drawn.size, width)
    rate = float(min(1 / scale, Fraction(1 << 60)))  # beyond, only 0 is not far
    chances = 2.0**width / (1 + np.exp(-np.abs(drawn) * rate)) ** 2
    kept: NDArray[np.bool_] = heads + 1.0 <= chances * (1 - _MARGIN)
    for i in np.flatnonzero(~kept & (heads < chances * (1 + _MARGIN))):
        bounds = partial(_square_bounds, abs(int(drawn[i])) / scale)
        kept[i] = is_below(int(heads[i]), width, bounds, bits)
    return kept


def exceeds(distance: int, scale: Fraction | int, bits: Bits | None = None, *, width: int = 64) -> bool:
    """Whether distance + Logistic(scale) > 0: true with probability 1/(1 + exp(-distance/scale)).

    Guarantee: exactly that law, for a whole distance and a rational scale; the noise itself is never drawn. Floats
    only filter: a chance computed in floating point carries a margin of 2**-40 (its error is below 2**-45), and what
    the margin leaves open is settled by integer arithmetic. `width` bits are looked at first: that moves time, not
    the law.
    Requires: 0 < scale <= 2**52.
    Cost: a few microseconds.
    """
    s = rational("scale", scale, positive=True, most=LARGEST_SCALE)
    width, bits = integer("width", width, most=64), source(bits)
    head, far = bits.below(1 << width), abs(distance) * s.denominator
    chance = 2.0**width / (1 + math.exp(-far / s.numerator)) if far < _FARTHEST * s.numerator else 2.0**width
    if head + 1 <= chance * (1 - _MARGIN):
        likely = True
    elif head >= chance * (1 + _MARGIN):
        likely = False
    else:
        likely = is_below(head, width, partial(_bounds, abs(distance) / s), bits)
    return likely == (distance >= 0)


def _bounds(rate: Fraction, width: int) -> tuple[int, int]:
    """Integers (low, high) with low <= 2^width/(1 + exp(-rate)) <= high."""
    precision = width + 8
    low, high = exponential(rate, precision)
    one = 1 << precision
    return (one << width) // (one + high), -((-one << width) // (one + low))


def _square_bounds(rate: Fraction, width: int) -> tuple[int, int]:
    """Integers (low, high) with low <= 2^width/(1 + exp(-rate))^2 <= high."""
    precision = width + 8
    low, high = exponential(rate, precision)
    one = 1 << precision
    top = one * one << width
    return top // (one + high) ** 2, -(-top // (one + low) ** 2)
