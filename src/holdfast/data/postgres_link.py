"""Connections to a PostgreSQL server that all see the same rows."""

from __future__ import annotations

import os
import struct
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from numpy.typing import NDArray

from holdfast.errors import DataError

if TYPE_CHECKING:
    from psycopg import Connection

TIMEOUT_SECONDS = 600
_NETWORK: dict[str, Any] = {
    "connect_timeout": 30,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
"""A server that vanished is noticed after a minute."""

_IDLE = 4
_TID, _TID_ARRAY = 27, 1010  # PostgreSQL's numbers of the types tid and tid[]

Query = Callable[[str], list[tuple[Any, ...]]]
Result = TypeVar("Result")
_SETTINGS = (
    "SET statement_timeout = {timeout}; SET lock_timeout = {timeout}; SET idle_session_timeout = 0; "
    "SET idle_in_transaction_session_timeout = 0; SET standard_conforming_strings = on; SET jit = off; "
    "SET application_name = 'holdfast'"
)


class Link:
    """A snapshot of a database, and connections that read it.

    One connection keeps the snapshot; others are opened as threads need them. Should the server go away, the
    calls under way fail, and the next one connects again; `check` then looks at the new snapshot and raises
    unless it holds the same rows.
    Guarantee: transactions are read-only, statements end after `timeout` seconds, and what the server says
    about a failure never leaves, neither as message nor as cause. All methods may be called from several
    threads at once, and in forked children.
    """

    def __init__(self, url: str, timeout: int = TIMEOUT_SECONDS) -> None:
        self._url, self._timeout = url, timeout
        self._check: Callable[[Query], None] | None = None
        self._closed = False
        self._start()
        self._snapshot = ""
        self._attempt(self._keep)

    def _start(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._keeper: list[Connection[Any]] = []  # one, or none before the first snapshot
        self._idle: list[Connection[Any]] = []
        self._cleanup = weakref.finalize(self, _close, self._process, self._keeper, self._idle)

    def guard(self, check: Callable[[Query], None]) -> None:
        """Set what is asked of every later snapshot; it is given a function that runs a query in it."""
        self._check = check

    def rows(
        self, statement: str, parameters: Sequence[object] = (), *, by_place: bool = False
    ) -> list[tuple[Any, ...]]:
        """All rows of a small result. Statements name parameters $1, $2, ...

        `by_place` tells the planner to reach rows one by one: it overrates what that costs.
        """
        return self._attempt(lambda: self._read(statement, parameters, by_place))

    def _read(self, statement: str, parameters: Sequence[object], by_place: bool) -> list[tuple[Any, ...]]:
        connection = self._lend()
        try:
            if by_place:
                _rows(connection, "SET LOCAL enable_seqscan = off")
            found = _rows(connection, statement, parameters)
            if by_place:
                _rows(connection, "SET LOCAL enable_seqscan = on")
        except BaseException:
            connection.close()
            raise
        with self._lock:
            if len(self._idle) < _IDLE and not self._closed:
                self._idle.append(connection)
                return found
        connection.close()
        return found

    def close(self) -> None:
        """Let go of all connections. Closing twice is allowed."""
        self._own()
        with self._lock:
            self._closed = True
            self._cleanup()

    def _own(self) -> None:
        if self._process != os.getpid():  # the parent's connections are not ours to use or to close
            self._start()

    def _lend(self) -> Connection[Any]:
        """A connection inside the snapshot."""
        self._own()
        with self._lock:
            if self._closed:
                raise DataError("expected an open source, got a closed one; open the data again")
            while self._idle:
                connection = self._idle.pop()
                if _alive(connection):
                    return connection
            connection = self._connect()
            try:
                _rows(connection, f"SET TRANSACTION SNAPSHOT '{self._snapshot}'")
                return connection
            except self._failures():
                connection.close()
            # Nobody holds the snapshot any more.
            self._keep()
            connection = self._connect()
            _rows(connection, f"SET TRANSACTION SNAPSHOT '{self._snapshot}'")
            return connection

    def _keep(self) -> None:
        """A new snapshot, and the connection that keeps it. One thread at a time."""
        keeper = self._connect()
        try:
            if self._check is not None:
                self._check(lambda statement: _rows(keeper, statement))
            self._snapshot = str(_rows(keeper, "SELECT pg_export_snapshot()")[0][0])
        except BaseException:
            keeper.close()
            raise
        _close(self._process, self._keeper)
        self._keeper.append(keeper)

    def _connect(self) -> Connection[Any]:
        try:
            import psycopg
        except ImportError:
            raise DataError("expected psycopg, got none; run pip install 'holdfast[postgres]'") from None
        connection = psycopg.connect(self._url, autocommit=True, prepare_threshold=None, **_NETWORK)
        try:
            if connection.info.server_version < 140000:
                raise DataError("expected PostgreSQL 14 or newer, got an older server")
            _rows(connection, _SETTINGS.format(timeout=1000 * self._timeout))
            if connection.info.server_version >= 170000:
                _rows(connection, "SET transaction_timeout = 0")
            _rows(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        except BaseException:
            connection.close()
            raise
        return connection

    def _failures(self) -> tuple[type[Exception], ...]:
        import psycopg

        return (psycopg.Error, OSError)

    def _attempt(self, action: Callable[[], Result]) -> Result:
        try:
            return action()
        except self._failures() as error:
            state = getattr(error, "sqlstate", None)
        # Raised outside the handler: not even the chain of causes may carry the server's message.
        raise failure(state, self._timeout)


class OutOfRange(DataError):
    """Arithmetic left the range of double precision, which PostgreSQL treats as a failure."""


def failure(state: str | None, timeout: int) -> DataError:
    """What may be said about a failure with this SQLSTATE."""
    match state:
        case "22003":
            return OutOfRange("expected numbers within double precision, got others on the server")
        case "57014":
            return DataError(f"expected an answer of PostgreSQL within {timeout} s, got none")
        case "42501":
            return DataError("expected the right to read the table, got a refusal; GRANT SELECT to this user")
        case "42601" | "42602":
            return DataError(
                "expected the name of a table, got another text; write unusual names as table='\"My table\"'"
            )
        case "28000" | "28P01" | "3D000":
            return DataError("expected PostgreSQL to let this user in, got a refusal; check the URL")
        case None:
            return DataError("expected a PostgreSQL server, got none or a broken connection; ask again")
    return DataError(f"expected to read the rows, got failure {state} from PostgreSQL; ask again")


@dataclass(frozen=True, slots=True)
class Tids:
    """An array of tuple identifiers as a parameter: records of length (6), page and slot, big-endian."""

    packed: NDArray[Any]

    def binary(self) -> bytes:
        """One dimension, no NULLs, element type tid, so many elements, counted from 1."""
        return struct.pack(">iiIii", 1, 0, _TID, len(self.packed), 1) + self.packed.tobytes()


def _rows(
    connection: Connection[Any], statement: str, parameters: Sequence[object] = ()
) -> list[tuple[Any, ...]]:
    """The rows of a result. Statements name parameters $1, $2, ...; values come in their binary form."""
    from psycopg import RawCursor
    from psycopg.adapt import Dumper
    from psycopg.pq import Format

    class TidsDumper(Dumper):
        format, oid = Format.BINARY, _TID_ARRAY

        def dump(self, obj: Tids) -> bytes:
            return obj.binary()

    with RawCursor(connection) as cursor:
        cursor.adapters.register_dumper(Tids, TidsDumper)
        # Several statements may stand in one text, but then nothing comes in binary form.
        cursor.execute(statement, parameters or None, binary=";" not in statement)
        return cursor.fetchall() if cursor.description else []


def _alive(connection: Connection[Any]) -> bool:
    """Whether an idle connection still answers; asking costs a tenth of a millisecond."""
    import psycopg

    try:
        connection.execute("SELECT")
    except (psycopg.Error, OSError):
        connection.close()
        return False
    return True


def _close(process: int, *groups: list[Connection[Any]]) -> None:
    """Close connections and forget them, except in a forked child: there they belong to the parent."""
    for connections in groups:
        while process == os.getpid() and connections:
            connections.pop().close()
