"""Uniform row ids, with and without replacement."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.noise.bits import Bits, system_bits
from holdfast.noise.parameter import natural


def with_replacement(n: int, count: int, bits: Bits | None = None) -> NDArray[np.int64]:
    """`count` independent uniform ids of 0..n-1. Cost: O(count), two nanoseconds an id."""
    natural("n", n, least=1, most=1 << 63)
    return (system_bits() if bits is None else bits).integers_below(n, natural("count", count))


def without_replacement(n: int, count: int, bits: Bits | None = None) -> NDArray[np.int64]:
    """`count` distinct ids of 0..n-1, all ordered selections equally likely. Refuses count > n.

    Cost: O(count) whatever n is, up to a sort when more than half of the ids are wanted.
    """
    natural("n", n, least=1, most=1 << 63)
    natural("count", count, most=n)
    bits = system_bits() if bits is None else bits
    if 2 * count > n:
        return _shuffled(n, bits)[:count]
    kept = np.empty(0, dtype=np.int64)
    while kept.size < count:
        missing = count - kept.size
        # What is kept depends on which draws are equal, not on their values, so the order stays uniform.
        kept = _distinct(np.concatenate([kept, bits.integers_below(n, missing)]), n)
    return kept


def _shuffled(n: int, bits: Bits, width: int = 64) -> NDArray[np.int64]:
    """A uniform permutation of 0..n-1: the order of independent keys, drawn again if two are equal."""
    while True:
        keys = bits.chunks(n, width)
        order = np.argsort(keys)
        ranked = keys[order]
        if not (ranked[1:] == ranked[:-1]).any():
            return order


def _distinct(ids: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """One of each value, in order of place. Linear time: the losers of a bucket meet in the next round."""
    buckets = min(n, 1 << (4 * ids.size).bit_length())
    keep = np.zeros(ids.size, dtype=np.bool_)
    open_places = np.arange(ids.size)
    winner = np.empty(buckets, dtype=np.int64)
    while open_places.size:
        values = ids[open_places]
        bucket = values % buckets
        winner[bucket] = open_places
        winners = winner[bucket]
        won = winners == open_places
        keep[open_places[won]] = True
        open_places = open_places[~won & (ids[winners] != values)]
    return ids[keep]
