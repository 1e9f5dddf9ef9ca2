"""One small door to SQLite or PostgreSQL for what the gateway itself remembers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock, get_ident
from typing import Any, Protocol

from holdfast.errors import LedgerError
from holdfast.ledger.sqlite_readers import Readers, connect

_REPEATABLE = ("SELECT ", "BEGIN")
"""Statements that change nothing, so that they may be run twice."""


class Database(Protocol):
    """Statements with `?` for values. `write` blocks are atomic, and on disk when they end."""

    def rows(self, sql: str, *values: object) -> list[Any]:
        """The rows of a query, or none for a statement."""

    def write(self) -> Any:
        """A context in which all statements happen together or not at all."""

    def close(self) -> None:
        """Let go of it."""


class SqliteDatabase:
    """A file. `relaxed` leaves out the sync at each commit: a power cut may lose the last rows, no kill does.

    One connection writes; others read, each by one thread at a time.
    """

    def __init__(self, path: Path, *, relaxed: bool = False) -> None:
        self._lock = RLock()
        self._writing: int | None = None
        self._readers = Readers(path)
        try:
            self._writer = connect(path)
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
        with self._lock:
            self._writing = get_ident()
            try:
                self.rows("BEGIN IMMEDIATE")
                try:
                    yield
                except BaseException:
                    self.rows("ROLLBACK")
                    raise
                self.rows("COMMIT")
            finally:
                self._writing = None

    def close(self) -> None:
        with self._lock:
            self._readers.close()
            self._writer.close()


class PostgresDatabase:
    """A schema `holdfast` in a PostgreSQL database.

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
        self._errors, self._connect = psycopg.Error, psycopg.connect
        self._lock, self._url, self._relaxed, self._depth = RLock(), url, relaxed, 0
        self._connection: Any = None

    def rows(self, sql: str, *values: object) -> list[Any]:
        with self._lock:
            try:
                cursor = self._execute(sql.replace("?", "%s"), values)
                return cursor.fetchall() if cursor.description else []
            except self._errors as error:
                raise LedgerError(
                    f"the gateway's records cannot be used: {type(error).__name__}; look at it"
                ) from None

    def _execute(self, text: str, values: tuple[object, ...] = ()) -> Any:
        """Run a statement, and run it again on a new connection if the old one was lost and that is safe."""
        connection = self._open()
        try:
            return connection.execute(text, values)
        except self._errors:
            if self._depth or not connection.closed or not text.startswith(_REPEATABLE):
                raise
            return self._open().execute(text, values)

    def _open(self) -> Any:
        """The connection; a new one if there is none, or if it is known to be lost. In a block it is never new."""
        if self._connection is None or (self._connection.closed and not self._depth):
            fresh = self._connect(self._url, autocommit=True)
            try:
                fresh.execute("CREATE SCHEMA IF NOT EXISTS holdfast")
                fresh.execute("SET search_path TO holdfast")
                if self._relaxed:
                    fresh.execute("SET synchronous_commit TO off")
            except self._errors:
                fresh.close()
                raise
            self._connection = fresh
        return self._connection

    @contextmanager
    def write(self) -> Iterator[None]:
        with self._lock:
            with self._told():
                self._execute("BEGIN")
            self._depth += 1
            try:
                yield
                with self._told():
                    self._connection.execute("COMMIT")
            except BaseException:
                if not self._connection.closed:
                    with self._told():
                        self._connection.execute("ROLLBACK")
                raise
            finally:
                self._depth -= 1

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise LedgerError(
                f"the gateway's records cannot be written: {type(error).__name__}; look at it"
            ) from None

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
