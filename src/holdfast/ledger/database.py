"""What a chained ledger needs of a database."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from holdfast.ledger.reader import Rows, Stream


class Database(Protocol):
    """One ledger's tables. Every failure is a LedgerError that says what to do.

    Guarantee: between `begin` and `commit` (or `rollback`) nobody else writes, and everything written before
    is seen; what was committed is on disk. One thread writes at a time; any number may read.
    """

    address: str
    """Where it is, in words without a password."""

    def read(self, sql: str, *values: object) -> list[object]:
        """Rows of what is committed."""

    def begin(self) -> Rows:
        """Take the lock and start a transaction; the function returned runs statements in it."""

    def commit(self) -> None:
        """Make it last. LedgerError means: perhaps it did not."""

    def rollback(self) -> None:
        """Undo what was not committed, if anything; never raises."""

    def snapshot(self) -> AbstractContextManager[Stream]:
        """A view of all tables at one moment, for long reads."""

    def turn(self) -> AbstractContextManager[None]:
        """Nobody else has the turn at these tables meanwhile; one thread at a time."""

    def close(self) -> None:
        """Let go."""
