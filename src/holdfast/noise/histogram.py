"""Rejection under a histogram: one exact, fast sampler for every `Law`.

The integers are cut into blocks of `step` = 2**shift. A proposal takes a block from a `Table`, then a member
of it uniformly, and keeps it with probability exp(-(g(member) - g(edge))), at most 1 because the edge is the
member nearest to 0. For small scales a block is one integer and everything is kept.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from holdfast.noise.bits import Bits
from holdfast.noise.comparison import is_below
from holdfast.noise.exponential import exponential
from holdfast.noise.law import Law
from holdfast.noise.table import Table

_BATCH = 1 << 15


class Histogram:
    """An exact sampler of one law. Immutable, so threads may share it.

    Guarantee: every draw has exactly the law if the bits are uniform, whatever the sizes below.
    Requires: 1 <= guide < width <= 64, blocks < 2**15, 1 <= gate < fraction <= 30.
    Reference: Devroye, Non-uniform random variate generation (1986), II.3 (rejection).
    Cost: 2 to 4 ns a draw while blocks are single integers, about 12 ns above. Less than 3% are rejected at
    the default sizes. The time of a draw does not depend on its value except through the undecided few.
    """

    __slots__ = (
        "_first",
        "_fraction",
        "_gate",
        "_gate_limit",
        "_slope_high",
        "_slope_low",
        "_table",
        "law",
        "shift",
    )

    def __init__(
        self,
        law: Law,
        *,
        width: int = 64,
        guide: int = 16,
        blocks: int = 4096,
        gate: int = 16,
        fraction: int = 30,
    ) -> None:
        self.law = law
        self._gate = gate
        self._fraction = fraction
        sides = 1 + law.two_sided
        reach = law.reach(width)
        self.shift = max(0, -(-reach * sides // blocks) - 1).bit_length()
        step = 1 << self.shift
        count = sides * -(-reach // step)
        self._table = Table(law, step, count, width=width, guide=guide)
        self._first = np.array([self._first_member(i) for i in range(count)], dtype=np.int64)
        self._bound_slopes(count, step)

    def draw(self, count: int, bits: Bits) -> NDArray[np.int64]:
        """`count` independent samples."""
        out = np.empty(count, dtype=np.int64)
        filled = 0
        while filled < count:
            need = min(count - filled, _BATCH)
            # Some spare proposals save a second round. They are independent of the values, so is what is cut.
            kept = self._propose(need + (need >> 5 if self.shift else 0), bits)[:need]
            out[filled : filled + kept.size] = kept
            filled += kept.size
        return out

    def _propose(self, count: int, bits: Bits) -> NDArray[np.int64]:
        blocks = self._table.pick(count, bits)
        drawn = self._first.take(blocks, mode="clip")
        beyond = np.flatnonzero(blocks >= self._first.size)
        for i in beyond:
            drawn[i] = self._first_member(int(blocks[i]))
        if not self.shift:
            return drawn
        drawn += bits.chunks(count, self.shift).astype(np.int64)
        gates = bits.chunks(count, self._gate)
        doubtful = gates >= self._gate_limit
        doubtful[beyond] = True
        closer = np.flatnonzero(doubtful)
        if not closer.size:
            return drawn
        kept = np.ones(count, dtype=np.bool_)
        kept[closer] = self._keep(drawn[closer], blocks[closer], gates[closer].astype(np.int64), bits)
        return drawn[kept]

    def _keep(
        self, drawn: NDArray[np.int64], blocks: NDArray[np.int64], gates: NDArray[np.int64], bits: Bits
    ) -> NDArray[np.bool_]:
        """Whether each proposal stays, given the first bits of its uniform number.

        All numbers count units of 2**-fraction. With k the place in the block, the loss g(member) - g(edge)
        lies between k times the first increment and k times the mean one (g is convex), and
        1 - x + x^2/2 - x^3/6 <= exp(-x) <= 1 - x + x^2/2.
        """
        f = self._fraction
        more = bits.chunks(drawn.size, f - self._gate).astype(np.int64)
        numbers = gates << (f - self._gate) | more
        place = self._place(drawn)
        if self.shift <= f:
            part_low = part_high = place << (f - self.shift)
        else:
            part_low = place >> (self.shift - f)
            part_high = part_low + 1
        slope_high = self._slope_high.take(blocks, mode="clip")
        low = part_low * self._slope_low.take(blocks, mode="clip") >> f
        high = (part_high * slope_high >> f) + 1
        one = 1 << f
        most = one - low + (low * low >> (f + 1)) + 1
        square = high * high >> f
        least = one - high + (square >> 1) - (square * high >> f) // 6 - 2
        kept: NDArray[np.bool_] = numbers < least
        kept &= slope_high < one
        for i in np.flatnonzero(~kept & (numbers < most)):
            kept[i] = self._keep_exactly(int(drawn[i]), int(numbers[i]), bits)
        return kept

    def _keep_exactly(self, x: int, number: int, bits: Bits) -> bool:
        away = abs(x)
        edge = away - ((away - (x < 0)) & ((1 << self.shift) - 1))
        loss = Fraction(self.law.rise(edge, away - edge), self.law.denominator)
        return is_below(number, self._fraction, partial(exponential, loss), bits)

    def _place(self, drawn: NDArray[np.int64]) -> NDArray[np.int64]:
        """How far each number is from the edge of its block; negative blocks start at -1."""
        return (np.abs(drawn) - (drawn < 0)) & ((1 << self.shift) - 1)

    def _first_member(self, block: int) -> int:
        """The least member of a block."""
        edge = self.law.edge(block, 1 << self.shift)
        if self.law.two_sided and block & 1:
            return -(edge + (1 << self.shift) - 1)
        return edge

    def _bound_slopes(self, blocks: int, step: int) -> None:
        """What a whole block loses at its first and at its mean increment, rounded outwards.

        A loss of 1 or more is written as 1 and read as unknown; so is the entry past the last block.
        """
        law, f = self.law, self._fraction
        one = 1 << f
        edges = [law.edge(i, step) for i in range(blocks if self.shift else 0)]
        low = [min(one, (step * law.rise(e, 1) << f) // law.denominator) for e in edges]
        high = [min(one, (law.rise(e, step) << f) // law.denominator + 1) for e in edges]
        self._slope_low = np.array([*low, 0], dtype=np.int64)
        self._slope_high = np.array([*high, one], dtype=np.int64)
        worst = Fraction(max(high, default=0), one)
        self._gate_limit = exponential(worst, self._gate)[0] if worst < 1 else 0
