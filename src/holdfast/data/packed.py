"""Narrow columns side by side: one record for each row, so that a drawn row is one place in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.data.source import Block
from holdfast.query.schema import Schema

RECORD_BYTES = 16
"""A record is no longer than this: the price of the second copy, and a quarter of a cache line."""


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


def _bytes(names: Sequence[str], schema: Schema) -> int:
    return sum(schema[name].dtype.itemsize for name in names)
