"""What every ledger must do; a newcomer is added to MAKERS and cannot skip a law."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.errors import BudgetError, LedgerError
from holdfast.ledger import (
    Account,
    Charge,
    Ledger,
    MemoryLedger,
    SqliteLedger,
    Stale,
    Totals,
    While,
    copy_ledger,
)

Make = Callable[[Path], Ledger]
MAKERS: dict[str, Make] = {
    "memory": lambda folder: MemoryLedger(),
    "sqlite": lambda folder: SqliteLedger(folder / "ledger.sqlite"),
}


@pytest.fixture(params=sorted(MAKERS))
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    made = MAKERS[request.param](tmp_path)
    yield made
    made.close()


def charge(ledger: Ledger, units: int, session: str = "s") -> int:
    mine = ledger.totals(session).entries
    return ledger.reserve(session, f"key {mine}", "{}", "{}", Charge(units, 2 * units, 3)).id


def test_totals_are_exact_integers(ledger: Ledger) -> None:
    ledger.open(Account("s", "zcdp", 10**18))
    for _ in range(1000):
        charge(ledger, 1)
    assert ledger.totals("s") == Totals(1000, 3000, 1000)
    assert ledger.totals() == Totals(1000, 3000, 2000)
    assert ledger.totals("nobody") == Totals(0, 0, 0)


def test_the_last_unit_can_be_spent_and_not_one_more(ledger: Ledger) -> None:
    ledger.open(Account("s", "zcdp", 10))
    charge(ledger, 9)
    with pytest.raises(BudgetError) as refused:
        charge(ledger, 2)
    assert refused.value.requested == pytest.approx(2e-9)
    assert refused.value.remaining == pytest.approx(1e-9)
    charge(ledger, 1)
    assert ledger.totals("s") == Totals(2, 6, 10)


def test_the_tables_limit_stands_above_the_sessions(ledger: Ledger) -> None:
    ledger.set_limit(Account("the table", "zcdp", 50))
    for session in ("a", "b", "c"):
        ledger.open(Account(session, "zcdp", 1000))
    charge(ledger, 10, "a")
    charge(ledger, 10, "b")
    with pytest.raises(BudgetError, match="the table"):
        charge(ledger, 10, "c")
    assert ledger.totals() == Totals(2, 6, 40)


def test_a_limit_is_never_set_below_what_was_charged(ledger: Ledger) -> None:
    ledger.open(Account("s", "zcdp", 1000))
    charge(ledger, 10)
    with pytest.raises(BudgetError):
        ledger.set_limit(Account("the table", "zcdp", 19))
    with pytest.raises(LedgerError, match="zcdp"):
        ledger.set_limit(Account("the table", "pure", 1000))
    ledger.set_limit(Account("the table", "zcdp", 20))
    assert ledger.limit() == Account("the table", "zcdp", 20)


def test_a_session_comes_back_on_the_same_terms_only(ledger: Ledger) -> None:
    ledger.open(Account("s", "zcdp", 100))
    charge(ledger, 60)
    with pytest.raises(LedgerError, match="pure"):
        ledger.open(Account("s", "pure", 100))
    with pytest.raises(BudgetError):
        ledger.open(Account("s", "zcdp", 59))
    ledger.open(Account("s", "zcdp", 60))
    with pytest.raises(BudgetError):
        charge(ledger, 1)
    assert list(ledger.accounts()) == [Account("s", "zcdp", 60)]


def test_a_plan_is_reserved_only_while_it_holds(ledger: Ledger) -> None:
    for name in ("s", "other"):
        ledger.open(Account(name, "zcdp", 100))
    charge(ledger, 1)
    one = Charge(1, 1)
    for over in (While(session_answers=3), While(table_answers=3), While(table_units=2)):
        with pytest.raises(Stale):
            ledger.reserve("s", "another", "{}", "{}", one, over)
    with pytest.raises(Stale):
        ledger.reserve("s", "key 0", "{}", "{}", one)
    assert ledger.totals("s").entries == 1
    just = While(session_answers=4, table_answers=4, table_units=3, alone=True)
    ledger.reserve("s", "another", "{}", "{}", one, just)
    charge(ledger, 1, "other")
    with pytest.raises(Stale):
        ledger.reserve("s", "a third", "{}", "{}", one, While(alone=True))


def test_the_first_answer_stands(ledger: Ledger) -> None:
    ledger.open(Account("s", "zcdp", 100))
    entry = charge(ledger, 1)
    found = ledger.find("s", "key 0")
    assert found is not None
    assert found.answer is None
    assert ledger.record(entry, "first") == "first"
    assert ledger.record(entry, "second") == "first"
    found = ledger.find("s", "key 0")
    assert found is not None
    assert found.answer == "first"
    assert [e.answer for e in ledger.entries("s")] == ["first"]
    assert ledger.find("s", "unasked") is None


def test_copying_keeps_every_charge(ledger: Ledger, tmp_path: Path) -> None:
    ledger.set_limit(Account("the table", "zcdp", 1000))
    for session in ("a", "b"):
        ledger.open(Account(session, "zcdp", 100))
    ledger.record(charge(ledger, 7, "a"), "answer")
    charge(ledger, 9, "b")
    target = SqliteLedger(tmp_path / "copy.sqlite")
    copy_ledger(ledger, target)
    assert target.totals() == ledger.totals()
    assert [(e.session, e.key, e.charge, e.answer) for e in target.entries()] == [
        (e.session, e.key, e.charge, e.answer) for e in ledger.entries()
    ]
    assert target.limit() == ledger.limit()
    assert set(target.accounts()) == set(ledger.accounts())
    target.close()


def spend(ledger: Ledger, tries: int) -> int:
    """Try to charge one unit many times."""
    won = 0
    for _ in range(tries):
        try:
            ledger.reserve("s", uuid.uuid4().hex, "{}", "{}", Charge(1, 1))
            won += 1
        except BudgetError:
            pass
    return won


def race(ledger: Ledger, threads: int, tries: int) -> int:
    wins: list[int] = []
    workers = [threading.Thread(target=lambda: wins.append(spend(ledger, tries))) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(wins)


def test_threads_never_overspend(ledger: Ledger) -> None:
    ledger.open(Account("s", "zcdp", 50))
    assert race(ledger, threads=8, tries=10) == 50
    assert ledger.totals("s") == Totals(50, 50, 50)


class ReadsTooEarly(MemoryLedger):
    """The broken twin: checks the budget outside the lock, and then writes."""

    def reserve(self, session, key, plan, event, charge, holds=None):  # type: ignore[no-untyped-def]
        mine = self.totals(session)
        if mine.units + charge.session > self._accounts[session].limit:
            raise BudgetError("spent")
        threading.Event().wait(0.001)
        self._totals[session] = mine.plus(1, charge.session)


def test_the_race_catches_a_ledger_that_reads_too_early() -> None:
    broken = ReadsTooEarly()
    broken.open(Account("s", "zcdp", 5))
    assert race(broken, threads=8, tries=10) > 5


WORKER = """
import sys, threading, uuid
from pathlib import Path
from holdfast.errors import BudgetError
from holdfast.ledger import Charge, SqliteLedger

