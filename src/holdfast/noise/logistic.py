"""Comparisons with logistic noise."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

from holdfast.check import integer, rational
from holdfast.noise.bits import Bits, source
from holdfast.noise.exponential import exponential
from holdfast.noise.law import LARGEST_SCALE
from holdfast.noise.uniform_comparison import is_below

_FARTHEST = 64
"""Past this a chance is 1 up to the margin."""
_MARGIN = 2.0**-40


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
