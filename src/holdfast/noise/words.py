"""From uniform 64-bit words to uniform integers, without bias."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

UInt = NDArray[np.unsignedinteger[Any]]
Words = Callable[[int], NDArray[np.uint64]]

_DTYPES: dict[int, type[np.unsignedinteger[Any]]] = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_SHORT = 1 << 30
_BATCH = 1 << 15  # small enough for the intermediate arrays to stay in the cache


def chunks(words: Words, count: int, width: int) -> UInt:
    """`count` uniform `width`-bit integers, 1 <= width <= 64, in the smallest dtype that holds them.

    Cost: `width` is rounded up to 8, 16, 32 or 64 bits.
    """
    dtype = container(width)
    size = 8 * dtype().itemsize
    drawn = words(-(-count * size // 64)).view(dtype)[:count]
    if width < size:
        drawn >>= dtype(size - width)
    return drawn


def container(width: int) -> type[np.unsignedinteger[Any]]:
    """The smallest unsigned type that holds `width` bits."""
    return _DTYPES[max(8, 1 << (width - 1).bit_length())]


def below(word: Callable[[], int], n: int) -> int:
    """One uniform integer of 0..n-1, for any positive n.

    Draws the fewest bits that can hold n-1 and starts again when they show n or more, so every value keeps
    exactly the same probability. Cost: fewer than two attempts on average.
    """
    width = (n - 1).bit_length()
    if width <= 64:
        shift = 64 - width
        while width:
            value = word() >> shift
            if value < n:
                return value
        return 0
    count = -(-width // 64)
    shift = 64 * count - width
    while True:
        value = 0
        for _ in range(count):
            value = value << 64 | word()
        value >>= shift
        if value < n:
            return value


def integers_below(words: Words, n: int, count: int) -> NDArray[np.int64]:
    """`count` independent uniform integers of 0..n-1, for 1 <= n <= 2**63.

    Lemire's method: the high half of word*n is uniform once the words whose low half lies under 2**w mod n
    are thrown away, because then each value owns the same number of words.
    Reference: Lemire, Fast random integer generation in an interval, ACM TOMACS 29 (2019), Lemma 4.1.
    Cost: one 32-bit word per id and as many more as are thrown away (at most a quarter) up to n = 2**30, else
    one 64-bit word.
    """
    out = np.empty(count, dtype=np.int64)
    filled = 0
    while filled < count:
        need = min(count - filled, _BATCH)
        if n <= _SHORT:
            # Half again as many to spare as are likely to be thrown away, so that one turn is enough.
            spare = 16 + (need * ((1 << 32) % n) * 3 >> 33)
            high = narrow_lemire(chunks(words, need + spare, 32).astype(np.uint64), n, 32)[:need]
        else:
            high = wide_lemire(words(need), n)
        if high.size == count:
            return high.view(np.int64)
        out[filled : filled + high.size] = high
        filled += high.size
    return out


def narrow_lemire(drawn: NDArray[np.uint64], n: int, width: int) -> NDArray[np.uint64]:
    """The ids kept from `width`-bit words, for n <= 2**width <= 2**32. Overwrites `drawn`."""
    drawn *= np.uint64(n)
    if reject := (1 << width) % n:
        low = drawn.astype(np.uint32)
        low &= np.uint32((1 << width) - 1)
        rejected = low < np.uint32(reject)
        if np.count_nonzero(rejected):
            drawn = drawn[~rejected]
    drawn >>= np.uint64(width)
    return drawn


def wide_lemire(drawn: NDArray[np.uint64], n: int) -> NDArray[np.uint64]:
    """The ids kept from 64-bit words, for n <= 2**63."""
    factor = np.uint64(n)
    reject = (1 << 64) % n
    rejected = drawn * factor < np.uint64(reject)
    if np.count_nonzero(rejected):
        drawn = drawn[~rejected]
    return high_product(drawn, factor)


def high_product(left: NDArray[np.uint64], right: np.uint64) -> NDArray[np.uint64]:
    """floor(left*right / 2**64), from four 32-bit products so that nothing wraps."""
    left_high, left_low = left >> _HALF, left & _LOW
    right_high, right_low = right >> _HALF, right & _LOW
    middle = left_high * right_low + ((left_low * right_low) >> _HALF)
    if not right_high:
        return middle >> _HALF
    carry = (left_low * right_high + (middle & _LOW)) >> _HALF
    high: NDArray[np.uint64] = left_high * right_high + (middle >> _HALF) + carry
    return high