ledger, wins = SqliteLedger(Path(sys.argv[1])), []

def spend():
    for _ in range(20):
        try:
            ledger.reserve("s", uuid.uuid4().hex, "{}", "{}", Charge(1, 1))
            wins.append(1)
        except BudgetError:
            pass

workers = [threading.Thread(target=spend) for _ in range(4)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print(len(wins))
"""


def _processes(path: Path) -> int:
    command = [sys.executable, "-c", WORKER, str(path)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    return sum(int(worker.communicate(timeout=120)[0]) for worker in workers)


def test_processes_never_overspend(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger = SqliteLedger(path)
    ledger.open(Account("s", "zcdp", 100))
    assert _processes(path) == 100
    assert ledger.totals("s") == Totals(100, 100, 100)
    ledger.close()


def test_the_file_keeps_what_it_was_told(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    first = SqliteLedger(path)
    first.open(Account("s", "zcdp", 10))
    charge(first, 4)
    first.close()
    second = SqliteLedger(path)
    assert second.totals("s") == Totals(1, 3, 4)
    second.close()


@pytest.mark.parametrize("statement", ["UPDATE entries SET session_units = 0", "DELETE FROM entries"])
def test_entries_can_neither_be_changed_nor_removed(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger = SqliteLedger(path)
    ledger.open(Account("s", "zcdp", 10))
    charge(ledger, 4)
    ledger.close()
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()


def test_a_newer_or_a_foreign_file_is_refused(tmp_path: Path) -> None:
    newer = tmp_path / "newer.sqlite"
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.raises(LedgerError, match="newer"):
        SqliteLedger(newer)
    foreign = tmp_path / "foreign.sqlite"
    foreign.write_bytes(b"this is not a database at all, but it is long enough to look like one" * 20)
    with pytest.raises(LedgerError):
        SqliteLedger(foreign)
