"""A cursor of PEP 249: one statement at a time, and its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

from holdfast.dbapi.literal_parameters import with_parameters
from holdfast.dbapi.standard_errors import InterfaceError, NotSupportedError
from holdfast.dbapi.standard_types import type_code

if TYPE_CHECKING:
    from holdfast.dbapi.session_connection import Connection

Row = tuple[Any, ...]


class Cursor:
    """Asks, and holds the rows of the last answer. `answers` are the answers themselves, with their intervals."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.description: list[tuple[Any, ...]] | None = None
        self.answers: list[Any] = []
        self._rows: list[Row] | None = None
        self._place = 0
        self._closed = False

    @property
    def rowcount(self) -> int:
        """How many rows the last statement gave; -1 where there was none."""
        return -1 if self._rows is None else len(self._rows)

    def execute(self, statement: str, parameters: Sequence[Any] | None = None) -> Self:
        """Ask; all aggregates of a SELECT are charged, or none."""
        self._refuse_closed()
        self._rows, self.description, self.answers = None, None, []
        found = self.connection.ask(with_parameters(statement, parameters))
        if found is not None:
            names, rows, self.answers = found
            codes = [type_code([row[place] for row in rows]) for place in range(len(names))]
            self.description = [
                (name, code, None, None, None, None, True) for name, code in zip(names, codes, strict=True)
            ]
            self._rows, self._place = rows, 0
        return self

    def executemany(self, statement: str, parameters: Sequence[Sequence[Any]]) -> Self:
        """Refused: each would be a question of its own, and the answers of all but the last would be lost."""
        raise NotSupportedError("many statements at once are not asked; ask one after another")

    def fetchone(self) -> Row | None:
        """The next row; None after the last."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next rows, `arraysize` of them if it is not said how many."""
        rows = self._told()
        first = self._place
        self._place = min(len(rows), first + (self.arraysize if size is None else size))
        return rows[first : self._place]

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        return self.fetchmany(len(self._told()))

    def __iter__(self) -> Iterator[Row]:
        while (row := self.fetchone()) is not None:
            yield row

    def setinputsizes(self, sizes: Any) -> None:
        """Of PEP 249; does nothing."""

    def setoutputsize(self, size: Any, column: Any = None) -> None:
        """Of PEP 249; does nothing."""

    def close(self) -> None:
        """Forget the rows."""
        self._closed, self._rows = True, None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed; open another")

    def _told(self) -> list[Row]:
        self._refuse_closed()
        if self._rows is None:
            raise InterfaceError("there are no rows to fetch; execute a SELECT first")
        return self._rows
