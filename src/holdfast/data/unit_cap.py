"""Which rows of a unit are kept where it has more than its bound: a choice that depends on that unit alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.data.source import Block
from holdfast.query.dictionary import Words

_STEP = 16


@dataclass(frozen=True, slots=True)
class Cap:
    """Keeps the `most` rows of each unit that come first in the order of a keyed hash of (table, unit, row, copy).

    A row is its codes in the declared order, and of a text 128 bits of its hash (`text_digests`): its code depends on
    the texts of others. Equal rows of a unit are copies 0, 1, 2, ... The hash is CBC-MAC with AES-128, a pseudorandom
    function on texts of one length (Bellare, Kilian, Rogaway 2000), under a secret key.
    Guarantee: what is kept of a unit depends on the key and on the rows of that unit, as a multiset: neither on
    their order nor on any other unit (docs/theorems.md, Theorem 47).
    """

    key: bytes
    table: str
    most: int
    digests: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def of(self, blocks: Iterable[Block], unit: tuple[str, str], names: tuple[str, ...]) -> Iterator[Block]:
        """The rows that are kept, of blocks sorted by `unit` and then by `names`; in the same order.

        Cost: memory for one block and `most` rows. Only the rows of units that may have too many are hashed.
        """
        held: Block | None = None
        ranks: NDArray[np.uint64] = np.empty(0, np.uint64)
        last: tuple[Any, int] | None = None
        for block in blocks:
            rows = len(block[unit[0]])
            if not rows:
                continue
            encoded = _encoded(block, names, self.digests)
            units = np.stack([block[name].astype(np.uint64) for name in unit], axis=1)
            fresh = np.ones(rows, dtype=np.bool_)
            fresh[1:] = np.any(units[1:] != units[:-1], axis=1)
            new_row = fresh.copy()
            new_row[1:] |= encoded[1:] != encoded[:-1]
            copies = _copies(new_row)
            first = (units[0].tobytes(), encoded[0].tobytes())
            if last is not None and last[0] == first:
                until = int(np.argmax(new_row[1:])) + 1 if new_row[1:].any() else rows
                copies[:until] += last[1]
            last = ((units[-1].tobytes(), encoded[-1].tobytes()), int(copies[-1]) + 1)
            owner = np.cumsum(fresh) - 1
            counts = np.bincount(owner)
            doubtful = counts > self.most
            doubtful[-1] = True  # it may go on
            goes_on = held is not None and bool(np.all(_key_of(held, unit) == units[0]))
            doubtful[0] |= goes_on
            places = np.flatnonzero(doubtful[owner])
            order = np.zeros(rows, dtype=np.uint64)
            order[places] = self.hashes(units[places], encoded[places], copies[places])
            if held is not None and not goes_on:
                yield held
                held = None
            if held is not None:
                block = {name: np.concatenate([held[name], block[name]]) for name in block}
                order, owner = (
                    np.concatenate([ranks, order]),
                    np.concatenate([np.zeros(len(ranks), int), owner]),
                )
            kept = self._first(order, owner, doubtful)
            tail = owner[kept] == owner[-1]
            chosen = {name: codes[kept] for name, codes in block.items()}
            held = {name: codes[tail] for name, codes in chosen.items()}
            ranks = order[kept][tail]
            if not tail.all():
                yield {name: codes[~tail] for name, codes in chosen.items()}
        if held is not None:
            yield held

    def hashes(
        self, units: NDArray[np.uint64], rows: NDArray[Any], copies: NDArray[np.int64]
    ) -> NDArray[np.uint64]:
        """The place of each row in the order: the first half of its hash."""
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import ECB

        encryptor = Cipher(AES(self.key), ECB()).encryptor()  # one block at a time: the chain is ours
        count, width = len(copies), rows.dtype.itemsize
        padded = -(-width // _STEP) * _STEP
        text = np.zeros((count, padded), dtype=np.uint8)
        text[:, :width] = rows.view(np.uint8).reshape(count, width)
        head = hashlib.blake2b(f"{width} {self.table}".encode(), digest_size=_STEP).digest()
        ends = np.stack([copies.astype(np.uint64), np.zeros(count, np.uint64)], axis=1)
        state = np.tile(np.frombuffer(head, np.uint8), (count, 1))
        parts = [_bytes(units), *(text[:, at : at + _STEP] for at in range(0, padded, _STEP)), _bytes(ends)]
        for part in (None, *parts):
            mixed = state if part is None else state ^ part
            state = np.frombuffer(encryptor.update(mixed.tobytes()), np.uint8).reshape(count, _STEP)
        return np.ascontiguousarray(state[:, :8]).view("<u8")[:, 0].astype(np.uint64)

    def _first(
        self, order: NDArray[np.uint64], owner: NDArray[np.int64], doubtful: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Which rows come among the first of their unit."""
        kept = np.ones(len(owner), dtype=np.bool_)
        places = np.flatnonzero(doubtful[owner])
        ranked = places[np.lexsort((order[places], owner[places]))]
        starts = np.ones(len(ranked), dtype=np.bool_)
        starts[1:] = owner[ranked][1:] != owner[ranked][:-1]
        kept[ranked[_copies(starts) >= self.most]] = False
        return kept


def text_digests(words: Words) -> NDArray[Any]:
    """Sixteen bytes for the text of each code, and zeros for NULL, which comes last."""
    hashes = b"".join(hashlib.blake2b(text.encode(), digest_size=_STEP).digest() for text in words.texts)
    return np.frombuffer(hashes + bytes(_STEP), dtype=f"V{_STEP}")


def _encoded(block: Block, names: tuple[str, ...], digests: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """The bytes of each row, as one value; every NULL of a Real has the same."""
    columns = {
        name: digests[name].take(block[name], mode="clip") if name in digests else block[name]
        for name in names
    }
    layout = np.dtype(
        [(f"c{place}", columns[name].dtype.newbyteorder("<")) for place, name in enumerate(names)]
    )
    rows = np.zeros(len(block[names[0]]), dtype=layout)
    for place, codes in enumerate(columns.values()):
        rows[f"c{place}"] = np.where(np.isnan(codes), np.nan, codes) if codes.dtype.kind == "f" else codes
    return rows.view(f"V{layout.itemsize}")


def _bytes(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(words.astype("<u8")).view(np.uint8).reshape(len(words), _STEP)


def _copies(starts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each place how many come before it in its run."""
    places = np.arange(len(starts))
    return places - np.maximum.accumulate(np.where(starts, places, 0))


def _key_of(block: Block, unit: tuple[str, str]) -> NDArray[np.uint64]:
    return np.array([block[name][0] for name in unit], dtype=np.uint64)
