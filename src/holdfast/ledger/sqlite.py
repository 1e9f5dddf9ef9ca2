"""A ledger in one SQLite file, shared by threads and processes."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.errors import LedgerError
from holdfast.formats import FORMATS, check_format
from holdfast.ledger.anchor import flocked
from holdfast.ledger.chained import ChainedLedger
from holdfast.ledger.reader import Rows, Stream
from holdfast.ledger.sql_schema import FACTS, TABLES, make_ledger
from holdfast.ledger.sqlite_readers import Readers, connect

_FAILURES = (sqlite3.Error, OverflowError, UnicodeError)  # the last two: what SQLite cannot hold


class SqliteLedger(ChainedLedger):
    """A ledger in a file. Write-ahead log, full sync, `BEGIN IMMEDIATE`: what returned is on disk.

    `anchors` is the folder of its anchor; see `holdfast.ledger.anchor.anchors_folder`.
    """

    def __init__(
        self, path: Path | str, anchors: Path | str | None = None, *, acknowledged: bool = False
    ) -> None:
        database, folder = SqliteDatabase(Path(path)), Path(path).absolute().parent
        super().__init__(database, anchors, folder, acknowledged=acknowledged)


class SqliteDatabase:
    """See `Database`. One connection writes, others read what is committed."""

    BEGIN = "BEGIN IMMEDIATE"
    """Takes the write lock before reading, so no total is read too early."""

    def __init__(self, path: Path) -> None:
        self._path, self.address = path.absolute(), str(path.absolute())
        self._readers = Readers(self._path)
        try:
            self._writer = connect(self._path)
            try:
                made = self._is_made()
                self._writer.execute("PRAGMA journal_mode=WAL")
                self._writer.execute("PRAGMA synchronous=FULL")
                if not made:
                    self._make()
            except BaseException:
                self._writer.close()
                raise
        except sqlite3.Error as error:
            raise LedgerError(f"the ledger {path.name} cannot be opened: {error}; see to the file") from None

    def read(self, sql: str, *values: object) -> list[Any]:
        try:
            return self._readers.rows(sql, values)
        except _FAILURES as error:
            raise LedgerError(f"the ledger cannot be read: {error}; see to the file") from None

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
        connection = connect(self._path)
        # A byte that is no text can only come from tampering; it must not hide where.
        connection.text_factory = lambda text: text.decode(errors="replace")
        try:
            connection.execute("BEGIN")
            yield connection.execute
        except sqlite3.Error as error:
            raise LedgerError(f"the ledger cannot be read: {error}; see to the file") from None
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
            raise LedgerError(f"the ledger cannot be written: {error}; see to the file") from None

    def _is_made(self) -> bool:
        """Whether the tables are there; LedgerError for a file with others, which is left as it is."""
        (version,) = self._writer.execute("PRAGMA user_version").fetchone()
        if version == 0 and self._writer.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
            return False
        check_format("ledger", version, self.address)
        return True

    def _make(self) -> None:
        """Make the tables of a new file, in one transaction."""
        rows = self.begin()
        try:
            if not self._is_made():  # another process may have been quicker
                make_ledger(rows, _tables())
                rows(f"PRAGMA user_version={FORMATS['ledger']}")
            self.commit()
            # Into the file itself: renamed or copied without its log, it must not be taken for an empty one.
            rows("PRAGMA wal_checkpoint(FULL)")
        finally:
            self.rollback()


def _tables() -> Iterator[str]:
    """The statements that make the tables; facts can neither be changed nor removed."""
    for statement in TABLES:
        yield statement.replace("BIGINT", "INTEGER")
    stop = "BEGIN SELECT RAISE(ABORT, 'append-only'); END"
    for table in FACTS:
        yield f"CREATE TRIGGER {table}_stay BEFORE UPDATE ON {table} {stop}"
        yield f"CREATE TRIGGER {table}_last BEFORE DELETE ON {table} {stop}"
    yield f"CREATE TRIGGER tip_lasts BEFORE DELETE ON tip {stop}"
