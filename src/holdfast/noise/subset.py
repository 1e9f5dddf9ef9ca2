"""Uniform row ids, with and without replacement."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.check import integer
from holdfast.noise.bits import Bits, source


def with_replacement(n: int, count: int, bits: Bits | None = None) -> NDArray[np.int64]:
    """`count` independent uniform ids of 0..n-1. Cost: O(count), two nanoseconds an id."""
    n = integer("n", n, most=1 << 63)
    return source(bits).integers_below(n, integer("count", count, 0))


def without_replacement(n: int, count: int, bits: Bits | None = None) -> NDArray[np.int64]:
    """`count` distinct ids of 0..n-1, all ordered selections equally likely. Refuses count > n.

    Cost: O(count) whatever n is, up to a sort when more than half of the ids are wanted.
    """
    n = integer("n", n, most=1 << 63)
    count = integer("count", count, 0, n)
    bits = source(bits)
    if 2 * count > n:
        return _shuffled(n, bits)[:count]
    kept = np.empty(0, dtype=np.int64)
    while kept.size < count:
        missing = count - kept.size
        # As many spare ids as repeats are likely. What is kept depends on which draws are equal, never on
        # their values, so all orders and all selections stay equally likely.
        fresh = bits.integers_below(n, missing + missing * count // n)
        kept = _last_of_each(np.concatenate([kept, fresh]))
    return kept[:count]


def _shuffled(n: int, bits: Bits, width: int = 64) -> NDArray[np.int64]:
    """A uniform permutation of 0..n-1: the order of independent keys, drawn again if two are equal."""
    while True:
        keys = bits.chunks(n, width)
        order = np.argsort(keys)
        ranked = keys[order]
        if not (ranked[1:] == ranked[:-1]).any():
            return order


def _last_of_each(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each value once, at its last place, in order of place.

    Ids are thrown into buckets; the last one in a bucket stays, its equals go, and the others meet again.
    Cost: O(size) expected for ids that are uniform, because most are alone in their bucket.
    """
    buckets = 1 << (2 * ids.size).bit_length()
    holder: NDArray[np.signedinteger[Any]] = np.empty(buckets, dtype=np.int64 if ids.size >> 31 else np.int32)
    keep = np.ones(ids.size, dtype=np.bool_)
    places = np.arange(ids.size, dtype=holder.dtype)
    values = ids
    while places.size:
        bucket = values & (buckets - 1)
        holder[bucket] = places  # of equal indices the last assignment stands
        holders = holder.take(bucket)
        lost = np.flatnonzero(holders != places)
        places, values = places.take(lost), values.take(lost)
        repeated = ids.take(holders.take(lost)) == values
        keep[places[repeated]] = False
        places, values = places[~repeated], values[~repeated]
    return ids[keep]
