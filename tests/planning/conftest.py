"""The same people as in tests/session."""

from session.conftest import data, make_table, table

__all__ = ["data", "make_table", "table"]
