"""By what rows are known again while this process lives: a file by its number, arrays and frames by their memory."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.data.arrays import is_pandas
from holdfast.data.files import parquet_files

Span = tuple[int, int]
"""From where to where a column lies in memory. Parts of one column that hold different rows do not meet."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Something by which rows are known again while this process lives: `key` names it, `span` is the part of it.

    With an `owner` the key is the owner's address, so it may be remembered only as long as the owner lives.
    """

    key: Hashable
    span: Span = (0, 1)
    owner: object = None


def traces(data: object, table: str | None = None) -> list[Trace]:
    """The traces of rows, in the forms that `open_source` takes; none where nothing can be told.

    A file is known by device, number, size and time, so by every name it has, and is another one after it was
    written to. What was copied, or read once more into new arrays, is not known again.
    """
    if isinstance(data, str) and table is not None:
        return [Trace(("table", data, table))]
    if isinstance(data, str | os.PathLike):
        return _of_files(os.fspath(data))
    found = list(_of_columns(data))
    return found if isinstance(data, Mapping) else [*found, *_of_object(data)]


def _of_files(path: Any) -> list[Trace]:
    """Of a file, or of each Parquet file in a folder or pattern."""
    try:
        files = [Path(path)] if os.path.isfile(path) else parquet_files(path)
        stats = [file.stat() for file in files]
    except (OSError, TypeError, ValueError):
        return []
    return [Trace(("file", stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)) for stat in stats]


def _of_columns(data: Any) -> Iterator[Trace]:
    """Of the columns of a mapping or a pandas frame, also of those that no schema declares: they are the same rows."""
    pandas = is_pandas(data, "DataFrame")
    columns = (data.iloc[:, place] for place in range(data.shape[1])) if pandas else ()
    for column in data.values() if isinstance(data, Mapping) else columns:
        values = column
        if is_pandas(column, "Series") and isinstance(column.dtype, np.dtype):
            values = column.to_numpy()
        if isinstance(values, np.ndarray):
            yield _of_array(values)
        elif not pandas:
            yield from _of_object(values)


def _of_array(values: NDArray[Any]) -> Trace:
    """By the array that owns the memory (views of it come and go), and by the column of it if it has several."""
    owner = values
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    stride = values.strides[0] if values.ndim else 0
    start, length = values.__array_interface__["data"][0], (values.size - 1) * stride
    first, step = min(start, start + length), abs(stride) or 1
    span = (first, first + abs(length) + values.itemsize)
    return Trace(("memory", id(owner), step, first % step), span, owner)


def _of_object(thing: object) -> list[Trace]:
    """By the object itself, if it can be watched; lists and tuples cannot."""
    watched = getattr(type(thing), "__weakrefoffset__", 0)
    return [Trace(("memory", id(thing)), owner=thing)] if watched else []
