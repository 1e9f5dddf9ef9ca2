"""Ask a session through Python's database interface (PEP 249): `connect(session)`, or `connect(url, token, table=...)`.

What pandas.read_sql, a notebook's `%sql` and a BI tool need. A SELECT is a question and is charged as one; questions
about tables and columns are free. `holdfast.dbapi.sqlalchemy_dialect` is a dialect of SQLAlchemy over it.
"""

from holdfast.dbapi.result_cursor import Cursor
from holdfast.dbapi.session_connection import Connection, connect
from holdfast.dbapi.standard_errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from holdfast.dbapi.standard_types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
    apilevel,
    paramstyle,
    threadsafety,
)

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
