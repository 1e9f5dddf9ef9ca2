"""Narrow columns side by side: one record for each row, or for each unit with its events: one place in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.data.source import BLOCK_ROWS, Block, Codes
from holdfast.query.schema import Schema

RECORD_BYTES = 16
"""A record is no longer than this: the price of the second copy, and a quarter of a cache line."""
UNIT_BYTES = 64
"""The same of a record of a unit's events: a cache line."""
LENGTH = ""
"""How many events a unit has, in its record; no column is called so."""


def packed_columns(schema: Schema) -> tuple[str, ...]:
    """The narrowest columns, as many as fit a record, the widest of them first; none if only one fits."""
    chosen: list[str] = []
    for name in sorted(schema, key=lambda name: schema[name].dtype.itemsize):
        if _bytes([*chosen, name], schema) > RECORD_BYTES:
            break
        chosen.append(name)
    return tuple(reversed(chosen)) if len(chosen) > 1 else ()


def record(names: Sequence[str], schema: Schema) -> np.dtype[Any]:
    """A little-endian record of these columns, without gaps, filled up to a power of two.

    So no record lies across two cache lines, and with the widest columns first every one is aligned.
    """
    formats = [schema[name].dtype.newbyteorder("<") for name in names]
    offsets = [_bytes(names[:place], schema) for place in range(len(names))]
    length = 1 << (_bytes(names, schema) - 1).bit_length()
    return np.dtype({"names": list(names), "formats": formats, "offsets": offsets, "itemsize": length})


def pack(block: Block, layout: np.dtype[Any]) -> NDArray[Any]:
    """The records of a block of columns; what fills them up is zero."""
    assert layout.names is not None
    records = np.zeros(len(block[layout.names[0]]), dtype=layout)
    for name in layout.names:
        records[name] = block[name]
    return records


def packed_events(schema: Schema, most: int) -> tuple[str, ...]:
    """The narrowest columns of events, `most` a unit, as many as fit its record, the widest first."""
    chosen: list[str] = []
    for name in sorted(schema, key=lambda name: schema[name].dtype.itemsize):
        if most * _bytes([*chosen, name], schema) + 1 > UNIT_BYTES:
            break
        chosen.append(name)
    return tuple(reversed(chosen))


def unit_record(names: Sequence[str], schema: Schema, most: int) -> np.dtype[Any]:
    """A record of a unit: `most` places for each of these columns and how many are full; up to a power of two."""
    formats: list[Any] = [(schema[name].dtype.newbyteorder("<"), (most,)) for name in names]
    offsets = [most * _bytes(names[:place], schema) for place in range(len(names) + 1)]
    length = 1 << offsets[-1].bit_length()
    return np.dtype(
        {"names": [*names, LENGTH], "formats": [*formats, "u1"], "offsets": offsets, "itemsize": length}
    )


def pack_units(layout: np.dtype[Any], offsets: Codes, columns: Block) -> Iterator[NDArray[Any]]:
    """The records of units in blocks, from where their events begin and the codes of these; places beyond are zero."""
    assert layout.names is not None
    names = layout.names[:-1]
    most = layout[names[0]].shape[0]
    step = max(1, BLOCK_ROWS // most)
    for first in range(0, len(offsets) - 1, step):
        ends = offsets[first : first + step + 1]
        records = np.zeros(len(ends) - 1, dtype=layout)
        records[LENGTH] = np.diff(ends)
        full = np.arange(most) < records[LENGTH][:, None]
        for name in names:
            records[name][full] = columns[name][ends[0] : ends[-1]]
        yield records


def _bytes(names: Sequence[str], schema: Schema) -> int:
    return sum(schema[name].dtype.itemsize for name in names)
