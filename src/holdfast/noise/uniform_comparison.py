"""Is a uniform number below a real one? Decided by as many bits as it takes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from holdfast.noise.bits import Bits

Bounds = Callable[[int], tuple[int, int]]
"""width -> integers (low, high) with low <= 2**width * x <= high, for a fixed real x of [0, 1]."""


def is_below(head: int, width: int, bounds: Bounds, bits: Bits) -> bool:
    """Whether U < x, where U is uniform on [0, 1) and `head` holds its first `width` bits.

    Guarantee: true with probability exactly x given a uniform head.
    Cost: each round draws `width` further bits and is needed with probability about 2**-width.
    """
    step = width
    while True:
        low, high = bounds(width)
        if head < low:
            return True
        if head >= high:
            return False
        head = head << step | bits.below(1 << step)
        width += step


def are_below(count: int, width: int, bounds: Bounds, bits: Bits) -> NDArray[np.bool_]:
    """`count` independent answers to U < x. `width` says how many bits of each U are looked at first.

    Guarantee: each is true with probability exactly x, whatever the width.
    """
    low, high = bounds(width)
    if low >> width or not high:
        return np.full(count, bool(high))
    heads = bits.chunks(count, width)
    out = heads < low
    if low < high:
        for i in np.flatnonzero(heads == low if high == low + 1 else (heads >= low) & (heads < high)):
            out[i] = is_below(int(heads[i]), width, bounds, bits)
    return out
