"""A connection of PEP 249: a session, here or at a gateway, and how exactly its statements are answered."""

from __future__ import annotations

from typing import Any, Self

from holdfast.client import connect as connect_gateway
from holdfast.dbapi.metadata_probes import Metadata, is_of_nothing, is_probe, is_silent
from holdfast.dbapi.result_cursor import Cursor, Row
from holdfast.dbapi.standard_errors import InterfaceError, ProgrammingError, translated
from holdfast.errors import QueryError, UndiscoveredError
from holdfast.planning.sql_question import Sql
from holdfast.session.answer_table import AnswerTable
from holdfast.session.asking import Asking

_ACCURACY = ("within", "rho", "epsilon", "mechanism", "rows")


class Connection:
    """Statements to one session. Nothing is written, so there is nothing to commit; what was charged stays charged."""

    def __init__(self, session: Asking, table: str, accuracy: dict[str, Any]) -> None:
        self.session, self.table, self._accuracy = session, table, accuracy
        self._metadata: Metadata | None = None
        self._closed = False

    def cursor(self) -> Cursor:
        """A cursor of its own."""
        self._refuse_closed()
        return Cursor(self)

    def execute(self, statement: str, parameters: Any = None) -> Cursor:
        """A cursor that has asked."""
        return self.cursor().execute(statement, parameters)

    def commit(self) -> None:
        """Nothing: every answer is committed before it is told."""
        self._refuse_closed()

    def rollback(self) -> None:
        """Nothing: an answer that was told cannot be taken back."""
        self._refuse_closed()

    def close(self) -> None:
        """Ask nothing more through it. The session stays open."""
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def metadata(self) -> Metadata:
        """What is public of the table: its name and its columns."""
        if self._metadata is None:
            self._metadata = Metadata(self.table, self.session.schema)
        return self._metadata

    def ask(self, statement: str) -> tuple[list[str], list[Row], list[Any]] | None:
        """Columns, rows and answers of a statement; None where it asks for nothing. Only answers are charged.

        A statement that is in the language is a question. Of the others those about tables and columns are answered
        from what is public, and the rest is refused.
        """
        self._refuse_closed()
        text = statement.strip().rstrip(";").rstrip()
        if is_silent(text):
            return None
        try:
            with translated():
                self._read(text)
                answers = self.session.sql(text, **self._accuracy)
        except ProgrammingError as refusal:
            if not is_probe(text):
                raise
            try:
                return *self.metadata.ask(text), []
            except ProgrammingError as unreadable:
                raise (refusal if is_of_nothing(text) else unreadable) from None
        assert isinstance(answers, AnswerTable)
        names, rows = answers.to_rows()
        return names, rows, list(answers)

    def _read(self, text: str) -> None:
        """Whether it is in the language; what has to be discovered first is."""
        try:
            Sql(text=text).read(self.session.schema)
        except UndiscoveredError:
            return
        except QueryError as error:
            if text.lower().startswith(("select", "with")):
                raise
            raise QueryError(
                f"{str(error).splitlines()[0]}; only SELECT statements are asked", error.text, error.position
            ) from None

    def _refuse_closed(self) -> None:
        if self._closed:
            raise InterfaceError("the connection is closed; open another")


def connect(
    session: Asking | str, token: str | None = None, *, table: str | None = None, **options: Any
) -> Connection:
    """A connection to a session, or to a table at a gateway.

    `session` is a session (here, or of `holdfast.connect`), or the address of a gateway; then `token` and `table` are
    as for `holdfast.connect`. `within`, `rho` or `epsilon` say how exactly each statement is answered; with none of
    them the plan of the session does. Other options are those of `holdfast.connect`.
    """
    accuracy = {name: options.pop(name) for name in _ACCURACY if name in options}
    with translated():
        if isinstance(session, str):
            opened: Any = connect_gateway(session, token, **options)
            asked: Asking = opened.session(table)
            return Connection(asked, table or opened.tables[0].id, accuracy)
    if options or token is not None:
        raise ProgrammingError(
            f"expected no {next(iter(options), 'token')} with a session, got some; it goes with an address"
        )
    if not hasattr(session, "sql") or not hasattr(session, "schema"):
        raise ProgrammingError(
            f"expected a session or the address of a gateway, got {type(session).__name__}; open a session first"
        )
    return Connection(session, table or "t", accuracy)
