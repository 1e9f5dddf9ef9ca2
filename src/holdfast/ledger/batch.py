"""Group commit: operations of many threads share one transaction, and so one sync of the disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Condition, Lock
from typing import Any, Generic, TypeVar

from holdfast.errors import LedgerError

Writer = TypeVar("Writer")
Result = TypeVar("Result")


class Ticket(Generic[Writer]):
    """An operation that waits for its turn, and then its outcome."""

    __slots__ = ("error", "operation", "result")

    def __init__(self, operation: Callable[[Writer], Any]) -> None:
        self.operation = operation
        self.error: Exception | None = None
        self.result: Any = None

    def attempt(self, writer: Writer) -> bool:
        """Run the operation; whether it succeeded. What it raises is for the one who asked."""
        self.error = None
        try:
            self.result = self.operation(writer)
        except Exception as error:
            self.error = error
        return self.error is None


class Call(Generic[Writer]):
    """The tickets of one thread, and the lock on which it sleeps until they are done or it has to lead."""

    __slots__ = ("leads", "tickets", "woken")

    def __init__(self, operations: Sequence[Callable[[Writer], Any]]) -> None:
        self.tickets: list[Ticket[Writer]] = [Ticket(operation) for operation in operations]
        self.leads = False
        self.woken = Lock()
        self.woken.acquire()

    def tell(self, failure: tuple[Any, ...] | None) -> None:
        """Wake its thread; with an error of its own for each ticket (tracebacks grow where they are raised)."""
        if failure is not None:
            for ticket in self.tickets:
                ticket.error = LedgerError(*failure)
        self.wake()

    def wake(self) -> None:
        """Let its thread go on; a second time changes nothing. Requires: the lock of its `Batches` is held."""
        if self.woken.locked():
            self.woken.release()


class Batches(Generic[Writer]):
    """A queue of operations. Whoever comes while nobody works runs all that wait; the others sleep meanwhile.
    The first that came in between runs the next batch.

    `run` gets the tickets; when it returns, all are committed (each has its result or its error), and when it
    raises, none is. Guarantee: nobody is told of a result before `run` has returned, and everybody is told in the
    end, whichever of them is interrupted meanwhile. A thread that is alone never waits.

    Protocol: who leads is decided once, under the lock, before that thread is woken; every thread sleeps first and
    looks at its own call afterwards. The turn is given away when its thread leaves, however it leaves. Each step of
    leaving may be taken twice: an interrupt in its midst has all of it taken again.
    """

    def __init__(self, run: Callable[[list[Ticket[Writer]]], None]) -> None:
        self._run = run
        self._lock = Lock()
        self._idle = Condition(self._lock)
        self._waiting: list[Call[Writer]] = []
        self._leader: Call[Writer] | None = None
        self._batch: list[Call[Writer]] = []
        """What the leader has taken, its own call among them."""
        self._failure: tuple[Any, ...] | None = None
        """Why none of the batch is committed."""
        self._closed = False
        self._since = 0.0
        """When the leader was chosen."""

    def busy_for(self) -> float:
        """For how many seconds whoever leads has been about it; 0 if nobody leads. Waits for nobody."""
        return time.monotonic() - self._since if self._leader is not None else 0.0

    def put(self, operation: Callable[[Writer], Result]) -> Result:
        """Have an operation run and committed; returns its result, or raises its error."""
        (ticket,) = self.put_all([operation])
        if ticket.error is not None:
            raise ticket.error
        result: Result = ticket.result
        return result

    def put_all(self, operations: Sequence[Callable[[Writer], Any]]) -> list[Ticket[Writer]]:
        """Have several operations run in one batch; returns their outcomes, in their order."""
        call = Call(operations)
        try:
            self._enter(call)
            call.woken.acquire()
            if call.leads:
                self._lead()
        finally:
            try:
                self._settle(call)
            except BaseException:  # interrupted on the way out
                self._settle(call)
                raise
        return call.tickets

    def close(self) -> None:
        """Refuse what comes later; wait for what is under way and for what waits."""
        with self._lock:
            self._closed = True
            while self._leader is not None:
                self._idle.wait()

    def _enter(self, call: Call[Writer]) -> None:
        with self._lock:
            if self._closed:
                raise LedgerError("expected an open ledger, got a closed one; open it again")
            self._waiting.append(call)
            self._choose()

    def _lead(self) -> None:
        """Run all that wait."""
        self._failure = ("the ledger was interrupted; ask again",)  # unless it comes to its end
        with self._lock:
            self._batch, self._waiting = self._waiting, []
        try:
            self._run([ticket for call in self._batch for ticket in call.tickets])
            self._failure = None
        except LedgerError as error:
            self._failure = error.args

    def _settle(self, call: Call[Writer]) -> None:
        """Have a call wait no longer; if it led, tell its batch, and give the turn away."""
        with self._lock:
            if call in self._waiting:  # it was interrupted
                self._waiting.remove(call)
            if self._leader is call:
                for one in self._batch:
                    one.tell(self._failure)
                self._batch, self._leader = [], None
            self._choose()

    def _choose(self) -> None:
        """The first that waits leads, unless somebody does. A leader is awake; where there is none, all know it."""
        if self._leader is None and self._waiting:
            self._leader, self._since = self._waiting[0], time.monotonic()
        if self._leader is None:
            self._idle.notify_all()
        else:
            self._leader.leads = True
            self._leader.wake()
