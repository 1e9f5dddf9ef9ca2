"""Keeping a proposal with probability exp(-(g(x) - g(edge of its block)))."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from holdfast.noise.bits import Bits
from holdfast.noise.exponential import exponential
from holdfast.noise.law import Law
from holdfast.noise.uniform_comparison import is_below


class Rejection:
    """The second half of `Histogram`: thins the members of blocks of 2**shift integers to their true weights.

    A uniform number is compared with exp(-loss) in three steps, each for the few that the one before leaves
    open: its first `gate` bits against the worst loss of all blocks; `fraction` bits against integer bounds
    of this loss; then exactly, by `is_below`.
    Guarantee: keeps x with probability exactly exp(-(g(|x|) - g(edge))) if the bits are uniform. Immutable.
    Requires: shift >= 1, 1 <= gate < fraction <= 30.
    """

    __slots__ = ("_fraction", "_gate", "_gate_limit", "_mask", "_shift", "_slope_high", "_slope_low", "law")

    def __init__(self, law: Law, shift: int, blocks: int, *, gate: int = 16, fraction: int = 30) -> None:
        self.law = law
        self._shift = shift
        self._mask = (1 << shift) - 1
        self._gate = gate
        self._fraction = fraction
        # What a whole block loses at its first and at its mean increment, rounded outwards. A loss of 1 or
        # more is written as 1 and read as unknown; so is the entry past the last block.
        one = 1 << fraction
        edges = [law.edge(i, 1 << shift) for i in range(blocks)]
        low = [min(one, (law.rise(e, 1) << (fraction + shift)) // law.denominator) for e in edges]
        high = [min(one, (law.rise(e, 1 << shift) << fraction) // law.denominator + 1) for e in edges]
        self._slope_low = np.array([*low, 0], dtype=np.int64)
        self._slope_high = np.array([*high, one], dtype=np.int64)
        worst = max(high)
        self._gate_limit = exponential(Fraction(worst, one), gate)[0] if worst < one else 0

    def keep(self, drawn: NDArray[np.int64], blocks: NDArray[np.int64], bits: Bits) -> NDArray[np.bool_]:
        """Whether each proposal stays; `blocks` says where it came from."""
        gates = bits.chunks(drawn.size, self._gate)
        closer = np.flatnonzero((gates >= self._gate_limit) | (blocks >= self._slope_low.size - 1))
        kept = np.ones(drawn.size, dtype=np.bool_)
        if closer.size:
            heads = gates[closer].astype(np.int64)
            kept[closer] = self._look_closer(drawn[closer], blocks[closer], heads, bits)
        return kept

    def _look_closer(
        self, drawn: NDArray[np.int64], blocks: NDArray[np.int64], heads: NDArray[np.int64], bits: Bits
    ) -> NDArray[np.bool_]:
        """All numbers count units of 2**-fraction.

        With k the place in the block, the loss lies between k times the first increment and k times the mean
        one, because g is convex; and 1 - x + x^2/2 - x^3/6 <= exp(-x) <= 1 - x + x^2/2.
        """
        f = self._fraction
        numbers = heads << (f - self._gate) | bits.chunks(drawn.size, f - self._gate).astype(np.int64)
        place = (np.abs(drawn) - (drawn < 0)) & self._mask
        if self._shift <= f:
            part_low = part_high = place << (f - self._shift)
        else:
            part_low = place >> (self._shift - f)
            part_high = part_low + 1
        slope_high = self._slope_high.take(blocks, mode="clip")
        low = part_low * self._slope_low.take(blocks, mode="clip") >> f
        high = (part_high * slope_high >> f) + 1
        one = 1 << f
        most = one - low + (low * low >> (f + 1)) + 1
        square = high * high >> f
        least = one - high + (square >> 1) - (square * high >> f) // 6 - 2
        kept: NDArray[np.bool_] = (numbers < least) & (slope_high < one)
        for i in np.flatnonzero(~kept & (numbers < most)):
            kept[i] = self._decide(int(drawn[i]), int(numbers[i]), bits)
        return kept

    def _decide(self, x: int, number: int, bits: Bits) -> bool:
        """The exact comparison. Negative blocks start at -1, so their members are counted from there."""
        place = (abs(x) - (x < 0)) & self._mask
        loss = Fraction(self.law.rise(abs(x) - place, place), self.law.denominator)
        return is_below(number, self._fraction, partial(exponential, loss), bits)
