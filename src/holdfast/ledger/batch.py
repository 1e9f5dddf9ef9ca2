"""Group commit: operations of many threads share one transaction, and so one sync of the disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Condition, Lock
from typing import Any, Generic, TypeVar

from holdfast.errors import LedgerError

Pen = TypeVar("Pen")
Result = TypeVar("Result")


class Ticket(Generic[Pen]):
    """An operation that waits for its turn, and then its outcome."""

    __slots__ = ("error", "operation", "result")

    def __init__(self, operation: Callable[[Pen], Any]) -> None:
        self.operation = operation
        self.error: Exception | None = None
        self.result: Any = None

    def attempt(self, pen: Pen) -> bool:
        """Run the operation; whether it succeeded. What it raises is for the one who asked."""
        self.error = None
        try:
            self.result = self.operation(pen)
        except Exception as error:
            self.error = error
        return self.error is None


class Call(Generic[Pen]):
    """The tickets of one thread, and the lock on which it sleeps until they are done or it has to lead."""

    __slots__ = ("done", "leads", "tickets", "woken")

    def __init__(self, operations: Sequence[Callable[[Pen], Any]]) -> None:
        self.tickets: list[Ticket[Pen]] = [Ticket(operation) for operation in operations]
        self.done = self.leads = False
        self.woken = Lock()
        self.woken.acquire()


class Batches(Generic[Pen]):
    """A queue of operations. Whoever comes while nobody works runs all that wait; the others sleep meanwhile.
    The first that came in between runs the next batch.

    `run` gets the tickets; when it returns, all are committed (each has its result or its error), and when it
    raises, none is. Guarantee: nobody is told of a result before `run` has returned. A thread that is alone
    never waits.
    """

    def __init__(self, run: Callable[[list[Ticket[Pen]]], None]) -> None:
        self._run = run
        self._idle = Condition(Lock())
        self._waiting: list[Call[Pen]] = []
        self._busy = self._closed = False

    def put(self, operation: Callable[[Pen], Result]) -> Result:
        """Have an operation run and committed; returns its result, or raises its error."""
        (ticket,) = self.put_all([operation])
        if ticket.error is not None:
            raise ticket.error
        result: Result = ticket.result
        return result

    def put_all(self, operations: Sequence[Callable[[Pen], Any]]) -> list[Ticket[Pen]]:
        """Have several operations run in one batch; returns their outcomes, in their order."""
        call = Call(operations)
        with self._idle:
            if self._closed:
                raise LedgerError("expected an open ledger, got a closed one; open it again")
            self._waiting.append(call)
            call.leads, self._busy = not self._busy, True
        if call.leads or self._woken_to_lead(call):
            self._lead()
        return call.tickets

    def close(self) -> None:
        """Refuse what comes later; wait for what is under way and for what waits."""
        with self._idle:
            self._closed = True
            while self._busy:
                self._idle.wait()

    def _woken_to_lead(self, call: Call[Pen]) -> bool:
        """Sleep until a call is done, or has to lead."""
        try:
            call.woken.acquire()
            return not call.done
        except BaseException:  # interrupted: it asks no longer, but a turn that is its own must go on
            with self._idle:
                if call in self._waiting:
                    self._waiting.remove(call)
                if call.leads and not call.done:
                    self._hand_on()
            raise

    def _lead(self) -> None:
        calls: list[Call[Pen]] = []
        try:
            with self._idle:
                calls, self._waiting = self._waiting, []
            self._work([ticket for call in calls for ticket in call.tickets])
        finally:
            with self._idle:
                for call in calls:
                    call.done = True
                    call.woken.release()
                self._hand_on()

    def _hand_on(self) -> None:
        if self._waiting:
            self._waiting[0].leads = True
            self._waiting[0].woken.release()
        else:
            self._busy = False
            self._idle.notify_all()

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
