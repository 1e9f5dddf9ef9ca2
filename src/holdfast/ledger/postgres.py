"""Ledgers in a PostgreSQL database, shared by machines."""

from __future__ import annotations

import contextlib
import os
import re
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from holdfast.errors import LedgerError
from holdfast.formats import FORMATS, check_format
from holdfast.ledger.chained import ChainedLedger
from holdfast.ledger.postgres_connection import connect
from holdfast.ledger.reader import Rows, Stream
from holdfast.ledger.sql_schema import FACTS, TABLES, make_ledger

if TYPE_CHECKING:
    from psycopg import Connection

Result = TypeVar("Result")

CONNECTING, SILENT = 10, 75.0
"""For how many seconds a connection is waited for, and a statement: longer than for a lock."""
_SETTINGS = (
    "SET synchronous_commit = on; SET statement_timeout = 0; SET lock_timeout = '60s'; "
    "SET idle_session_timeout = 0; SET idle_in_transaction_session_timeout = '60s'; "
    "SET application_name = 'holdfast ledger'"
)
"""A client that fell silent in a transaction lets go of the lock after a minute."""

_REGISTRY = (
    "CREATE SCHEMA IF NOT EXISTS holdfast",
    "CREATE TABLE IF NOT EXISTS holdfast.ledgers"
    " (name TEXT PRIMARY KEY, space TEXT NOT NULL UNIQUE, format BIGINT NOT NULL)",
)
_MAKING = 4_857_203_118  # the number of the lock under which ledgers are made


class PostgresLedger(ChainedLedger):
    """The ledger of this name in the database at a postgresql:// address, made if new.

    Each has tables of its own, in a schema of its own. Its anchor is on this machine; see
    `holdfast.ledger.anchor.anchors_folder`.
    """

    def __init__(
        self,
        url: str,
        ledger: str,
        anchors: Path | str | None = None,
        *,
        create: bool = True,
        acknowledged: bool = False,
    ) -> None:
        super().__init__(PostgresDatabase(url, ledger, create), anchors, None, acknowledged=acknowledged)


