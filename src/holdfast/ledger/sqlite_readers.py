"""Reading one SQLite file from many threads."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections import deque
from pathlib import Path
from typing import Any

from holdfast.errors import LedgerError

_BUSY_SECONDS = 60.0
_KEPT = 4
"""So many connections wait for the next reader. Those that a busy moment needs beside them are closed after it."""


def connect(path: Path, seconds: float = _BUSY_SECONDS) -> sqlite3.Connection:
    """A connection that waits its turn for so long, begins no transaction by itself, and may go from thread to
    thread."""
    with contextlib.suppress(OSError):  # SQLite says what is wrong. A file of its own is its user's alone.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    return sqlite3.connect(path, timeout=seconds, isolation_level=None, check_same_thread=False)


def copy_database(path: Path, place: Path) -> None:
    """Copy a database as it stands at one moment, whoever writes to it meanwhile."""
    source, target = connect(path), connect(place)
    try:
        source.backup(target)
        target.execute("PRAGMA journal_mode=DELETE")  # one file, whole
    except sqlite3.Error as error:
        raise LedgerError(f"{path.name} cannot be copied: {error}; see to the file") from None
    finally:
        source.close()
        target.close()


class Readers:
    """Connections that read what is committed, each used by one thread at a time.

    One reader behind a lock would be slower than it looks: sqlite3 lets go of Python's own lock meanwhile, and
    threads that wait for both in turn wait long.
    """

    def __init__(self, path: Path, seconds: float = _BUSY_SECONDS) -> None:
        self._path, self._seconds, self._closed = path, seconds, False
        self._idle: deque[sqlite3.Connection] = deque()

    def rows(self, sql: str, values: tuple[object, ...]) -> list[Any]:
        """The rows of a query; sqlite3.Error if it fails or the file was closed."""
        if self._closed:
            raise sqlite3.ProgrammingError("it was closed")
        try:
            reader = self._idle.pop()
        except IndexError:
            reader = connect(self._path, self._seconds)
        try:
            return reader.execute(sql, values).fetchall()
        finally:
            self._idle.append(reader)
            self._close_beyond(0 if self._closed else _KEPT)

    def close(self) -> None:
        """Close those that nobody uses; one in use is closed by its thread."""
        self._closed = True
        self._close_beyond(0)

    def _close_beyond(self, many: int) -> None:
        while len(self._idle) > many:
            try:
                idle = self._idle.popleft()
            except IndexError:  # others were quicker
                return
            idle.close()
