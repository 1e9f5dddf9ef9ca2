"""A ledger in one SQLite file, shared by threads and processes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from holdfast.errors import LedgerError
from holdfast.ledger.entry import ALWAYS, Account, Charge, Entry, Stale, Totals, While, refuse_overspending
from holdfast.ledger.memory import check_account, check_limit

VERSION = 1
_BUSY_SECONDS = 60.0

_TABLES = """
CREATE TABLE IF NOT EXISTS limits (id INTEGER PRIMARY KEY, name TEXT, currency TEXT, units INTEGER);
CREATE TABLE IF NOT EXISTS accounts (
  id INTEGER PRIMARY KEY, name TEXT, currency TEXT, units INTEGER, terms TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS accounts_by_name ON accounts (name, id);
CREATE TABLE IF NOT EXISTS entries (
  id INTEGER PRIMARY KEY, session TEXT NOT NULL, key TEXT NOT NULL, plan TEXT NOT NULL, event TEXT NOT NULL,
  session_units INTEGER NOT NULL CHECK (session_units >= 0), table_units INTEGER NOT NULL CHECK (table_units >= 0),
  queries INTEGER NOT NULL CHECK (queries >= 0),
  session_entries INTEGER NOT NULL, session_answers INTEGER NOT NULL, session_total INTEGER NOT NULL,
  table_entries INTEGER NOT NULL, table_answers INTEGER NOT NULL, table_total INTEGER NOT NULL,
  UNIQUE (session, key), UNIQUE (session, session_entries), UNIQUE (table_entries));
CREATE TABLE IF NOT EXISTS answers (entry INTEGER PRIMARY KEY REFERENCES entries, answer TEXT NOT NULL);
CREATE TRIGGER IF NOT EXISTS entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER IF NOT EXISTS entries_last BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER IF NOT EXISTS answers_stay BEFORE UPDATE ON answers BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER IF NOT EXISTS answers_last BEFORE DELETE ON answers BEGIN SELECT RAISE(ABORT, 'append-only'); END;
"""

_ENTRY = """SELECT e.id, e.session, e.key, e.plan, e.event, e.session_units, e.table_units, e.queries, a.answer
FROM entries e LEFT JOIN answers a ON a.entry = e.id """


class SqliteLedger:
    """See `Ledger`. Write-ahead log, full sync, `BEGIN IMMEDIATE`: a reservation that returned is on disk.

    Running totals are kept in each entry, so a charge costs the same however many came before it.
    """

    def __init__(self, path: Path) -> None:
        self._lock = RLock()
        try:
            self._connection = sqlite3.connect(
                path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version > VERSION:
                raise LedgerError(
                    f"this ledger was made by a newer Holdfast (format {version}); upgrade Holdfast"
                )
            if version < VERSION:
                with self._transaction():
                    for statement in _statements(_TABLES):
                        self._connection.execute(statement)
                    self._connection.execute(f"PRAGMA user_version={VERSION}")
        except sqlite3.Error as error:
            raise LedgerError(f"the ledger {path.name} cannot be opened: {error}") from None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """One atomic change. IMMEDIATE takes the write lock before reading, so no total is read too early."""
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    yield
                except BaseException:
                    self._connection.execute("ROLLBACK")
                    raise
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise LedgerError(f"the ledger cannot be written: {error}") from None

    def _rows(self, sql: str, *values: object) -> list[Any]:
        with self._lock:
            try:
                return self._connection.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise LedgerError(f"the ledger cannot be read: {error}") from None

    def limit(self) -> Account | None:
        rows = self._rows("SELECT name, currency, units FROM limits ORDER BY id DESC LIMIT 1")
        return Account(*rows[0]) if rows else None

    def set_limit(self, account: Account) -> None:
        with self._transaction():
            check_limit(self.limit(), account, self.totals().units)
            self._rows(
                "INSERT INTO limits (name, currency, units) VALUES (?, ?, ?)",
                account.name, account.currency, account.limit,
            )  # fmt: skip

    def _account(self, name: str) -> Account | None:
        rows = self._rows(
            "SELECT name, currency, units, terms FROM accounts WHERE name = ? ORDER BY id DESC LIMIT 1", name
        )
        return Account(*rows[0]) if rows else None

    def open(self, account: Account) -> Account:
        with self._transaction():
            standing = self._account(account.name)
            check_account(standing, account, self.totals(account.name).units)
            if standing != account:
                self._rows(
                    "INSERT INTO accounts (name, currency, units, terms) VALUES (?, ?, ?, ?)",
                    account.name, account.currency, account.limit, account.terms,
                )  # fmt: skip
        return account

    def accounts(self) -> Iterator[Account]:
        rows = self._rows(
            "SELECT name, currency, units, terms FROM accounts WHERE id IN (SELECT max(id) FROM accounts GROUP BY name)"
        )
        return (Account(*row) for row in rows)

    def reserve(
        self, session: str, key: str, plan: str, event: str, charge: Charge, holds: While = ALWAYS
    ) -> Entry:
        with self._transaction():
            mine = self.totals(session).plus(charge.queries, charge.session)
            all_ = self.totals().plus(charge.queries, charge.table)
            cap = self.limit()
            holds.check(mine, all_, cap)
            if self.find(session, key) is not None:
                raise Stale("this was reserved meanwhile")
            account = self._account(session)
            if account is None:
                raise LedgerError(f"session {session!r} has no account in this ledger")
            refuse_overspending(account, mine.units, charge.session)
            if cap is not None:
                refuse_overspending(cap, all_.units, charge.table)
            cursor = self._connection.execute(
                "INSERT INTO entries (session, key, plan, event, session_units, table_units, queries,"
                " session_entries, session_answers, session_total, table_entries, table_answers, table_total)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    session, key, plan, event, charge.session, charge.table, charge.queries,
                    mine.entries, mine.answers, mine.units, all_.entries, all_.answers, all_.units,
                ),
            )  # fmt: skip
            number = cursor.lastrowid
        assert number is not None
        return Entry(number, session, key, plan, event, charge, None)

    def record(self, entry: int, answer: str) -> str:
        with self._transaction():
            self._connection.execute("INSERT OR IGNORE INTO answers VALUES (?, ?)", (entry, answer))
            return str(self._rows("SELECT answer FROM answers WHERE entry = ?", entry)[0][0])

    def find(self, session: str, key: str) -> Entry | None:
        rows = self._rows(_ENTRY + "WHERE e.session = ? AND e.key = ?", session, key)
        return _entry(rows[0]) if rows else None

    def totals(self, session: str | None = None) -> Totals:
        if session is None:
            rows = self._rows(
                "SELECT table_entries, table_answers, table_total FROM entries ORDER BY table_entries DESC LIMIT 1"
            )
        else:
            rows = self._rows(
                "SELECT session_entries, session_answers, session_total FROM entries WHERE session = ?"
                " ORDER BY session_entries DESC LIMIT 1",
                session,
            )
        return Totals(*rows[0]) if rows else Totals()

    def entries(self, session: str | None = None) -> Iterator[Entry]:
        where, values = ("", ()) if session is None else ("WHERE e.session = ? ", (session,))
        return (_entry(row) for row in self._rows(_ENTRY + where + "ORDER BY e.id", *values))

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def _entry(row: Any) -> Entry:
    number, session, key, plan, event, session_units, table_units, queries, answer = row
    return Entry(number, session, key, plan, event, Charge(session_units, table_units, queries), answer)


def _statements(script: str) -> Iterator[str]:
    """The statements of a script; a trigger's body holds semicolons of its own."""
    statement = ""
    for line in script.strip().splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