class PostgresDatabase:
    """See `Database`. One connection writes, another reads; one that was lost is opened again.

    What the server says about a failure stays here: only its SQLSTATE is told.
    """

    LOCK = "SELECT 1 FROM tip FOR UPDATE"
    """Whoever holds the tip's row is the one who writes."""

    def __init__(self, url: str, ledger: str, create: bool = True) -> None:
        _failures()  # complains if psycopg is missing
        self._url, self._ledger = url, ledger
        self.address = f"{without_password(url)}#{ledger}"
        self._space = ""
        self._process, self._reading = os.getpid(), Lock()
        self._connections: dict[str, Connection[Any]] = {}
        self._cleanup = weakref.finalize(self, _close, self._process, self._connections)
        self._attempt(lambda: self._prepare(create))

    def read(self, sql: str, *values: object) -> list[Any]:
        if not self._reading.acquire(timeout=SILENT):
            raise LedgerError("the ledger's server has not answered for long; look at it, and ask again")
        try:
            return self._attempt(lambda: self._again(lambda: self._read(sql, values)))
        finally:
            self._reading.release()

    def begin(self) -> Rows:
        self._attempt(lambda: self._again(self._begin))
        return self._write

    def commit(self) -> None:
        self._write("COMMIT")

    def rollback(self) -> None:
        writer = self._connections.get("writer")
        with contextlib.suppress(*_failures()):
            if writer is not None and not writer.closed and writer.info.transaction_status.name != "IDLE":
                writer.execute("ROLLBACK")

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Stream]:
        connection = self._attempt(self._connect)
        try:
            _run(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield lambda sql: _stream(connection, sql)
        except _failures() as error:
            raise _failure(error) from None
        finally:
            connection.close()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """The lock belongs to a connection: whoever loses that has lost the turn too."""
        self._attempt(lambda: self._again(lambda: self._turn("pg_advisory_lock")))
        try:
            yield
        finally:
            try:
                self._turn("pg_advisory_unlock")
            except _failures():
                self._connections.pop("turn").close()

    def close(self) -> None:
        self._cleanup()
        self._url = ""

    def _read(self, sql: str, values: tuple[object, ...]) -> list[Any]:
        return _run(self._connection("reader"), sql, values)

    def _begin(self) -> None:
        writer = self._connection("writer")
        self.rollback()
        _run(writer, "BEGIN ISOLATION LEVEL READ COMMITTED")
        _run(writer, self.LOCK)

    def _turn(self, function: str) -> None:
        _run(self._connection("turn"), f"SELECT {function}(hashtextextended(?, 0))", (self._space,))

    def _connection(self, role: str) -> Connection[Any]:
        """The connection of this role; a new one if it was lost."""
        connection = self._connections.get(role)
        if connection is None or connection.closed:
            connection = self._connections[role] = self._connect()
        return connection

    def _write(self, sql: str, *values: object) -> list[Any]:
        writer = self._connections["writer"]
        return self._attempt(lambda: _run(writer, sql, values))

    def _again(self, action: Callable[[], Result]) -> Result:
        """Once more on a new connection, if the old one was lost: nothing was written yet."""
        try:
            return action()
        except _failures():
            if not any(connection.closed for connection in self._connections.values()):
                raise
        return action()

    def _attempt(self, action: Callable[[], Result]) -> Result:
        try:
            return action()
        except _failures() as error:
            failure = _failure(error)
        # Raised outside the handler: not even the chain of causes may carry the server's message.
        raise failure

    def _connect(self) -> Connection[Any]:
        if not self._url or self._process != os.getpid():
            raise LedgerError("expected an open ledger, got one that was closed or forked; open it again")
        space = f'; SET search_path TO "{self._space}"' if self._space else ""
        return connect(self._url, connecting=CONNECTING, silent=SILENT, settings=_SETTINGS + space)

    def _prepare(self, create: bool) -> None:
        """Find the ledger's schema, or make it; whoever comes second finds the first one's."""
        connection = self._connect()
        try:
            known = _run(connection, "SELECT to_regclass('holdfast.ledgers') IS NOT NULL")[0][0]
            found = self._find(connection) if known else []
            if not found and not create:
                raise LedgerError(
                    f"expected a ledger {self._ledger!r} in this database, got none; check the name"
                )
            if not found:
                _run(connection, "BEGIN")
                _run(connection, "SELECT pg_advisory_xact_lock(?)", (_MAKING,))
                for statement in _REGISTRY:
                    _run(connection, statement)
                found = self._find(connection) or [self._make(connection)]
                _run(connection, "COMMIT")
        finally:
            connection.close()
        space, version = found[0]
        check_format("ledger", version, self.address)
        self._space = space

    def _find(self, connection: Connection[Any]) -> list[Any]:
        return _run(connection, "SELECT space, format FROM holdfast.ledgers WHERE name = ?", (self._ledger,))

    def _make(self, connection: Connection[Any]) -> tuple[str, int]:
        space = f"holdfast_{os.urandom(16).hex()}"
        _run(connection, f'CREATE SCHEMA "{space}"')
        _run(connection, f'SET LOCAL search_path TO "{space}"')
        make_ledger(lambda sql, *values: _run(connection, sql, values), _tables())
        made = space, FORMATS["ledger"]
        _run(connection, "INSERT INTO holdfast.ledgers VALUES (?, ?, ?)", (self._ledger, *made))
        return made


def without_password(url: str) -> str:
    """An address that may be shown."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    query = re.sub(r"(^|&)(password|passfile|sslpassword)=[^&]*", "", parts.query).lstrip("&")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}", query=query))


def _tables() -> Iterator[str]:
    """The statements that make the tables; facts can neither be changed nor removed."""
    yield from TABLES
    yield (
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'append-only'; END $$"
    )
    for table in FACTS:
        yield (
            f"CREATE TRIGGER {table}_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION refuse()"
        )
    yield (
        "CREATE TRIGGER tip_lasts BEFORE DELETE OR TRUNCATE ON tip FOR EACH STATEMENT EXECUTE FUNCTION refuse()"
    )


def _run(connection: Connection[Any], sql: str, values: tuple[object, ...] = ()) -> list[Any]:
    """Statements name their values by `?`."""
    cursor = connection.execute(sql.replace("?", "%s"), values or None)
    return cursor.fetchall() if cursor.description else []


def _stream(connection: Connection[Any], sql: str) -> Iterator[Any]:
    """The rows of a result, some at a time."""
    with connection.cursor(f"c{os.urandom(8).hex()}") as cursor:
        cursor.itersize = 1000
        cursor.execute(sql)
        yield from cursor


def _close(process: int, connections: dict[str, Connection[Any]]) -> None:
    """Close connections and forget them, except in a forked child: there they belong to the parent."""
    while process == os.getpid() and connections:
        connections.popitem()[1].close()


def _failures() -> tuple[type[Exception], ...]:
    try:
        import psycopg
    except ImportError:
        raise LedgerError("expected psycopg, got none; run pip install 'holdfast[server]'") from None
    return (psycopg.Error, OSError, UnicodeError)


def _failure(error: Exception) -> LedgerError:
    """What may be said about a failure."""
    import psycopg

    state = getattr(error, "sqlstate", None)
    if state is None and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | OSError):
        return LedgerError(
            "the ledger's server is away or the connection broke; ask again: what was committed is found by its "
            "key, and nothing was told before"
        )
    match state:
        case None:
            return LedgerError("expected text and whole numbers that PostgreSQL can hold, got others")
        case "28000" | "28P01" | "3D000":
            return LedgerError("expected PostgreSQL to let this user in, got a refusal; check the address")
        case "42501":
            return LedgerError(
                "expected the right to keep a ledger in this database, got a refusal; GRANT CREATE to this user"
            )
        case "55P03":
            return LedgerError("the ledger was busy for a minute; ask again")
    return LedgerError(f"the ledger cannot be used: PostgreSQL says {state}; see to the database")
