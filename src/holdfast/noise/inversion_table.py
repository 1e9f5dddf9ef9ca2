"""Picking a block of integers by inversion, fast where rounding allows and exactly where it does not.

The first bits of a uniform number look into a guide, which holds the block wherever these bits settle it.
Otherwise more bits are compared with rounded thresholds; and the few numbers that fall on a threshold, or
past the last one, are settled by `invert`, with exact brackets and further bits.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from holdfast.noise.bits import Bits
from holdfast.noise.inversion import invert
from holdfast.noise.law import Law

_UNSURE = -1


class InversionTable:
    """Picks block i with probability proportional to exp(-g(edge of i)), for one law and one block size.

    Guarantee: every pick has exactly that law if the bits are uniform, whatever the sizes. Immutable.
    Requires: 1 <= guide < width <= 64, blocks < 2**15.
    Reference: Devroye, Non-uniform random variate generation (1986), III.2 (inversion with guide tables).
    Cost: to build, about a microsecond a block. To pick, `guide` bits and two nanoseconds; a share of about
    blocks/2**guide needs `width` bits, and a share of about blocks/2**width the exact path.
    """

    __slots__ = ("_extra", "_guide", "_guide_width", "_thresholds", "blocks", "law", "step", "width")

    def __init__(self, law: Law, step: int, blocks: int, *, width: int = 64, guide: int = 16) -> None:
        self.law = law
        self.step = step
        self.width = width
        self._guide_width = guide
        self._extra = width - guide
        self._thresholds = _thresholds(law, step, blocks, width)
        self.blocks = self._thresholds.size
        self._guide = self._fill_guide()

    def pick(self, count: int, bits: Bits) -> NDArray[np.int64]:
        """`count` independent blocks; most lie below `blocks`, none needs to."""
        heads = bits.chunks(count, self._guide_width)
        picked = self._guide.take(heads)
        unsure = np.flatnonzero(picked < 0)
        out = picked.astype(np.int64)
        if unsure.size:
            out[unsure] = self._look_closer(heads[unsure], bits)
        return out

    def _look_closer(self, heads: NDArray[np.unsignedinteger], bits: Bits) -> NDArray[np.int64]:
        numbers = heads.astype(np.uint64) << np.uint64(self._extra)
        numbers |= bits.chunks(heads.size, self._extra).astype(np.uint64)
        blocks = np.searchsorted(self._thresholds, numbers, side="right")
        past = blocks == self.blocks
        # A threshold t stands for a real number in [t, t+2), so t and t+1 do not know their side of it.
        on_threshold = (blocks > 0) & (numbers - self._thresholds[blocks - 1] < 2)
        for i in np.flatnonzero(past | on_threshold):
            blocks[i] = invert(int(numbers[i]), self.width, partial(self.law.cumulative, self.step), bits)
        return blocks

    def _fill_guide(self) -> NDArray[np.int16]:
        shift = np.uint64(self._extra)
        size = 1 << self._guide_width
        bucket = (self._thresholds >> shift).astype(np.int64)
        ends_here = np.bincount(bucket, minlength=size)
        guide = (np.cumsum(ends_here) - ends_here).astype(np.int16)
        guide[bucket] = _UNSURE
        last = np.uint64((1 << self.width) - 1)
        guide[(np.minimum(self._thresholds, last - np.uint64(1)) + np.uint64(1)) >> shift] = _UNSURE
        guide[guide == self.blocks] = _UNSURE
        return guide


def _thresholds(law: Law, step: int, blocks: int, width: int) -> NDArray[np.uint64]:
    """t_i with t_i <= 2**width * C_i < t_i + 2, where C_i is the chance of a block up to i.

    There are fewer than `blocks` where the weights run out before.
    """
    precision = width
    while True:
        sums = law.cumulative(step, precision)
        # Two divisions in all: the products below err on the same sides as the quotients would.
        scale = sums.total_high.bit_length() + width + 32
        down = (1 << scale) // sums.total_high
        up = (1 << scale) // sums.total_low + 1
        drop = scale - width
        low = [s * down >> drop for s in sums.low[:blocks]]
        high = [s * up >> drop for s in sums.high[:blocks]]
        if all(h - t <= 1 for t, h in zip(low, high, strict=True)):
            return np.array(low, dtype=np.uint64)
        precision += 32
