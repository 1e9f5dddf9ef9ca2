"""Units in the order of their keys, which numbers them; and which of them own the events that come in that order.

All of it is read and written from the first to the last, so that memory holds one block however many units there are.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from holdfast.data.source import BLOCK_ROWS, Block

Keys = NDArray[np.bytes_]
_KEY = np.dtype("S16")


class UnitKeys:
    """The distinct keys of all units in increasing order, in an unnamed file inside `folder` or in memory."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder, self._stack = folder, ExitStack()
        self._file: Any = None
        self._parts: list[Keys] = []
        self._count = 0

    def __enter__(self) -> Self:
        if self._folder is not None:
            self._file = self._stack.enter_context(tempfile.TemporaryFile(dir=self._folder))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def __len__(self) -> int:
        return self._count

    def add(self, keys: Keys) -> None:
        """The keys of the next units."""
        self._count += len(keys)
        if self._file is None:
            self._parts.append(keys)
        else:
            self._file.write(np.ascontiguousarray(keys, _KEY).view(np.uint8).data)
            self._file.flush()

    def parts(self) -> Iterator[Keys]:
        """All keys, block by block. Several may read at once."""
        if self._file is None:
            yield from self._parts
            return
        step = BLOCK_ROWS * _KEY.itemsize
        for place in range(0, self._count * _KEY.itemsize, step):
            yield np.frombuffer(os.pread(self._file.fileno(), step, place), _KEY)


class Places:
    """Finds the units of keys that come in increasing order, block after block. Cost: one reading of all keys."""

    def __init__(self, keys: UnitKeys) -> None:
        self._parts = keys.parts()
        self._part: Keys = np.empty(0, _KEY)
        self._first = 0

    def of(self, wanted: Keys) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The number of each one's unit, and whether there is one."""
        new = changes(wanted)
        keys = wanted[new]
        place, known = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
        start = 0
        while start < len(keys):
            last = self._part[-1:]
            end = start + int(np.searchsorted(keys[start:], last, side="right")[0]) if len(last) else start
            found = np.searchsorted(self._part, keys[start:end])
            place[start:end] = self._first + found
            known[start:end] = self._part[found] == keys[start:end]
            start = end
            if start < len(keys) and not self._advance():
                break
        each = np.cumsum(new) - 1
        return place[each], known[each]

    def _advance(self) -> bool:
        following = next(self._parts, None)
        if following is not None:
            self._first, self._part = self._first + len(self._part), following
        return following is not None


class Beginnings:
    """Where the events of each unit begin, from the units of all events as they come in order."""

    def __init__(self) -> None:
        self._units = self._events = 0

    def of(self, owners: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """The beginnings of the next units, up to that which owns the last of these events."""
        first = np.flatnonzero(np.diff(owners, prepend=-1))
        ends = owners[first] + 1
        for start in range(self._units, int(ends[-1]), BLOCK_ROWS):
            units = np.arange(start, min(start + BLOCK_ROWS, int(ends[-1])))
            yield self._events + first[np.searchsorted(ends, units, side="right")]
        self._units, self._events = int(ends[-1]), self._events + len(owners)

    def rest(self, units: int) -> Iterator[NDArray[np.int64]]:
        """Those of the units after it, and where all events end."""
        for start in range(self._units, units + 1, BLOCK_ROWS):
            yield np.full(min(BLOCK_ROWS, units + 1 - start), self._events, np.int64)


def keys_of(block: Block, names: tuple[str, str]) -> Keys:
    """Each key as one value: sixteen bytes, which sort as its two halves do."""
    halves = np.stack([block[name] for name in names], axis=1).astype(">u8")
    found: Keys = halves.view(_KEY)[:, 0]
    return found


def changes(keys: Keys, last: Keys | None = None) -> NDArray[np.bool_]:
    """Where sorted keys begin anew, `last` before the first of them."""
    found = np.ones(len(keys), dtype=np.bool_)
    found[1:] = keys[1:] != keys[:-1]
    if last is not None and len(last):
        found[:1] = keys[:1] != last
    return found
