"""A private DuckDB database whose messages stay inside: they may quote the rows."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from holdfast.data.duckdb_dialect import DUCKDB
from holdfast.errors import DataError, HoldfastError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

STREAM = "stream"
"""The relation under which `Engine.adopt` shows an Arrow stream."""

GIVEN = "given"
"""The relation, and its only column, under which `Engine.arrays` shows an array."""

MEMORY = "800MB"
"""What a database on disk may take; an ingest may have two."""

_POLL_SECONDS = 0.1
_LINE = re.compile(r"\A[A-Za-z ]*: CSV Error on Line: ([0-9]{1,18})\n")


class Engine:
    """A DuckDB database of our own, in memory or, given a `folder`, in a hidden file inside it.

    Guarantee: what DuckDB says about a failure never leaves, neither as message nor as cause. Everything
    that is written to disk lies in a folder which only this user can enter, and goes away with `close` or
    with the object. All methods may be called from several threads at once.
    """

    def __init__(self, folder: Path | None = None) -> None:
        import duckdb

        self._failures = (duckdb.Error, RuntimeError, UnicodeError, ImportError, ValueError)
        try:
            scratch = tempfile.mkdtemp(prefix=".holdfast-", dir=folder)
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise DataError(
                f"expected to write in {folder or tempfile.gettempdir()}, got {reason}; name another folder"
            ) from None
        database = ":memory:" if folder is None else os.path.join(scratch, "codes.duckdb")
        limit = {} if folder is None else {"memory_limit": MEMORY}
        self._connection = duckdb.connect(database, config={"temp_directory": scratch, **limit})
        self._cleanup = weakref.finalize(self, _close, self._connection, scratch)
        self._changed = threading.Condition()
        self._running: list[DuckDBPyConnection] = []
        self._closed = False

    def run(self, statement: str, refusal: str = "") -> None:
        """Run a statement; a failure becomes a DataError with this message."""
        self._attempt(lambda cursor: cursor.execute(statement), refusal)

    def rows(self, query: str, refusal: str = "") -> list[tuple[Any, ...]]:
        """All rows of a small result."""
        found: list[tuple[Any, ...]] = self._attempt(lambda cursor: cursor.execute(query).fetchall(), refusal)
        return found

    def arrays(
        self, query: str, refusal: str = "", *, given: NDArray[Any] | None = None
    ) -> dict[str, NDArray[Any]]:
        """A result as one array for each column. The query may read an array as column GIVEN of GIVEN."""

        def action(cursor: DuckDBPyConnection) -> dict[str, NDArray[Any]]:
            if given is not None:
                cursor.register(GIVEN, {GIVEN: given})
            found: dict[str, NDArray[Any]] = cursor.execute(query).fetchnumpy()
            return found

        result: dict[str, NDArray[Any]] = self._attempt(action, refusal)
        return result

    def insert(self, table: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Append arrays of one length to a table, in the order of its columns."""

        def action(cursor: DuckDBPyConnection) -> None:
            cursor.register(GIVEN, dict(columns))
            cursor.execute(f"INSERT INTO {table} SELECT * FROM {GIVEN}")

        self._attempt(action, "")

    def types(self, relation: str, refusal: str = "") -> dict[str, str]:
        """The columns of whatever may stand behind FROM, and their DuckDB types."""
        return {row[0]: row[1] for row in self.rows(f"DESCRIBE SELECT * FROM {relation}", refusal)}

    def adopt(self, stream: object, statement: Callable[[dict[str, str]], str], refusal: str = "") -> None:
        """Run a statement over the relation STREAM, which reads an object with `__arrow_c_stream__`.

        The statement is built from the stream's column types. pyarrow is not needed.
        """

        def action(cursor: DuckDBPyConnection) -> None:
            cursor.register(STREAM, _Stream(stream))
            described = cursor.execute(f"DESCRIBE SELECT * FROM {STREAM}").fetchall()
            cursor.execute(statement({row[0]: row[1] for row in described}))
            cursor.unregister(STREAM)

        self._attempt(action, refusal)

    def watch(self, statement: str, progress: Callable[[float], None], refusal: str = "") -> None:
        """Run a long statement and report the fraction that is done."""

        def action(cursor: DuckDBPyConnection) -> None:
            failure: list[BaseException] = []
            cursor.execute("SET enable_progress_bar = true")
            cursor.execute("SET enable_progress_bar_print = false")

            def work() -> None:
                try:
                    cursor.execute(statement)
                except BaseException as error:
                    failure.append(error)

            worker = threading.Thread(target=work)
            worker.start()
            done = 0.0
            try:
                while worker.is_alive():
                    worker.join(_POLL_SECONDS)
                    # DuckDB falls back to -1 when it is done.
                    done = max(done, min(cursor.query_progress() / 100, 1.0))
                    progress(done)
            finally:
                if worker.is_alive():
                    cursor.interrupt()
                worker.join()
            if failure:
                raise failure[0]

        self._attempt(action, refusal)

    def lock(self, files: Sequence[str]) -> None:
        """Allow no file but these from now on, and no change to that."""
        if files:
            self.run(f"SET allowed_paths = [{', '.join(map(DUCKDB.text, files))}]")
        self.run("SET enable_external_access = false")
        self.run("SET lock_configuration = true")

    def close(self) -> None:
        """Break off what other threads run, drop the database and all that it wrote. Twice is allowed."""
        with self._changed:
            self._closed = True
            while self._running:  # DuckDB refuses to close a busy database
                for cursor in self._running:
                    cursor.interrupt()
                self._changed.wait(_POLL_SECONDS)
            self._cleanup()

    def _attempt(self, action: Callable[[DuckDBPyConnection], Any], refusal: str) -> Any:
        with self._changed:
            if self._closed:
                raise DataError("expected an open source, got a closed one; open the data again")
            cursor = self._connection.cursor()
            self._running.append(cursor)
        try:
            with cursor:
                return action(cursor)
        except HoldfastError:
            raise
        except self._failures as error:
            line, foreign = _LINE.search(str(error)), "is not valid UTF8" in str(error)
        finally:
            with self._changed:
                self._running.remove(cursor)
                self._changed.notify_all()
        # Raised outside the handler: not even the chain of causes may carry DuckDB's message.
        message = refusal or (
            "expected texts in UTF-8, got others; write the file again"
            if foreign
            else "expected to read the rows, got a failure inside DuckDB; open the data again"
        )
        raise DataError(message + (f" (near line {line[1]})" if line else ""))


class _Stream:
    """Hides all of a frame but its Arrow stream: of frames it knows, DuckDB would ask for pyarrow."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._inner.__arrow_c_stream__(requested_schema)


def _close(connection: DuckDBPyConnection, scratch: str) -> None:
    connection.close()
    shutil.rmtree(scratch, ignore_errors=True)
