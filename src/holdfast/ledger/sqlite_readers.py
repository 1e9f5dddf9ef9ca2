"""Reading one SQLite file from many threads."""

from __future__ import annotations

import sqlite3
from collections import deque
from pathlib import Path
from typing import Any

_BUSY_SECONDS = 60.0


def connect(path: Path, seconds: float = _BUSY_SECONDS) -> sqlite3.Connection:
    """A connection that waits its turn for so long, begins no transaction by itself, and may go from thread to
    thread."""
    return sqlite3.connect(path, timeout=seconds, isolation_level=None, check_same_thread=False)


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
            if self._closed:
                self.close()

    def close(self) -> None:
        """Close those that nobody uses; one in use is closed by its thread."""
        self._closed = True
        while True:
            try:
                self._idle.pop().close()
            except IndexError:
                return
