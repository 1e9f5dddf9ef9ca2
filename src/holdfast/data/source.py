"""What every home of rows can do: walk them, fetch some, add them up."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.check import integer
from holdfast.errors import DataError, InputError
from holdfast.noise.bits import Bits
from holdfast.noise.subset import with_replacement
from holdfast.query.dictionary import Words
from holdfast.query.schema import Schema

Codes = NDArray[Any]
Block = dict[str, Codes]

BLOCK_ROWS = 2**17
"""Rows in one block of a scan: three byte-wide columns stay inside a second-level cache."""

DRAW_ROWS = 2**16
"""Row ids in one block of a draw: half a megabyte."""


class Measurement(Protocol):
    """What a source needs to know of a question whose answer is a vector of exact integer totals."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads."""

    @property
    def size(self) -> int:
        """The length of the vector."""

    def totals(self, block: Mapping[str, Codes]) -> NDArray[np.int64]:
        """The totals over the rows of one block of codes."""

    def sql(self, relation: str) -> str:
        """A SELECT over a relation of codes that returns rows (position in the vector, total)."""


class Source(Protocol):
    """Rows as columns of codes (see `holdfast.query.schema`), in a fixed order.

    Rows never change while a source is open, so `rows` and all totals stay true. All methods may be called
    from several threads at once. `fingerprint` is random, never computed from the rows: it names these rows
    in the ledger and can therefore be shown to anyone.
    """

    @property
    def schema(self) -> Schema:
        """The public declaration."""

    @property
    def rows(self) -> int:
        """The public number of rows, at least 1."""

    @property
    def fingerprint(self) -> str:
        """The identity of these rows: 32 hexadecimal digits."""

    @property
    def words(self) -> Mapping[str, Words]:
        """The secret dictionary of each text column."""

    def scan(self, columns: Sequence[str]) -> Iterator[Block]:
        """All rows in storage order, in blocks of at most BLOCK_ROWS, with only the named columns."""

    def gather(self, columns: Sequence[str], ids: NDArray[np.int64]) -> Block:
        """The rows at these 0-based positions, in that order, repeats allowed."""

    def draw(self, columns: Sequence[str], count: int, bits: Bits | None = None) -> Block:
        """`count` fresh rows, independent and uniform over all rows (with replacement), in random order.

        Guarantee: no two calls, in any threads or forked processes, share randomness, unless the same
        `bits` are given to both. Time and memory depend on the names and `count`, not on what the rows hold.
        """

    def totals(self, measurement: Measurement) -> NDArray[np.int64]:
        """Exact totals over all rows.

        Requires: no total leaves int64, which the measurement's declared range and `rows` decide.
        """

    def close(self) -> None:
        """Let go of files and connections. Closing twice is allowed."""


class NoRows(DataError):
    """An empty table. Of events there may be none, and nobody is told."""

    def __init__(self) -> None:
        super().__init__("expected at least one row, got an empty table")


def new_fingerprint() -> str:
    """A name for rows. It comes from the operating system and not from the rows, so it says nothing."""
    return secrets.token_hex(16)


def totals_by_scan(source: Source, measurement: Measurement) -> NDArray[np.int64]:
    """`Source.totals` for a source with nothing faster: add the blocks up.

    Cost: one pass over the columns of the measurement.
    """
    result = np.zeros(measurement.size, dtype=np.int64)
    # A question without columns (count all rows) still needs to know how long each block is.
    columns = measurement.columns or (next(iter(source.schema)),)
    for block in source.scan(columns):
        result += measurement.totals(block)
    return result


def draw_by_gather(source: Source, columns: Sequence[str], count: int, bits: Bits | None = None) -> Block:
    """`Source.draw` for a source that reaches single rows quickly: all columns of all drawn rows are read.

    Cost: `gather` of `count` ids, in blocks that stay inside a second-level cache.
    """
    names = checked_columns(columns, source.schema)
    _keep_freed_memory()
    count = integer("count", count, 0)
    if count <= DRAW_ROWS:
        return source.gather(names, with_replacement(source.rows, count, bits))
    result = {name: np.empty(count, dtype=source.schema[name].dtype) for name in names}
    for first in range(0, count, DRAW_ROWS):
        ids = with_replacement(source.rows, min(DRAW_ROWS, count - first), bits)
        for name, codes in source.gather(names, ids).items():
            result[name][first : first + len(ids)] = codes
    return result


@functools.cache
def _keep_freed_memory() -> None:
    """Teach glibc, once, to keep what draws give back instead of paying a page fault for each 4 KB of the next.

    It keeps twice the largest block that it had mapped alone and that was freed.
    """
    np.empty(2**21, dtype=np.uint8)


def gather_by_scan(source: Source, columns: Sequence[str], ids: NDArray[np.int64]) -> Block:
    """`Source.gather` for a source that cannot reach single rows: one pass, picking rows as they come by.

    Cost: a full scan, whatever the number of ids.
    """
    ids = np.clip(checked_ids(ids), 0, source.rows - 1)
    order = np.argsort(ids, kind="stable")
    wanted = ids[order]
    result = {name: np.empty(len(ids), dtype=source.schema[name].dtype) for name in columns}
    first = 0
    for block in source.scan(columns):
        length = len(next(iter(block.values())))
        low, high = np.searchsorted(wanted, (first, first + length))
        for name, codes in block.items():
            result[name][order[low:high]] = codes[wanted[low:high] - first]
        first += length
    return result


def distinct(ids: NDArray[np.int64], rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct ids below `rows` in increasing order, and for each given id its place among them.

    Cost: one sort of id and position packed into one word, a quarter of what sorting positions takes.
    """
    shift = len(ids).bit_length()
    if rows.bit_length() + shift > 63:
        wanted, places = np.unique(ids, return_inverse=True)
        return wanted, places
    packed = np.sort((ids << shift) | np.arange(len(ids)))
    ranked = packed >> shift
    first = np.ones(len(ids), dtype=np.bool_)
    np.not_equal(ranked[1:], ranked[:-1], out=first[1:])
    places = np.empty(len(ids), dtype=np.int64)
    places[packed & ((1 << shift) - 1)] = np.cumsum(first) - 1
    return ranked[first], places


def checked_columns(columns: Sequence[str], schema: Schema) -> tuple[str, ...]:
    """The names, if they are a non-empty sequence of declared columns."""
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    if not names:
        raise InputError("expected at least one column to read, got none")
    for name in names:
        if name not in schema:
            raise InputError(f"expected declared columns, got {name!r}; declared are {', '.join(schema)}")
    return names


def checked_ids(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The ids, if they are a flat array of integers."""
    array = np.asarray(ids)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"expected row ids as a flat integer array, got {array.dtype} of {array.ndim} dimensions"
        )
    return array.astype(np.int64, copy=False)
