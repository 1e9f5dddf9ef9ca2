"""Rational stand-ins for e^epsilon, always on the private side.

An oracle's probabilities are functions of e^epsilon, which is irrational. Here they become multiples of
2^-96, rounded so that the loss never exceeds epsilon. Clients draw from these rationals exactly, and
estimators use the same rationals, so that nothing is biased by the rounding.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from holdfast.noise.exponential import exponential

GRID = 96
_WIDTH = 192


@lru_cache(maxsize=256)
def exp_below(epsilon: Fraction) -> Fraction:
    """A rational which is at most e^epsilon, and less than 2^-140 of it away for epsilon <= 32."""
    _, high = exponential(epsilon, _WIDTH)
    return Fraction(1 << _WIDTH, high)


def grid_floor(value: Fraction) -> Fraction:
    """The greatest multiple of 2^-96 which is at most `value`."""
    return Fraction(math.floor(value * (1 << GRID)), 1 << GRID)


def keep(epsilon: float) -> Fraction:
    """The chance that one of two is told truly."""
    return keep_one_of(exp_below(Fraction(epsilon)), 1)


def keep_one_of(odds: Fraction, others: int) -> Fraction:
    """p = odds/(odds + others), rounded down: the chance to tell the truth among `others` equal lies.

    Guarantee: p / ((1-p)/others) <= odds.
    """
    return grid_floor(odds / (odds + others))
