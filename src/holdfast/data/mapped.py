"""One column of a store as mapped memory: single rows without reading ahead, passes with."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.data.source import Block, Codes
from holdfast.errors import StoreError

try:
    from resource import RUSAGE_THREAD, getrusage
except ImportError:  # not Linux: every store then counts as warm
    getrusage = None  # type: ignore[assignment]

_FIRST_ROWS, _MOST_ROWS, _GROWTH = 64, 2**16, 32
_WORD, _WIDE, _WIDE_ROWS = 8, 32, 2**11


class MappedColumn:
    """The codes of one column, in a file that may be larger than memory.

    The operating system is told not to read ahead, because the next row may be anywhere. A draw that meets
    rows on disk asks for the rest of its pages at once and then waits for all of them together; a pass asks
    for each block before it needs it.
    """

    def __init__(self, descriptor: int, dtype: np.dtype[Any], rows: int, name: str) -> None:
        self._map = mmap.mmap(descriptor, rows * dtype.itemsize, access=mmap.ACCESS_READ)
        self._name = name
        self._rows = rows
        self._width = dtype.itemsize
        self.codes: Codes = np.frombuffer(self._map, dtype=dtype)
        self._advise("MADV_RANDOM", 0, rows * dtype.itemsize)

    def check(self) -> None:
        """Refuse a file that was cut since it was opened. Reading beyond its end would kill the process."""
        if self._map.size() < self._rows * self._width:
            raise StoreError(
                f"expected the column {self._name!r} as it was opened, got a shorter file; the store is damaged"
            )

    def expect(self, first: int, last: int) -> None:
        """Start reading the rows from `first` up to `last` from disk, without waiting for them."""
        self.check()
        start = first * self._width // mmap.PAGESIZE * mmap.PAGESIZE
        end = min(last, self._rows) * self._width
        if end > start:
            self._advise("MADV_WILLNEED", start, end - start)

    def fetch(self, ids: NDArray[np.int64]) -> None:
        """Start reading the pages of these rows."""
        pages = np.unique(np.clip(ids, 0, self._rows - 1) * self._width // mmap.PAGESIZE)
        for page in pages.tolist():
            self._advise("MADV_WILLNEED", page * mmap.PAGESIZE, mmap.PAGESIZE)

    def take_wide(self, ids: NDArray[np.int64], place: Codes) -> None:
        """Copy long rows. A word of each is read first: many short reads wait for memory side by side."""
        words = np.frombuffer(self._map, dtype=np.uint64)
        for first in range(0, len(ids), _WIDE_ROWS):
            part = ids[first : first + _WIDE_ROWS]
            words.take(part * (self._width // _WORD), mode="clip")
            self.codes.take(part, mode="clip", out=place[first : first + _WIDE_ROWS])

    def _advise(self, advice: str, start: int, length: int) -> None:
        if hasattr(mmap, advice):
            self._map.madvise(getattr(mmap, advice), start, length)


def take_rows(columns: Mapping[str, MappedColumn], ids: NDArray[np.int64], many: int = 1) -> Block:
    """Copies of single rows, in any order, or of so many from each on. The time depends on the ids and the cache alone.

    Cost: 3 to 30 ns a row and column from memory. From disk, reads that run side by side: the first few rows
    are waited for, which tells that the store is cold, and the others are asked for before they are touched.
    """
    for column in columns.values():
        column.check()
    result = {name: np.empty(len(ids) * many, dtype=column.codes.dtype) for name, column in columns.items()}
    first, length, cold = 0, _FIRST_ROWS, False
    before = disk_reads()
    while first < len(ids):
        part = ids[first : first + length]
        if cold:
            for column in columns.values():
                column.fetch(part)
        for name, column in columns.items():
            place = result[name][first * many : (first + length) * many]
            if many == 1 and column.codes.dtype.itemsize >= _WIDE:
                column.take_wide(part, place)
            elif many == 1:
                column.codes.take(part, mode="clip", out=place)
            else:
                place[:] = take_runs(column.codes, part, many)
        first += length
        cold = cold or (first < len(ids) and disk_reads() > before)
        length = min(length * _GROWTH, _MOST_ROWS)
    return result


def take_runs(codes: Codes, starts: NDArray[np.int64], many: int) -> Codes:
    """From each place on so many codes, one run after the other. Cost: one copy of bytes for each run."""
    width = codes.dtype.itemsize
    runs = np.ndarray(len(codes) - many + 1, dtype=f"V{many * width}", buffer=codes, strides=(width,))
    return runs[np.clip(starts, 0, len(runs) - 1)].view(codes.dtype)


def disk_reads() -> int:
    """How many pages this thread has had to wait for."""
    return 0 if getrusage is None else getrusage(RUSAGE_THREAD).ru_majflt
