"""A table in two parts: the units that are set aside, and the rest; which is which, only a key knows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.check import integer
from holdfast.data.pool import Pool, PooledSource, pool_rows
from holdfast.data.source import (
    BLOCK_ROWS,
    Block,
    Measurement,
    Source,
    checked_ids,
    draw_by_gather,
    totals_by_scan,
)
from holdfast.data.unit_source import UnitSource
from holdfast.noise.bits import Bits
from holdfast.noise.subset import with_replacement
from holdfast.query.dictionary import Words
from holdfast.query.schema import Schema

_ROUNDS = 10
_UNITS_AT_ONCE = 2**12


@dataclass(frozen=True)
class Division:
    """A permutation of the places of `rows` units by a secret key; the last `aside` of its values are set aside.

    The permutation is a Feistel network of ten rounds of AES-128 over the next power of two, walked until it is below
    `rows`: pseudorandom (Luby and Rackoff 1988; cycle walking: Black and Rogaway 2002).
    Guarantee: which places are set aside depends on the key, the number of units and how many are set aside, and on
    nothing that they hold (docs/theorems.md, Theorem 61).
    Cost: about a microsecond a place.
    """

    secret: bytes
    rows: int
    aside: int

    def places(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the units with these numbers lie: those below rows - aside are the rest, the others are set aside."""
        found = self._once(numbers.astype(np.uint64))
        while (beyond := found >= self.rows).any():
            found[beyond] = self._once(found[beyond])
        return found.astype(np.int64)

    @cached_property
    def set_aside(self) -> NDArray[Any]:
        """The places of all units that are set aside, in increasing order. Secret."""
        numbers = np.arange(self.rows - self.aside, self.rows)
        parts = [self.places(numbers[at : at + BLOCK_ROWS]) for at in range(0, self.aside, BLOCK_ROWS)]
        found: NDArray[Any] = np.sort(np.concatenate(parts))
        return found.astype(np.uint32) if self.rows < 2**32 else found

    def is_aside(self, first: int, last: int) -> NDArray[np.bool_]:
        """For each of a stretch of places whether it is set aside."""
        chosen = np.zeros(last - first, dtype=np.bool_)
        low, high = np.searchsorted(self.set_aside, (first, last))
        chosen[self.set_aside[low:high].astype(np.int64) - first] = True
        return chosen

    def _once(self, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
        bits = max(2, (self.rows - 1).bit_length())
        low = bits // 2
        sizes = (bits - low, low)
        left, right = numbers >> np.uint64(low), numbers & np.uint64((1 << low) - 1)
        for number in range(_ROUNDS):
            mask = np.uint64((1 << sizes[number % 2]) - 1)
            left, right = right, (left ^ self._mixed(number, right)) & mask
        return (left << np.uint64(low)) | right

    def _mixed(self, number: int, half: NDArray[np.uint64]) -> NDArray[np.uint64]:
        text = np.empty((len(half), 2), dtype="<u8")
        text[:, 0], text[:, 1] = half, number
        return np.frombuffer(self._cipher.update(text.tobytes()), "<u8")[::2].astype(np.uint64)

    @cached_property
    def _cipher(self) -> Any:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import ECB

        # A key of its own: the ledger's secret also chooses which rows of a unit are kept.
        key = hashlib.blake2b(f"set aside {self.rows} {self.aside}".encode(), key=self.secret, digest_size=16)
        return Cipher(AES(key.digest()), ECB()).encryptor()


class PartSource:
    """See `Source`: the units of one part of another source, in an order of their own.

    Guarantee: scans, gathered rows, draws, pools and totals hold units of this part only.
    Requires: the other source has its units in the same order whenever it is opened.
    Cost: totals are a scan of the other source, also where that would push them down; the places of what is set aside
    are found once, at the first scan.
    """

    def __init__(self, whole: Source, division: Division, *, aside: bool) -> None:
        self.whole, self._division, self._aside = whole, division, aside
        self.rows = division.aside if aside else division.rows - division.aside
        self._first = division.rows - division.aside if aside else 0
        self._pool: Pool | None = None
        self._draws_ahead = isinstance(getattr(whole, "base", whole), PooledSource)

    @property
    def schema(self) -> Schema:
        return self.whole.schema

    @property
    def fingerprint(self) -> str:
        return self.whole.fingerprint

    @property
    def words(self) -> Mapping[str, Words]:
        return self.whole.words

    @property
    def path(self) -> Path | None:
        """Where the whole lies, if it is a store."""
        return getattr(self.whole, "path", None)

    def scan(self, columns: Sequence[str]) -> Iterator[Block]:
        if isinstance(self.whole, UnitSource):
            step, whole = _UNITS_AT_ONCE, self._division.rows
            for first in range(0, whole, step):
                chosen = self._chosen(first, min(first + step, whole))
                if chosen.any():
                    yield self.whole.gather(columns, first + np.flatnonzero(chosen))
            return
        first = 0
        for block in self.whole.scan(columns):
            last = first + len(next(iter(block.values())))
            chosen = self._chosen(first, last)
            if chosen.any():
                yield {name: codes[chosen] for name, codes in block.items()}
            first = last

    def _chosen(self, first: int, last: int) -> NDArray[np.bool_]:
        aside = self._division.is_aside(first, last)
        return aside if self._aside else ~aside

    def gather(self, columns: Sequence[str], ids: NDArray[np.int64]) -> Block:
        ids = np.clip(checked_ids(ids), 0, self.rows - 1)
        return self.whole.gather(columns, self._division.places(self._first + ids))

    def draw(self, columns: Sequence[str], count: int, bits: Bits | None = None) -> Block:
        if self._draws_ahead and bits is None:
            if self._pool is None:
                names = tuple(self.schema)
                self._pool = Pool(
                    lambda many: self.gather(names, with_replacement(self.rows, many)),
                    pool_rows(self.schema, self.rows),
                )
            return self._pool.take(tuple(columns), integer("count", count, 0))
        if not isinstance(self.whole, UnitSource):
            return draw_by_gather(self, columns, count, bits)
        count = integer("count", count, 0)
        parts = [
            self.gather(columns, with_replacement(self.rows, min(_UNITS_AT_ONCE, count - first), bits))
            for first in range(0, max(count, 1), _UNITS_AT_ONCE)
        ]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def totals(self, measurement: Measurement) -> NDArray[np.int64]:
        return totals_by_scan(self, measurement)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
        self.whole.close()
