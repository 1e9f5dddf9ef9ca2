"""What a read-only private SQL cannot do, in the words of SQLAlchemy's own tests."""

from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements


class Requirements(SuiteRequirements):
    """Nothing is created or written; there are no views, sequences, schemas or levels of isolation."""


_CLOSED = (
    "create_table", "drop_table", "table_ddl_if_exists", "insert_executemany_returning", "insert_returning",
    "update_returning", "delete_returning", "autoincrement_insert", "autoincrement_without_sequence",
    "temporary_tables", "temp_table_names", "views", "schemas", "sequences", "isolation_level", "autocommit",
    "foreign_keys", "foreign_key_ddl", "unique_constraint_reflection", "self_referential_foreign_keys",
)  # fmt: skip


def _closed(self: Any) -> Any:
    return exclusions.closed()


for _name in _CLOSED:
    setattr(Requirements, _name, property(_closed))
