"""Questions about tables and columns, which are public: answered by an empty database of the same shape, at no cost."""

from __future__ import annotations

import re
from typing import Any

from holdfast.dbapi.standard_errors import ProgrammingError
from holdfast.query.schema import Schema
from holdfast.query.wording import always_quoted

_PROBE = re.compile(
    r"information_schema\s*\.|\bpg_\w+|\bduckdb_\w+|\bsqlite_master\b|^\s*(?:show|describe|pragma|explain)\b"
    r"|\bversion\s*\(\s*\)|\bcurrent_(?:schema|database|catalog|user|setting)\b|\blimit\s+0\b"
    r"|\bwhere\s+(?:1\s*=\s*0|0\s*=\s*1|false)\b|^\s*select\s+(?:[0-9.]+|'[^']*')(?:\s+as\s+\w+)?\s*;?\s*$",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_NOTHING = re.compile(
    r"^\s*(?:begin|start transaction|commit|end|rollback|set|reset|discard)\b", re.IGNORECASE
)
_TYPES = {
    "integer": "BIGINT",
    "real": "DOUBLE",
    "category": "VARCHAR",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
}


def is_silent(statement: str) -> bool:
    """Whether it asks for nothing: a transaction or a setting."""
    return bool(_NOTHING.match(statement))


def is_probe(statement: str) -> bool:
    """Whether it asks about tables and columns, and not about rows."""
    return bool(_PROBE.search(statement)) or is_of_nothing(statement)


def is_of_nothing(statement: str) -> bool:
    """Whether it is a SELECT without FROM: of what it says itself, and of no table."""
    words = _QUOTED.sub("''", statement).lower().split()
    return words[:1] == ["select"] and "from" not in words


class Metadata:
    """An empty database with the declared tables. There is no row in it, so whatever it says is public."""

    def __init__(self, name: str, schema: Schema) -> None:
        import duckdb

        self._engine = duckdb.connect(config={"threads": 1, "enable_external_access": False})
        columns = ", ".join(
            f"{always_quoted(c)} {_TYPES.get(kind.kind, 'VARCHAR')}" for c, kind in schema.items()
        )
        self._engine.execute(f"CREATE TABLE {always_quoted(name)} ({columns})")
        self._engine.execute("SET lock_configuration = true")

    def ask(self, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The names of the columns, and the rows."""
        import duckdb

        try:
            found = self._engine.cursor().execute(statement)
            return [each[0] for each in found.description or []], found.fetchall()
        except duckdb.Error as error:
            raise ProgrammingError(
                f"the question about tables cannot be read: {error}; ask another"
            ) from None
