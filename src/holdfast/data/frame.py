"""Rows in memory: one array of codes per column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.data.source import (
    BLOCK_ROWS,
    Block,
    Codes,
    Measurement,
    NoRows,
    checked_columns,
    checked_ids,
    draw_by_gather,
    new_fingerprint,
    totals_by_scan,
)
from holdfast.errors import DataError
from holdfast.noise.bits import Bits
from holdfast.query.dictionary import TextCodes, Words
from holdfast.query.schema import Schema


class FrameSource:
    """A `Source` over arrays of codes in memory.

    Requires: nobody else writes to the arrays; `open_source` hands over fresh copies.
    Cost: `gather` takes about 3 ns a row and column when the column fits the cache, 25 ns when not.
    """

    def __init__(
        self,
        schema: Schema,
        codes: Mapping[str, Codes],
        *,
        fingerprint: str | None = None,
        words: Mapping[str, Words] | None = None,
    ) -> None:
        self._schema = schema
        given = {name: array.words for name, array in codes.items() if isinstance(array, TextCodes)}
        self._words = given if words is None else dict(words)
        self._codes = {name: codes[name].view(np.ndarray) for name in schema}
        self._rows = checked_lengths({name: len(array) for name, array in self._codes.items()})
        for name, array in self._codes.items():
            check_codes(schema, name, array)
            array.flags.writeable = False
        self._fingerprint = fingerprint or new_fingerprint()

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def rows(self) -> int:
        return self._rows

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    @property
    def words(self) -> Mapping[str, Words]:
        return self._words

    def scan(self, columns: Sequence[str]) -> Iterator[Block]:
        return blocks(self._codes, checked_columns(columns, self._schema))

    def gather(self, columns: Sequence[str], ids: NDArray[np.int64]) -> Block:
        return take(self._codes, checked_columns(columns, self._schema), ids)

    def draw(self, columns: Sequence[str], count: int, bits: Bits | None = None) -> Block:
        return draw_by_gather(self, columns, count, bits)

    def totals(self, measurement: Measurement) -> NDArray[np.int64]:
        return totals_by_scan(self, measurement)

    def close(self) -> None:
        """Nothing to let go of: the arrays live as long as the source."""


def blocks(codes: Mapping[str, Codes], names: tuple[str, ...]) -> Iterator[Block]:
    """Views of whole arrays, block by block."""
    for first in range(0, len(codes[names[0]]), BLOCK_ROWS):
        yield {name: codes[name][first : first + BLOCK_ROWS] for name in names}


def take(codes: Mapping[str, Codes], names: tuple[str, ...], ids: NDArray[np.int64]) -> Block:
    """Copies of single rows."""
    ids = checked_ids(ids)
    return {name: np.take(codes[name], ids, mode="clip") for name in names}


def checked_lengths(lengths: Mapping[str, int]) -> int:
    """The one number of rows that all columns share."""
    if not lengths:
        raise DataError("expected at least one column, got a schema that declares none")
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name!r}: {length}" for name, length in list(lengths.items())[:10])
        raise DataError(f"expected columns of equal length, got {shown}")
    rows = next(iter(lengths.values()))
    if rows == 0:
        raise NoRows
    return rows


def check_codes(schema: Schema, name: str, codes: Codes) -> None:
    """Refuse codes that the schema does not know: every sensitivity rests on the declared range."""
    column = schema[name]
    if codes.dtype != column.dtype or codes.ndim != 1:
        raise DataError(
            f"expected column {name!r} as a flat array of {column.dtype}, "
            f"got {codes.dtype} in {codes.ndim} dimensions"
        )
    if not len(codes):
        return
    if column.codes is None:
        outside = bool(np.any((codes < column.lo) | (codes > column.hi)))
    else:
        outside = int(codes.max()) > column.codes
    if outside:
        raise DataError(f"expected codes of column {name!r} inside the declared range, got others")
