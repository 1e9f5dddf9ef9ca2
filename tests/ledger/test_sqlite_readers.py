"""Reading one SQLite file from many threads: as many connections as read at once, and few afterwards."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest

from holdfast.ledger import sqlite_readers
from holdfast.ledger.sqlite_readers import Readers, connect

AT_ONCE = 24


def open_after_a_busy_moment(place: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """How many connections were made while so many threads read at once, and how many are open when they have read."""
    made: list[sqlite3.Connection] = []
    together = Barrier(AT_ONCE)

    def connecting(path: Path, seconds: float) -> sqlite3.Connection:
        made.append(connect(path, seconds))
        made[-1].create_function("wait", 0, lambda: together.wait(60) and 0)
        return made[-1]

    monkeypatch.setattr(sqlite_readers, "connect", connecting)
    with closing(Readers(place)) as readers, ThreadPoolExecutor(AT_ONCE) as threads:
        assert list(threads.map(lambda _: readers.rows("SELECT wait()", ()), range(AT_ONCE)))
        return len(made), sum(map(is_open, made))


def is_open(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True


def test_a_busy_moment_leaves_few_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, left = open_after_a_busy_moment(tmp_path / "file.sqlite", monkeypatch)
    assert made == AT_ONCE and 1 <= left <= sqlite_readers._KEPT


def test_a_pool_that_keeps_all_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin."""
    monkeypatch.setattr(sqlite_readers, "_KEPT", 10**6)
    assert open_after_a_busy_moment(tmp_path / "file.sqlite", monkeypatch) == (AT_ONCE, AT_ONCE)


def test_readers_that_are_closed_read_no_more(tmp_path: Path) -> None:
    readers = Readers(tmp_path / "file.sqlite")
    assert readers.rows("SELECT 1", ()) == [(1,)]
    readers.close()
    assert not readers._idle
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        readers.rows("SELECT 1", ())
