"""Operations of many threads share a transaction: one that fails harms no other, and none is told too early."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import BudgetError, LedgerError
from holdfast.ledger import Account, ChainedLedger, Charge, SqliteLedger, Totals, batch, verify
from holdfast.ledger.batch import Batches, Ticket
from ledger.homes import HOMES
from ledger.interleavings import Order, Stuck, walked


def at_once(ledger: ChainedLedger, operations: list[Callable[[], Any]]) -> list[Any]:
    """Have all operations wait in one batch; returns their results or errors."""
    outcomes: list[Any] = [None] * len(operations)
    held, go = threading.Event(), threading.Event()

    def hold(writer: object) -> None:
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

    def broken(writer: Any) -> None:
        writer.charge("s", "half", "{}", "{}", Charge(1, 1))
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
            call.wake()
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
        queue.put(lambda writer: committed)
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


class ReadsOutsideTheLock(Batches[Any]):
    """The broken twin: the first protocol, in which a thread that was made the leader between two lines led without
    having been woken. It let go of a lock that nobody held, and the rest of its batch slept for ever."""

    _busy = False

    def put_all(self, operations: Sequence[Callable[[Any], Any]]) -> list[Ticket[Any]]:
        call: Any = batch.Call(operations)
        call.done = False
        with self._idle:
            if self._closed:
                raise LedgerError("closed")
            self._waiting.append(call)
            call.leads, self._busy = not self._busy, True
        if call.leads or self._woken_to_lead(call):
            self._lead()
        return call.tickets  # type: ignore[no-any-return]

    def _woken_to_lead(self, call: Any) -> bool:
        call.woken.acquire()
        return not call.done

    def _lead(self) -> None:
        calls: list[Any] = []
        try:
            with self._idle:
                calls, self._waiting = self._waiting, []
            self._run([ticket for call in calls for ticket in call.tickets])
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


class KeepsItsTurn(Batches[Any]):
    """A broken twin: whoever is interrupted goes away without a word."""

    def put_all(self, operations: Sequence[Callable[[Any], Any]]) -> list[Ticket[Any]]:
        call: batch.Call[Any] = batch.Call(operations)
        self._enter(call)
        call.woken.acquire()
        if call.leads:
            self._lead()
        self._settle(call)
        return call.tickets


class WakesTheLeaderOnce(Batches[Any]):
    """A broken twin: an interrupt just before leaves a leader who sleeps."""

    def _choose(self) -> None:
        if self._leader is None:
            super()._choose()


class NamesTheLeaderLast(Batches[Any]):
    """A broken twin: after an interrupt just before, two threads take the turn for theirs."""

    def _choose(self) -> None:
        if self._leader is None and self._waiting:
            self._waiting[0].leads = True
            self._waiting[0].wake()
            self._leader = self._waiting[0]
        else:
            super()._choose()


class TellsNobodyThatItIsIdle(Batches[Any]):
    """A broken twin: whoever closes the queue waits for ever."""

    def _choose(self) -> None:
        if self._leader is not None or self._waiting:
            super()._choose()


Scenario = Callable[[Order, Callable[..., Batches[Any]]], None]


def many_put(
    threads: int, *, closes: bool = False, fails: type[Exception] | None = None, checked: bool = True
) -> Scenario:
    """So many threads put two operations each, while another closes the queue, or the first commit fails.

    Each is told its results, and not before they are committed; or why it has none, with an error of its own. At most
    one batch is under way. What is closed stays as it was; what is not goes on working.
    """
    names = [f"thread{number}" for number in range(threads)]

    def check(queue: Batches[Any], order: Order, told: dict[str, Any]) -> None:
        unlucky = [name for name in names if told[name] != ([f"{name}a", f"{name}b"], True)]
        refused = [told[name] for name in unlucky]
        if order.interrupted or fails:
            refused = [error for error in refused if not isinstance(error, KeyboardInterrupt | RuntimeError)]
        expected = (
            ["interrupted"] * bool(order.interrupted or fails) + ["closed"] * closes + ["full"] * bool(fails)
        )
        for error in refused:
            assert isinstance(error, LedgerError) and any(word in str(error) for word in expected), error
        assert len({id(error) for error in refused}) == len(refused)
        assert len(unlucky) < threads or closes or fails or order.interrupted
        assert queue._waiting == []
        if closes:
            assert told["closer"] == order.log
        else:
            assert queue.put(lambda writer: "next") == "next"

    def scenario(order: Order, make: Callable[..., Batches[Any]]) -> None:
        under_way: list[str] = []
        failing = [fails] if fails else []

        def run(tickets: list[Ticket[Any]]) -> None:
            assert not under_way, "two batches at once"
            under_way.append("a batch")
            try:
                order.step()
                for ticket in tickets:
                    ticket.attempt(None)
                if failing:
                    raise failing.pop()("the disk is full")
                order.step()
                order.log |= {ticket.result for ticket in tickets}
            finally:
                under_way.clear()

        queue = make(run)

        def put(name: str) -> tuple[list[str], bool]:
            tickets = queue.put_all([lambda writer: f"{name}a", lambda writer: f"{name}b"])
            results, errors = [t.result for t in tickets], [t.error for t in tickets]
            if errors[0] is not None:
                assert errors[1] is not None
                raise errors[0]
            return results, set(results) <= order.log

        def close() -> set[object]:
            queue.close()
            return set(order.log)

        bodies: dict[str, Callable[[], object]] = {name: partial(put, name) for name in names}
        told = order.walk(alike=threads, **bodies | ({"closer": close} if closes else {}))
        if order.complete and checked:
            check(queue, order, told)

    return scenario


@pytest.mark.parametrize(("threads", "closes"), [(3, False), (2, True)])
def test_in_every_order_of_steps_everybody_is_told(threads: int, closes: bool) -> None:
    """As few threads as the twins below need; `evidence/interleavings.py` walks four, and three before a close."""
    assert walked(Batches, many_put(threads, closes=closes)) > 100


def test_a_leader_that_is_chosen_while_it_looks_leaves_the_others_asleep() -> None:
    with pytest.raises(AssertionError, match="release unlocked lock"):
        walked(ReadsOutsideTheLock, many_put(2))
    with pytest.raises(Stuck, match="thread2 wait for ever"):
        walked(ReadsOutsideTheLock, many_put(3, checked=False))


@pytest.mark.parametrize("fails", [LedgerError, RuntimeError])
def test_in_every_order_a_commit_that_fails_stops_nobody_else(fails: type[Exception]) -> None:
    assert walked(Batches, many_put(3, fails=fails), coarse=True) > 100


@pytest.mark.parametrize(("threads", "who"), [(2, 0), (2, 1), (3, 0)])
def test_in_every_order_an_interrupt_at_any_place_stops_nobody_else(threads: int, who: int) -> None:
    assert walked(Batches, many_put(threads), coarse=threads > 2, interrupts=f"thread{who}") > 100


def test_in_every_order_an_interrupt_stops_nobody_who_closes() -> None:
    assert walked(Batches, many_put(2, closes=True), coarse=True, interrupts="thread0") > 100


def test_protocols_that_an_interrupt_or_a_close_breaks_are_caught() -> None:
    for twin in (KeepsItsTurn, WakesTheLeaderOnce, NamesTheLeaderLast):
        walked(twin, many_put(3), coarse=True)  # sound as long as nobody is interrupted
        with pytest.raises(AssertionError):
            walked(twin, many_put(3), coarse=True, interrupts="thread0")
    with pytest.raises(Stuck, match="closer"):
        walked(TellsNobodyThatItIsIdle, many_put(1, closes=True))


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
        queue.put(lambda writer: 1)
    assert queue.put(lambda writer: 2) == 2


def test_a_waiter_that_is_interrupted_stops_nobody() -> None:
    """The main thread waits in the queue and is told to stop; its turn to lead goes to the next."""
    held, go, done = threading.Event(), threading.Event(), []

    def slow(writer: object) -> None:
        held.set()
        go.wait(30)

    queue: Batches[Any] = Batches(lambda tickets: [ticket.attempt(None) for ticket in tickets] and None)
    first = threading.Thread(target=lambda: queue.put(slow))
    first.start()
    assert held.wait(30)

    def late() -> None:
        while not queue._waiting:  # behind the main thread, which would lead next
            threading.Event().wait(0.001)
        queue.put(lambda writer: done.append("late"))

    second = threading.Thread(target=late)
    second.start()

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            queue.put(lambda writer: done.append("interrupted"))
    finally:
        signal.signal(signal.SIGALRM, before)
    go.set()
    for thread in (first, second):
        thread.join(30)
    assert done == ["late"]
    assert queue.put(lambda writer: "next") == "next"


@pytest.mark.parametrize("kind", sorted(HOMES))
def test_closing_waits_for_what_is_under_way_and_refuses_the_rest(kind: str, tmp_path: Path) -> None:
    home = HOMES[kind](tmp_path)
    ledger = home.open()
    ledger.open(Account("s", "zcdp", 20))
    closer = threading.Thread(target=ledger.close)

    def slow(writer: Any) -> None:
        closer.start()
        while not ledger._batches._closed:
            threading.Event().wait(0.001)
        writer.charge("s", "under way", "{}", "{}", Charge(1, 1))

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
