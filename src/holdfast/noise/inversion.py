"""Which cell of a partition of [0, 1) holds a uniform number, decided by as many bits as it takes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.noise.bits import Bits


@dataclass(frozen=True, slots=True)
class Cumulative:
    """Integer brackets of the running sums of weights, all in the same unit.

    low[i] <= w_0 + ... + w_i <= high[i] and total_low <= sum of all weights <= total_high. The lists may end
    before the weights do.
    """

    low: Sequence[int]
    high: Sequence[int]
    total_low: int
    total_high: int


def invert(head: int, width: int, cumulative: Callable[[int], Cumulative], bits: Bits) -> int:
    """The index i whose cell [C(i-1), C(i)) holds U; C is the running sum over the total.

    `head` holds the first `width` bits of U. `cumulative(width)` brackets the sums so tightly that the
    quotients are known to about 2**-width.
    Guarantee: given a uniform head, i comes out with probability exactly w_i over the total.
    Cost: one evaluation of `cumulative` a round; each round draws `width` further bits.
    """
    step = width
    while True:
        head = head << step | bits.below(1 << step)
        width += step
        sums = cumulative(width)
        i = bisect_left(sums.low, -(-(head + 1) * sums.total_high >> width))
        if i < len(sums.low) and (i == 0 or sums.high[i - 1] << width <= head * sums.total_low):
            return i
