"""The coins that clients throw. All randomness of the oracles passes through here."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.noise.bernoulli import bernoulli_vector
from holdfast.noise.bits import Bits


def coins(probability: Fraction, count: int, bits: Bits) -> NDArray[np.bool_]:
    """`count` independent coins, each heads with exactly this probability."""
    return bernoulli_vector(probability, count, bits)


def others(values: NDArray[np.int64], domain: int, bits: Bits) -> NDArray[np.int64]:
    """For each value, a uniform one among the other domain-1."""
    drawn = bits.integers_below(domain - 1, values.size)
    drawn += drawn >= values
    return drawn


def truth_or_other(values: NDArray[np.int64], domain: int, p: Fraction, bits: Bits) -> NDArray[np.int64]:
    """k-ary randomized response: the value with probability p, else a uniform other one.

    Both are drawn for everybody, so that time does not tell who lied.
    """
    told = coins(p, values.size, bits)
    return np.where(told, values, others(values, domain, bits))
