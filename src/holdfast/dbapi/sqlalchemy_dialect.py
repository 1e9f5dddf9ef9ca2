"""A dialect of SQLAlchemy over `holdfast.dbapi`: what pandas.read_sql, `%sql` and BI tools connect through.

create_engine("holdfast://TOKEN@gateway.example.org/people?rho=0.01")
create_engine("holdfast://", creator=lambda: dbapi.connect(session))
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from sqlalchemy import exc, types
from sqlalchemy.dialects import registry
from sqlalchemy.engine import URL, default

import holdfast.dbapi

_TYPES: dict[str, Any] = {
    "integer": types.BigInteger,
    "real": types.Float,
    "category": types.String,
    "text": types.String,
    "boolean": types.Boolean,
    "date": types.Date,
    "time": types.Time,
    "timestamp": types.DateTime,
}
_NUMBERS = ("within", "rho", "epsilon")


class HoldfastDialect(default.DefaultDialect):
    """One table, SELECT only. Reflection is of what is declared, and free."""

    name = "holdfast"
    driver = "dbapi"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_boolean = True
    div_is_floordiv = False
    supports_alter = False
    supports_default_values = False
    postfetch_lastrowid = False
    max_identifier_length = 200

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """The module of PEP 249 behind it."""
        return holdfast.dbapi

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """holdfast://TOKEN@host:port/table?scheme=https&rho=0.01"""
        options: dict[str, Any] = dict(url.query)
        scheme = options.pop("scheme", "https")
        options = {name: float(value) if name in _NUMBERS else value for name, value in options.items()}
        place = f"{scheme}://{url.host or 'localhost'}{f':{url.port}' if url.port else ''}"
        return [place, url.username], {"table": url.database or None, **options}

    def get_schema_names(self, connection: Any, **options: Any) -> list[str]:
        """There is one."""
        return ["main"]

    def get_table_names(self, connection: Any, schema: str | None = None, **options: Any) -> list[str]:
        """The one table."""
        return [self._behind(connection).table] if schema in (None, "main") else []

    def get_view_names(self, connection: Any, schema: str | None = None, **options: Any) -> list[str]:
        """None."""
        return []

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **options: Any) -> bool:
        """Whether it is the one."""
        return table_name in self.get_table_names(connection, schema)

    def get_columns(
        self, connection: Any, table_name: str, schema: str | None = None, **options: Any
    ) -> list[Any]:
        """The declared columns."""
        declared = self._known(connection, table_name, schema).session.schema
        return [
            {"name": name, "type": _TYPES.get(kind.kind, types.String)(), "nullable": True, "default": None}
            for name, kind in declared.items()
        ]

    def get_pk_constraint(
        self, connection: Any, table_name: str, schema: str | None = None, **options: Any
    ) -> Any:
        """None."""
        self._known(connection, table_name, schema)
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(
        self, connection: Any, table_name: str, schema: str | None = None, **options: Any
    ) -> list[Any]:
        """None."""
        self._known(connection, table_name, schema)
        return []

    def get_indexes(
        self, connection: Any, table_name: str, schema: str | None = None, **options: Any
    ) -> list[Any]:
        """None."""
        self._known(connection, table_name, schema)
        return []

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Nothing is written."""

    def _get_server_version_info(self, connection: Any) -> tuple[int, ...]:
        return (1,)

    def _get_default_schema_name(self, connection: Any) -> str:
        return "main"

    def _known(self, connection: Any, table_name: str, schema: str | None) -> holdfast.dbapi.Connection:
        """Our connection, if the table is there."""
        if not self.has_table(connection, table_name, schema):
            raise exc.NoSuchTableError(table_name)
        return self._behind(connection)

    def _behind(self, connection: Any) -> holdfast.dbapi.Connection:
        """Our connection under SQLAlchemy's."""
        found: holdfast.dbapi.Connection = connection.connection.dbapi_connection
        return found


for _name in ("holdfast", "holdfast.dbapi"):
    registry.register(_name, __name__, "HoldfastDialect")
