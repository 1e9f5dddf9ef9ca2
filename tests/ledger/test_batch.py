"""Operations of many threads share a transaction: one that fails harms no other, and none is told too early."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import BudgetError, LedgerError
from holdfast.ledger import Account, ChainedLedger, Charge, SqliteLedger, Totals, verify
from holdfast.ledger.batch import Batches, Ticket
from ledger.homes import HOMES


def at_once(ledger: ChainedLedger, operations: list[Callable[[], Any]]) -> list[Any]:
    """Have all operations wait in one batch; returns their results or errors."""
    outcomes: list[Any] = [None] * len(operations)
    held, go = threading.Event(), threading.Event()

    def hold(pen: object) -> None:
        held.set()
        go.wait(30)

    def run(number: int) -> None:
        try:
            outcomes[number] = operations[number]()
        except Exception as error:
            outcomes[number] = error

    first = threading.Thread(target=lambda: ledger._batches.put(hold))
    first.start()
    assert held.wait(30)
    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(operations))]
    for thread in threads:
        thread.start()
    for _ in range(30_000):
        if len(ledger._batches._waiting) == len(operations):
            break
        threading.Event().wait(0.001)
    go.set()
    for thread in [first, *threads]:
        thread.join(30)
    return outcomes


class Counting:
    """A database that counts its commits, and may fail at one."""

    def __init__(self, database: Any, fails: bool = False) -> None:
        self._database, self.commits, self._fails = database, 0, fails

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def commit(self) -> None:
        self.commits += 1
        if self._fails and self.commits > 1:
            raise LedgerError("the disk is full")
        self._database.commit()


@pytest.mark.parametrize("kind", sorted(HOMES))
def test_a_batch_is_one_commit_and_a_failure_harms_no_other(kind: str, tmp_path: Path) -> None:
    ledger = HOMES[kind](tmp_path).open()
    ledger.open(Account("s", "zcdp", 20))
    counting = Counting(ledger._database)
    ledger._database = counting  # type: ignore[assignment]
    wanted = [1, 100, 2, 200, 3, 4]
    outcomes = at_once(
        ledger,
        [
            lambda units=units, number=number: ledger.reserve(  # type: ignore[misc]
                "s", f"key {number}", "{}", "{}", Charge(units, units)
            )
            for number, units in enumerate(wanted)
        ],
    )
    assert counting.commits == 2  # the one that held the turn, and one for all six
    for units, outcome in zip(wanted, outcomes, strict=True):
        assert isinstance(outcome, BudgetError) == (units >= 100), outcome
    assert ledger.totals("s") == Totals(4, 4, 10)
    assert verify(ledger).totals.entries == 4
    ledger.close()


def test_a_write_that_breaks_in_the_middle_is_taken_back(tmp_path: Path) -> None:
    """The fact is chained when its row cannot be written: neither must stay."""
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    ledger.open(Account("s", "zcdp", 20))

    def broken(pen: Any) -> None:
        pen.charge("s", "half", "{}", "{}", Charge(1, 1))
        raise LedgerError("broken in the middle")

    good = [lambda n=n: ledger.reserve("s", f"key {n}", "{}", "{}", Charge(1, 1)) for n in range(3)]  # type: ignore[misc]
    outcomes = at_once(ledger, [good[0], lambda: ledger.adopt(broken), good[1], good[2]])
    assert isinstance(outcomes[1], LedgerError)
    assert ledger.totals("s") == Totals(3, 3, 3)
    assert ledger.find("s", "half") is None
    assert verify(ledger).totals.entries == 3
    ledger.close()


@pytest.mark.parametrize("kind", sorted(HOMES))
def test_a_commit_that_fails_fails_for_all(kind: str, tmp_path: Path) -> None:
    home = HOMES[kind](tmp_path)
    ledger = home.open()
    ledger.open(Account("s", "zcdp", 20))
    real = ledger._database
    ledger._database = Counting(real, fails=True)  # type: ignore[assignment]
    outcomes = at_once(
        ledger,
        [lambda n=n: ledger.reserve("s", f"key {n}", "{}", "{}", Charge(1, 1)) for n in range(3)],  # type: ignore[misc]
    )
    assert [str(outcome) for outcome in outcomes] == ["the disk is full"] * 3
    assert len({id(outcome) for outcome in outcomes}) == 3
    ledger._database = real
    assert ledger.totals("s") == Totals()
    ledger.reserve("s", "key 0", "{}", "{}", Charge(1, 1))
    assert verify(ledger).totals.entries == 1
    ledger.close()


class TellsEarly(Batches[Any]):
    """The broken twin: wakes the threads before the transaction is committed."""

    def _lead(self) -> None:
        for call in self._waiting:
            call.done, early, call.woken = True, call.woken, threading.Lock()
            call.woken.acquire()
            early.release()
        super()._lead()


def tells_after_commit(batches: type[Batches[Any]]) -> bool:
    """Whether each thread hears of its operation only after the commit."""
    heard: list[bool] = []

    def run(tickets: list[Ticket[Any]]) -> None:
        for ticket in tickets:
            ticket.attempt(None)
        threading.Event().wait(0.1)  # the others queue up meanwhile
        for ticket in tickets:
            ticket.operation(None).set()

    queue = batches(run)

    def ask() -> None:
        committed = threading.Event()
        queue.put(lambda pen: committed)
        heard.append(committed.is_set())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(heard) == 4 and all(heard)


def test_nobody_hears_of_an_operation_before_it_is_committed() -> None:
    assert tells_after_commit(Batches)
    assert not tells_after_commit(TellsEarly)


def test_an_interrupted_leader_leaves_a_working_queue() -> None:
    calls = []

    def run(tickets: list[Ticket[Any]]) -> None:
        calls.append(len(tickets))
        if len(calls) == 1:
            raise KeyboardInterrupt
        for ticket in tickets:
            ticket.attempt(None)

    queue: Batches[Any] = Batches(run)
    with pytest.raises(KeyboardInterrupt):
        queue.put(lambda pen: 1)
    assert queue.put(lambda pen: 2) == 2


def test_a_waiter_that_is_interrupted_stops_nobody() -> None:
    """The main thread waits in the queue and is told to stop; its turn to lead goes to the next."""
    held, go, done = threading.Event(), threading.Event(), []

    def slow(pen: object) -> None:
        held.set()
        go.wait(30)

    queue: Batches[Any] = Batches(lambda tickets: [ticket.attempt(None) for ticket in tickets] and None)
    first = threading.Thread(target=lambda: queue.put(slow))
    first.start()
    assert held.wait(30)

    def late() -> None:
        while not queue._waiting:  # behind the main thread, which would lead next
            threading.Event().wait(0.001)
        queue.put(lambda pen: done.append("late"))

    second = threading.Thread(target=late)
    second.start()

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            queue.put(lambda pen: done.append("interrupted"))
    finally:
        signal.signal(signal.SIGALRM, before)
    go.set()
    for thread in (first, second):
        thread.join(30)
    assert done == ["late"]
    assert queue.put(lambda pen: "next") == "next"


@pytest.mark.parametrize("kind", sorted(HOMES))
def test_closing_waits_for_what_is_under_way_and_refuses_the_rest(kind: str, tmp_path: Path) -> None:
    home = HOMES[kind](tmp_path)
    ledger = home.open()
    ledger.open(Account("s", "zcdp", 20))
    closer = threading.Thread(target=ledger.close)

    def slow(pen: Any) -> None:
        closer.start()
        while not ledger._batches._closed:
            threading.Event().wait(0.001)
        pen.charge("s", "under way", "{}", "{}", Charge(1, 1))

    ledger.adopt(slow)
    closer.join()
    with pytest.raises(LedgerError, match="closed"):
        ledger.reserve("s", "late", "{}", "{}", Charge(1, 1))
    again = home.open()
    assert [entry.key for entry in again.entries()] == ["under way"]
    assert verify(again).totals.entries == 1
    again.close()


def test_a_forked_child_cannot_use_its_parents_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    ledger.open(Account("s", "zcdp", 20))
    monkeypatch.setattr("os.getpid", lambda: -1)  # as a child sees it
    with pytest.raises(LedgerError, match="opened in this process"):
        ledger.reserve("s", "key", "{}", "{}", Charge(1, 1))
    monkeypatch.undo()
    ledger.reserve("s", "key", "{}", "{}", Charge(1, 1))
    ledger.close()
