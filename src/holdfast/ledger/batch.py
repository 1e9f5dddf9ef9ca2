"""Group commit: operations of many threads share one transaction, and so one sync of the disk."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition
from typing import Any, Generic, TypeVar

from holdfast.errors import LedgerError

Pen = TypeVar("Pen")
Result = TypeVar("Result")


class Ticket(Generic[Pen]):
    """An operation that waits for its turn, and then its outcome."""

    __slots__ = ("done", "error", "operation", "result")

    def __init__(self, operation: Callable[[Pen], Any]) -> None:
        self.operation = operation
        self.done = False
        self.error: BaseException | None = None
        self.result: Any = None

    def attempt(self, pen: Pen) -> bool:
        """Run the operation; whether it succeeded. What it raises is for the one who asked."""
        try:
            self.result = self.operation(pen)
        except Exception as error:
            self.error = error
        return self.error is None


class Batches(Generic[Pen]):
    """A queue of operations. Whoever comes while nobody works runs all that wait; the others sleep meanwhile.

    `run` gets the tickets; when it returns, all are committed (each has its result or its error), and when it
    raises, none is. Guarantee: nobody is told of a result before `run` has returned. A thread that is alone
    never waits.
    """

    def __init__(self, run: Callable[[list[Ticket[Pen]]], None]) -> None:
        self._run = run
        self._turn = Condition()
        self._waiting: list[Ticket[Pen]] = []
        self._busy = self._closed = False

    def put(self, operation: Callable[[Pen], Result]) -> Result:
        """Have an operation run and committed; returns its result, or raises its error."""
        ticket = Ticket(operation)
        with self._turn:
            self._waiting.append(ticket)
            while self._busy and not ticket.done:
                self._turn.wait()
            if self._closed and not ticket.done:
                raise LedgerError("expected an open ledger, got a closed one; open it again")
            if not ticket.done:
                self._busy, batch, self._waiting = True, self._waiting, []
        if not ticket.done:
            self._work(batch)
        if ticket.error is not None:
            raise ticket.error
        result: Result = ticket.result
        return result

    def close(self) -> None:
        """Wait for what is under way; refuse what comes later."""
        with self._turn:
            self._closed = True
            while self._busy:
                self._turn.wait()

    def _work(self, batch: list[Ticket[Pen]]) -> None:
        try:
            self._run(batch)
        except LedgerError as error:
            for ticket in batch:  # an error of its own for each thread: tracebacks grow where they are raised
                ticket.error = LedgerError(*error.args)
        except BaseException:
            for ticket in batch:
                ticket.error = LedgerError("the ledger was interrupted; ask again")
            raise
        finally:
            with self._turn:
                for ticket in batch:
                    ticket.done = True
                self._busy = False
                self._turn.notify_all()
