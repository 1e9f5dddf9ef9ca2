"""A ledger in one SQLite file, shared by threads and processes."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.errors import LedgerError
from holdfast.ledger.anchor import flocked
from holdfast.ledger.chained import ChainedLedger
from holdfast.ledger.migrate import from_version_1, start
from holdfast.ledger.reader import Rows, Stream
from holdfast.ledger.sql_schema import FACTS, TABLES, VERSION
from holdfast.ledger.sqlite_readers import Readers

_BUSY_SECONDS = 60.0
_FAILURES = (sqlite3.Error, OverflowError, UnicodeError)  # the last two: what SQLite cannot hold


class SqliteLedger(ChainedLedger):
    """A ledger in a file. Write-ahead log, full sync, `BEGIN IMMEDIATE`: what returned is on disk.

    `anchors` is the folder of its anchor; see `holdfast.ledger.anchor.anchors_folder`.
    """

    def __init__(
        self, path: Path | str, anchors: Path | str | None = None, *, acknowledged: bool = False
    ) -> None:
        place = Path(path)
        super().__init__(
            SqliteDatabase(place),
            None if anchors is None else Path(anchors),
            place.absolute().parent,
            acknowledged=acknowledged,
        )


class SqliteDatabase:
    """See `Database`. One connection writes, others read what is committed."""

    BEGIN = "BEGIN IMMEDIATE"
    """Takes the write lock before reading, so no total is read too early."""

    def __init__(self, path: Path) -> None:
        self._path, self.address = path.absolute(), str(path.absolute())
        self._readers = Readers(self._connect)
        try:
            self._writer = self._connect()
            try:
                self._writer.execute("PRAGMA journal_mode=WAL")
                self._writer.execute("PRAGMA synchronous=FULL")
                self._prepare()
            except BaseException:
                self._writer.close()
                raise
        except sqlite3.Error as error:
            raise LedgerError(f"the ledger {path.name} cannot be opened: {error}") from None

    def read(self, sql: str, *values: object) -> list[Any]:
        try:
            return self._readers.rows(sql, values)
        except _FAILURES as error:
            raise LedgerError(f"the ledger cannot be read: {error}") from None

    def begin(self) -> Rows:
        self._write(self.BEGIN)
        return self._write

    def commit(self) -> None:
        self._write("COMMIT")

    def rollback(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Stream]:
        connection = self._connect()
        # A byte that is no text can only come from tampering; it must not hide where.
        connection.text_factory = lambda text: text.decode(errors="replace")
        try:
            connection.execute("BEGIN")
            yield connection.execute
        except sqlite3.Error as error:
            raise LedgerError(f"the ledger cannot be read: {error}") from None
        finally:
            connection.close()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        with open(f"{self._path}-turn", "a") as file, flocked(file.fileno()):
            yield

    def close(self) -> None:
        self._readers.close()
        self._writer.close()

    def _write(self, sql: str, *values: object) -> list[Any]:
        try:
            return self._writer.execute(sql, values).fetchall()
        except _FAILURES as error:
            raise LedgerError(f"the ledger cannot be written: {error}") from None

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )

    def _prepare(self) -> None:
        """Make the tables of a new file, or bring an old one up to date, in one transaction."""
        if self._version() == VERSION:
            return
        rows = self.begin()
        try:
            version = self._version()  # another process may have been quicker
            if version > VERSION:
                raise LedgerError(
                    f"this ledger was made by a newer Holdfast (format {version}); upgrade Holdfast"
                )
            if version == 1:
                from_version_1(rows, _tables())
            elif version == 0:
                start(rows, _tables())
            rows(f"PRAGMA user_version={VERSION}")
            self.commit()
            # Into the file itself: renamed or copied without its log, it must not be taken for an empty one.
            rows("PRAGMA wal_checkpoint(FULL)")
        finally:
            self.rollback()

    def _version(self) -> int:
        return int(self._writer.execute("PRAGMA user_version").fetchone()[0])


def _tables() -> Iterator[str]:
    """The statements that make the tables; facts can neither be changed nor removed."""
    for statement in TABLES:
        yield statement.replace("BIGINT", "INTEGER")
    stop = "BEGIN SELECT RAISE(ABORT, 'append-only'); END"
    for table in FACTS:
        yield f"CREATE TRIGGER {table}_stay BEFORE UPDATE ON {table} {stop}"
        yield f"CREATE TRIGGER {table}_last BEFORE DELETE ON {table} {stop}"
    yield f"CREATE TRIGGER tip_lasts BEFORE DELETE ON tip {stop}"
