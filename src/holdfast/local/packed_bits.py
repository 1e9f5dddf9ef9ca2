"""Rows of bits, eight to a byte."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.local.draw import coins
from holdfast.noise.bits import Bits

_CELLS = 1 << 20
"""Bits handled at a time, so that a block stays in the cache."""


def row_bytes(width: int) -> int:
    """Bytes of a packed row."""
    return -(-width // 8)


def blocks(rows: int, width: int) -> Iterator[slice]:
    """Slices of rows, each about a million bits."""
    step = max(1, _CELLS // width)
    for start in range(0, rows, step):
        yield slice(start, min(rows, start + step))


def pack(rows: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Rows of truth values as bytes, the first bit lowest."""
    return np.packbits(rows, axis=1, bitorder="little")


def unpack(packed: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    """Rows of 0 and 1."""
    return np.unpackbits(packed, axis=1, count=width, bitorder="little")


def noisy_one_hot(
    positions: NDArray[np.int64], width: int, p: Fraction, q: Fraction, bits: Bits
) -> NDArray[np.uint8]:
    """Per user a packed row of coins: heads with probability p at its position, q elsewhere."""
    out = np.empty((positions.size, row_bytes(width)), dtype=np.uint8)
    for block in blocks(positions.size, width):
        mine = positions[block]
        row = coins(q, mine.size * width, bits).reshape(mine.size, width)
        row[np.arange(mine.size), mine] = coins(p, mine.size, bits)
        out[block] = pack(row)
    return out


def column_counts(packed: NDArray[np.uint8], width: int) -> NDArray[np.int64]:
    """How many rows have each bit."""
    total = np.zeros(width, dtype=np.int64)
    for block in blocks(len(packed), width):
        rows = unpack(packed[block], width)
        # A byte can hold the sum of 255 rows; narrow sums are the quick ones.
        for start in range(0, len(rows), 255):
            total += rows[start : start + 255].sum(axis=0, dtype=np.uint8)
    return total


def column_counts_by(
    packed: NDArray[np.uint8], width: int, groups: NDArray[np.int64], number: int
) -> NDArray[np.int64]:
    """The same for each of `number` groups of rows: an array of number x width."""
    order = np.argsort(groups, kind="stable")
    ends = np.cumsum(np.bincount(groups, minlength=number))[:-1]
    return np.stack([column_counts(packed[rows], width) for rows in np.split(order, ends)])
