"""Where a ledger stands: the same for everybody, and told at the same cost however much was asked before."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.ledger import Account, Charge, Moment, SqliteLedger, Totals, chained, reader
from holdfast.ledger.reader import Reader


def asked(ledger: SqliteLedger, session: str, first: int, many: int) -> None:
    """So many questions of a session, each of which told less than it might have."""
    for number in range(first, first + many):
        entry = ledger.reserve(session, f"key {number}", "{}", "{}", Charge(1, 2, 1, 5))
        ledger.record(entry.id, "told", told=3)


@contextmanager
def opened(folder: Path) -> Iterator[SqliteLedger]:
    ledger = SqliteLedger(folder / "a.ledger", folder)
    for session in ("seldom", "often"):
        ledger.open(Account(session, "zcdp", 10**9))
    yield ledger
    ledger.close()


def steps(path: Path, session: str) -> int:
    """How many steps SQLite takes to say where the ledger stands for a session."""
    connection, taken = sqlite3.connect(path), 0

    def count() -> None:
        nonlocal taken
        taken += 1

    connection.set_progress_handler(count, 1)
    Reader(lambda sql, *values: connection.execute(sql, values).fetchall()).moment(session)
    connection.close()
    return taken


def grown(folder: Path) -> list[float]:
    """By how much the steps grow when ten times as much was asked."""
    with opened(folder) as ledger:
        asked(ledger, "seldom", 0, 1)
        found = []
        for first, many in ((0, 40), (40, 360)):
            asked(ledger, "often", first, many)
            found.append([steps(folder / "a.ledger", session) for session in ("seldom", "often")])
    return [late / early for early, late in zip(*found, strict=True)]


def test_a_moment_costs_the_same_however_much_was_asked_before(tmp_path: Path) -> None:
    assert max(grown(tmp_path)) < 1.1


@pytest.mark.parametrize("order", ["by the facts since", "by its own reservations"])
def test_one_order_alone_grows(order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twins: one grows with what others were told since, the other with what the session itself was told."""
    least = "(SELECT place FROM tip) - e.place < e.session_entries"
    assert reader._MOMENT.count(least) == 1
    always = reader._MOMENT.replace(least, "TRUE" if order == "by the facts since" else "FALSE")
    monkeypatch.setattr(reader, "_MOMENT", always)
    assert max(grown(tmp_path)) > 3


def test_both_orders_say_the_same(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        asked(ledger, "seldom", 0, 3)
        late = [
            ledger.reserve("seldom", f"late {number}", "{}", "{}", Charge(1, 2, 1, 5)) for number in range(2)
        ]
        asked(ledger, "often", 0, 20)
        for entry in late:
            ledger.record(entry.id, "told", told=1)
        assert ledger.moment("seldom").session == ledger.totals("seldom") == Totals(5, 5, 5, 3 * 3 + 2 * 1)
        asked(ledger, "seldom", 3, 30)
        late = [
            ledger.reserve("seldom", f"later {number}", "{}", "{}", Charge(1, 2, 1, 5)) for number in range(2)
        ]
        for entry in late:
            ledger.record(entry.id, "told", told=0)
        assert (
            ledger.moment("seldom").session == ledger.totals("seldom") == Totals(37, 37, 37, 33 * 3 + 2 * 1)
        )


def hears_of_another(folder: Path) -> bool:
    """Whether a ledger that said where it stands knows what another one at the same file has charged since."""
    with opened(folder) as ledger:
        asked(ledger, "often", 0, 1)
        assert (
            ledger.moment("often") == ledger.moment("often") == Moment(Totals(1, 1, 1, 3), Totals(1, 1, 2, 3))
        )
        another = SqliteLedger(folder / "a.ledger", folder)
        asked(another, "often", 1, 1)
        another.close()
        return ledger.moment("often") == Moment(Totals(2, 2, 2, 6), Totals(2, 2, 4, 6))


def test_what_another_process_charged_is_heard_of(tmp_path: Path) -> None:
    assert hears_of_another(tmp_path)


def test_a_ledger_that_does_not_look_at_the_tip_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: what was remembered is told for ever."""

    class Forgetful(Reader):
        def tip(self) -> tuple[str, int, str]:
            self.first = getattr(self, "first", None) or super().tip()
            return self.first

    monkeypatch.setattr(chained, "Reader", Forgetful)
    assert not hears_of_another(tmp_path)
