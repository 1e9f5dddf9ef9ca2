"""Public hash functions, numbered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from holdfast.check import integer, refusal
from holdfast.local.affine import UInt, public_words, top_bits
from holdfast.noise.bits import system_bits

_ITEMS = 1 << 12


@dataclass(frozen=True, slots=True)
class HashFunctions:
    """`hashes` functions into 0..width-1, made from a public seed by SHAKE-256.

    Guarantee: over a uniform seed, each function sends two values below 2^48 to independent uniform places,
    and the functions are independent (as far as SHAKE-256 is a random function).
    """

    width: int
    hashes: int
    seed: int

    def places(self, rows: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the function rows[i] puts values[i]."""
        a, b = _functions(self.seed, self.hashes)
        return top_bits(a[rows], b[rows], values, self.width.bit_length() - 1)

    def sums(self, table: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each item the sum over all rows of the table's cell where the row's function puts it."""
        out = np.empty(items.size, dtype=np.int64)
        rows = np.arange(self.hashes)[:, np.newaxis]
        for start in range(0, items.size, _ITEMS):
            some = items[np.newaxis, start : start + _ITEMS]
            out[start : start + _ITEMS] = table[rows, self.places(rows, some)].sum(axis=0)
        return out


def read_functions(width: int, hashes: int, seed: int | None) -> HashFunctions:
    """Functions as declared; with a fresh public seed if none is given."""
    if integer("width", width, 2, 1 << 16) & (width - 1):
        raise refusal("a power of two", "width", width, "256 is usual")
    seed = system_bits().below(1 << 128) if seed is None else integer("seed", seed, 0)
    return HashFunctions(int(width), integer("hashes", hashes, 1, 1 << 16), seed)


@lru_cache(maxsize=16)
def _functions(seed: int, hashes: int) -> tuple[UInt, UInt]:
    words = public_words(seed, 2 * hashes)
    return words[:hashes], words[hashes:]
