"""Hash functions x -> top bits of a*x + b, whose collisions are exactly as rare as they should be.

Guarantee: for uniform a and b, the top 16 bits of a*x + b and a*y + b are two independent uniform numbers,
whenever x and y differ and both have at most 32 - 15 = 17 bits (32-bit words) or 49 bits (64-bit words).
Reference: Dietzfelbinger 1996; Thorup, High speed hashing for integers and strings (2015), section 3.3.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.noise.bits import Bits

TOP = 16
LARGEST_DOMAIN = 1 << 48
_NARROW_DOMAIN = 1 << 16

UInt = NDArray[np.unsignedinteger[Any]]


def word_bits(domain: int) -> int:
    """How wide the words must be for this many keys."""
    return 32 if domain <= _NARROW_DOMAIN else 64


def draw_words(domain: int, count: int, bits: Bits) -> UInt:
    """`count` uniform words, for a or b."""
    return bits.chunks(count, word_bits(domain))


def public_words(seed: int, count: int) -> NDArray[np.uint64]:
    """`count` 64-bit words that everybody can compute from the public seed; two make a hash function."""
    stream = hashlib.shake_256(b"holdfast hash functions " + str(seed).encode()).digest(8 * count)
    return np.frombuffer(stream, dtype="<u8").astype(np.uint64)


def top_bits(a: UInt, b: UInt, keys: NDArray[np.int64], top: int = TOP) -> NDArray[np.int64]:
    """The first `top` bits of a*key + b, modulo the word."""
    mixed = a * keys.astype(a.dtype) + b
    return (mixed >> mixed.dtype.type(8 * mixed.itemsize - top)).astype(np.int64)


def bucket_edges(buckets: int) -> NDArray[np.int64]:
    """Where each bucket starts among the 2^16 hash values, ceil(r 2^16/buckets), and 2^16 at the end."""
    return -(-np.arange(buckets + 1, dtype=np.int64) * (1 << TOP) // buckets)
