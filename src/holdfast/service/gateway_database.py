"""One small door to SQLite or PostgreSQL for what the gateway itself remembers."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from threading import BoundedSemaphore, Lock, RLock, get_ident, local
from typing import Any, Protocol, TypeVar

from holdfast.errors import LedgerError
from holdfast.ledger.postgres_connection import connect as connect_postgres
from holdfast.ledger.sqlite_readers import Readers, connect
from holdfast.service.settings import Settings

Result = TypeVar("Result")
WAIT_SECONDS = 10.0
"""How long somebody waits for a lock, a free connection or a statement before being told to come again."""
_CONNECTIONS = 8
_SETTLED_NS = 2_500_000_000
"""So long after a file was changed its time tells of the next change, however coarse the clock of its disk is."""
_KEPT = 4096
_SELECT = "SELECT "
_REPEATABLE = (_SELECT, "BEGIN")
"""Statements that change nothing, so that they may be run twice."""


class Database(Protocol):
    """Statements with `?` for values. `write` blocks are atomic, and on disk when they end. Nobody waits for much
    longer than WAIT_SECONDS: LedgerError."""

    def rows(self, sql: str, *values: object) -> list[Any]:
        """The rows of a query, or none for a statement."""

    def write(self) -> Any:
        """A context in which all statements happen together or not at all."""

    def version(self) -> object | None:
        """What is another value after each change, by whomever, told without waiting; None where that is unknown."""

    def close(self) -> None:
        """Let go of it."""


class SqliteDatabase:
    """A file. `relaxed` leaves out the sync at each commit: a power cut may lose the last rows, no kill does.

    One connection writes; others read, each by one thread at a time.
    """

    def __init__(self, path: Path, *, relaxed: bool = False) -> None:
        self._lock, self._watching = RLock(), Lock()
        self._log = f"{path}-wal"
        self._seen: tuple[tuple[int, int, int] | None, int] = (None, 0)
        """The write-ahead log when SQLite was asked for its version, and what it said."""
        self._writing: int | None = None
        self._readers = Readers(path, WAIT_SECONDS)
        try:
            self._writer, self._watcher = connect(path, WAIT_SECONDS), connect(path, 0.0)
            self._writer.execute("PRAGMA journal_mode=WAL")
            self._writer.execute(f"PRAGMA synchronous={'NORMAL' if relaxed else 'FULL'}")
        except sqlite3.Error as error:
            raise LedgerError(f"{path.name} cannot be opened: {error}; see to the file") from None

    def rows(self, sql: str, *values: object) -> list[Any]:
        try:
            if self._writing == get_ident():
                return self._writer.execute(sql, values).fetchall()
            return self._readers.rows(sql, values)
        except sqlite3.Error as error:
            raise LedgerError(f"the gateway's records cannot be used: {error}; see to the file") from None

    @contextmanager
    def write(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=WAIT_SECONDS):
            raise LedgerError("the gateway's records are locked by somebody else; see who, and ask again")
        try:
            self._writing = get_ident()
            try:
                self.rows("BEGIN IMMEDIATE")
                try:
                    yield
                    self.rows("COMMIT")
                except BaseException:
                    if self._writer.in_transaction:  # a full disk may have ended it
                        self.rows("ROLLBACK")
                    raise
            finally:
                self._writing = None
        finally:
            self._lock.release()

    def version(self) -> object | None:
        """SQLite is asked only where the write-ahead log is another file than when it was asked last: every commit is
        written to it before it counts, and changes its time. One that was changed just now is asked about anew, because
        what comes after may have the same time."""
        if self._writing == get_ident():
            return None
        log = self._settled_log()
        known, version = self._seen
        if log is not None and log == known:
            return version
        with self._watching, suppress(sqlite3.Error):
            version = int(self._watcher.execute("PRAGMA data_version").fetchone()[0])
            self._seen = log, version
            return version
        return None

    def _settled_log(self) -> tuple[int, int, int] | None:
        """What tells the write-ahead log from itself after another commit; None while that cannot be told."""
        try:
            log = os.stat(self._log)
        except OSError:
            return None
        settled = time.time_ns() - log.st_mtime_ns > _SETTLED_NS
        return (log.st_ino, log.st_size, log.st_mtime_ns) if settled else None

    def close(self) -> None:
        with self._lock, self._watching:
            self._readers.close()
            self._writer.close()
            self._watcher.close()


class PostgresDatabase:
    """A schema `holdfast` in a PostgreSQL database, over a few connections.

    A lost connection is made anew, and what was asked is asked once more on it: a query, or the beginning of a
    `write` block. Nothing else is repeated: a statement that was sent may have been done.
    """

    def __init__(self, url: str, *, relaxed: bool = False) -> None:
        try:
            import psycopg
        except ImportError:
            raise LedgerError(
                "a PostgreSQL database needs a driver; `pip install holdfast[server]`"
            ) from None
        self._errors, self._url, self._closed = psycopg.Error, url, False
        self._settings = (
            "CREATE SCHEMA IF NOT EXISTS holdfast; SET search_path TO holdfast; SET client_min_messages = error; "
            f"SET statement_timeout = '{WAIT_SECONDS:g}s'; SET lock_timeout = '{WAIT_SECONDS:g}s'; "
            f"SET idle_in_transaction_session_timeout = '{3 * WAIT_SECONDS:g}s'; "
            f"SET synchronous_commit TO {'off' if relaxed else 'on'}"
        )
        self._room, self._idle, self._block = BoundedSemaphore(_CONNECTIONS), list[Any](), local()

    def rows(self, sql: str, *values: object) -> list[Any]:
        text = sql.replace("?", "%s")
        with self._told("used"):
            mine = getattr(self._block, "connection", None)
            if mine is not None:
                return _fetched(mine.execute(text, values))
            with self._borrowed() as borrowed:
                return _fetched(self._execute(borrowed, text, values))

    @contextmanager
    def write(self) -> Iterator[None]:
        with self._told("written"), self._borrowed() as borrowed:
            self._execute(borrowed, "BEGIN")
            connection = self._block.connection = borrowed[0]
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                if not connection.closed:
                    connection.execute("ROLLBACK")
                raise
            finally:
                self._block.connection = None

    def version(self) -> object | None:
        return None

    def close(self) -> None:
        self._closed = True
        self._drop_idle()

    def _execute(self, borrowed: list[Any], text: str, values: tuple[object, ...] = ()) -> Any:
        """Run a statement, and run it again on a new connection if the old one was lost and that is safe. Of a server
        that is silent nothing is asked twice."""
        try:
            return borrowed[0].execute(text, values)
        except self._errors:
            lost = borrowed[0].closed and not borrowed[0].fell_silent
            if not lost or not text.startswith(_REPEATABLE):
                raise
        self._drop_idle()  # they were lost by the same accident
        borrowed[0] = self._open()
        return borrowed[0].execute(text, values)

    @contextmanager
    def _borrowed(self) -> Iterator[list[Any]]:
        """A connection for this thread, in a list, where another may take its place."""
        if self._closed or not self._room.acquire(timeout=WAIT_SECONDS):
            raise LedgerError("the gateway's database has no connection left; look at it, and ask again")
        borrowed = []
        try:
            borrowed = [self._idle_one() or self._open()]
            yield borrowed
        finally:
            if borrowed and not borrowed[0].closed:
                self._idle.append(borrowed[0])
            if self._closed:
                self._drop_idle()
            self._room.release()

    def _idle_one(self) -> Any:
        while self._idle:
            with suppress(IndexError):  # somebody else was quicker
                if not (one := self._idle.pop()).closed:
                    return one
        return None

    def _open(self) -> Any:
        return connect_postgres(
            self._url,
            connecting=max(1, round(WAIT_SECONDS / 2)),
            silent=1.2 * WAIT_SECONDS,
            settings=self._settings,
        )

    def _drop_idle(self) -> None:
        while (one := self._idle_one()) is not None:
            one.close()

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise LedgerError(
                f"the gateway's records cannot be {what}: {type(error).__name__}; look at it"
            ) from None


class NotRemembered(Exception):
    """Whoever must not wait would have to."""


_at_once: ContextVar[bool] = ContextVar("at_once", default=False)


def at_once(work: Callable[[], Result]) -> Result:
    """Do work without waiting for a database: from what is remembered, or NotRemembered. For an event loop."""
    token = _at_once.set(True)
    try:
        return work()
    finally:
        _at_once.reset(token)


class Remembered:
    """A database whose queries are remembered until somebody changes it, in whichever process.

    Guarantee: what is told was in the database when it was asked for, or later; in an event loop, when what is ready
    in this turn of it became so, or later. Where changes cannot be noticed without waiting (PostgreSQL), nothing is
    remembered.
    """

    def __init__(self, database: Database) -> None:
        self._database, self._lock = database, Lock()
        self._version: object = None
        self._this_turn: tuple[asyncio.AbstractEventLoop, object] | None = None
        """The event loop that has asked for the version in this turn of it, and what it was told."""
        self._rows: dict[tuple[object, ...], list[Any]] = {}
        self.write, self.close = database.write, database.close

    def rows(self, sql: str, *values: object) -> list[Any]:
        """See `Database`."""
        asked, version = (sql, *values), self._version_now() if sql.startswith(_SELECT) else None
        with self._lock:
            if version is not None and version == self._version and asked in self._rows:
                return self._rows[asked]
        if _at_once.get():
            raise NotRemembered
        found = self._database.rows(sql, *values)
        if version is not None:
            with self._lock:
                if version != self._version or len(self._rows) >= _KEPT:
                    self._version, self._rows = version, {}
                self._rows[asked] = found
        return found

    def _version_now(self) -> object:
        """The database's version: in an event loop that of its first request in this turn. All others that are looked
        at before the next turn had arrived by then, for a loop reads what arrives between its turns."""
        try:
            loop = asyncio.get_running_loop() if _at_once.get() else None
        except RuntimeError:  # nobody's turn
            loop = None
        if loop is None:
            return self._database.version()
        if self._this_turn is None or self._this_turn[0] is not loop:
            self._this_turn = loop, self._database.version()
            loop.call_soon(self._end_turn)
        return self._this_turn[1]

    def _end_turn(self) -> None:
        self._this_turn = None


def _fetched(cursor: Any) -> list[Any]:
    return cursor.fetchall() if cursor.description else []


def databases(settings: Settings) -> tuple[Database, Database]:
    """Where people, tokens and tables are kept, and where replies are."""
    if settings.database is not None:
        return PostgresDatabase(settings.database), PostgresDatabase(settings.database, relaxed=True)
    folder = settings.folder
    return SqliteDatabase(folder / "gateway.sqlite"), SqliteDatabase(folder / "replies.sqlite", relaxed=True)


def keep_private(folder: Path) -> None:
    """The folder and what the gateway wrote into it is for its user alone, whatever it was before."""
    with suppress(OSError):  # another user's: it was made so on purpose
        folder.chmod(0o700)
    kept = [*folder.glob("*.sqlite*"), *folder.glob("ledgers/*"), *folder.glob("boards/*")]
    for file in kept:
        with suppress(OSError):
            if file.is_file():
                file.chmod(0o600)
