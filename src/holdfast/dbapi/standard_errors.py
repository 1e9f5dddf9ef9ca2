"""The exceptions of PEP 249, and which of them one of ours becomes. The sentence stays, and so does its caret.

Error
  InterfaceError     a connection or a cursor that is closed, a result that is not there
  DatabaseError
    ProgrammingError   the statement, its parameters or a keyword
    OperationalError   the budget, the network, the ledger
    NotSupportedError  what answers cannot do
    DataError, IntegrityError, InternalError
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.errors import (
    BudgetError,
    GatewayError,
    HoldfastError,
    InputError,
    LedgerError,
    MechanismError,
    QueryError,
    SchemaError,
)


class Warning(Exception):
    """Of PEP 249; never raised here."""


class Error(Exception):
    """Whatever goes wrong."""


class InterfaceError(Error):
    """A connection, a cursor or a result that is not there."""


class DatabaseError(Error):
    """What goes wrong with a question."""


class DataError(DatabaseError):
    """Of PEP 249; never raised here."""


class OperationalError(DatabaseError):
    """The budget, the network or the ledger says no."""


class IntegrityError(DatabaseError):
    """Of PEP 249; never raised here."""


class InternalError(DatabaseError):
    """Of PEP 249; never raised here."""


class ProgrammingError(DatabaseError):
    """The statement is not in the language, or its parameters do not fit."""


class NotSupportedError(DatabaseError):
    """What answers cannot do."""


_MEANS: list[tuple[type[HoldfastError], type[DatabaseError]]] = [
    (QueryError, ProgrammingError),
    (InputError, ProgrammingError),
    (SchemaError, ProgrammingError),
    (MechanismError, NotSupportedError),
    (BudgetError, OperationalError),
    (GatewayError, OperationalError),
    (LedgerError, OperationalError),
    (HoldfastError, DatabaseError),
]


@contextmanager
def translated() -> Iterator[None]:
    """Inside, our exceptions are raised as those of PEP 249, with ours as their cause."""
    try:
        yield
    except HoldfastError as error:
        kind = next(theirs for ours, theirs in _MEANS if isinstance(error, ours))
        raise kind(str(error)) from error
