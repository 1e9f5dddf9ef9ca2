"""Laws of every ledger: what is put together, read in parts, and remembered."""

from __future__ import annotations

import pytest

from holdfast.errors import BudgetError, LedgerError
from holdfast.ledger import (
    Account,
    Charge,
    Ledger,
    Moment,
    Precondition,
    Record,
    Reserve,
    Stale,
    Totals,
    reader,
    verify,
    writer,
)
from ledger.makers import charge, together


def test_a_moment_is_what_the_totals_and_the_limit_say(ledger: Ledger) -> None:
    assert ledger.moment("s") == Moment(Totals(), Totals(), None)
    ledger.set_limit(Account("the table", "zcdp", 100))
    for session in ("s", "t"):
        ledger.open(Account(session, "zcdp", 100))
        charge(ledger, 7, session)
    charge(ledger, 5)
    seen = ledger.moment("s")
    assert seen == Moment(ledger.totals("s"), ledger.totals(), ledger.limit())
    assert seen == Moment(Totals(2, 6, 12), Totals(3, 9, 38), Account("the table", "zcdp", 100))
    assert ledger.moment("nobody") == Moment(Totals(), seen.table, seen.cap)


def test_lists_are_read_in_parts_and_from_the_end(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_AT_A_TIME", 4)
    for session in ("s", "t"):
        ledger.open(Account(session, "zcdp", 100))
    for turn in range(11):
        charge(ledger, turn, "s" if turn % 3 else "t")
    whole, mine = list(ledger.entries()), list(ledger.entries("s"))
    assert [entry.charge.session for entry in whole] == list(range(11))
    assert [entry.charge.session for entry in mine] == [1, 2, 4, 5, 7, 8, 10]
    for last in (0, 1, 4, 5, 7, 11, 12):
        assert list(ledger.entries(last=last)) == whole[len(whole) - min(last, 11) :]
        assert list(ledger.entries("s", last=last)) == mine[len(mine) - min(last, 7) :]
    assert list(ledger.entries("nobody")) == [] == list(ledger.entries("nobody", last=3))
    assert ledger.course("s", 1) == list(enumerate([1, 3, 7, 12, 19, 27, 37], 1))
    assert ledger.course("s", 3) == [(3, 7), (6, 27)]
    assert ledger.course("nobody", 1) == [] == ledger.course("s", 8)


def test_commits_of_no_thread_have_the_outcomes_of_each_alone(ledger: Ledger) -> None:
    ledger.open(Account("s", "zcdp", 10))

    def commit(key: str, units: int, holds: Precondition = Precondition()) -> Reserve:  # noqa: B008
        return Reserve("s", key, "{}", "{}", Charge(units, units), holds)

    first, dear, again, stale, strange, second = together(
        ledger,
        [
            commit("a", 4), commit("b", 7), commit("a", 1), commit("c", 1, Precondition(session_answers=1)),
            Reserve("nobody", "d", "{}", "{}", Charge(1, 1)), commit("e", 6),
        ],
    )  # fmt: skip
    assert (first.key, second.key) == ("a", "e")  # type: ignore[union-attr]
    assert isinstance(dear, BudgetError) and isinstance(again, Stale) and isinstance(stale, Stale)
    assert isinstance(strange, LedgerError)
    assert ledger.totals("s") == Totals(2, 2, 10) == ledger.totals()
    place = first.id  # type: ignore[union-attr]
    assert together(ledger, [Record(place, "one"), Record(place, "two"), Record(10**6, "none")])[:2] == [
        "one",
        "one",
    ]
    assert isinstance(together(ledger, [Record(10**6, "none")])[0], LedgerError)
    assert verify(ledger).answered == 1


def test_what_is_forgotten_is_read_again(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger remembers some sessions only; the totals and limits of the others are as exact."""
    monkeypatch.setattr(writer, "_SESSIONS_KEPT", 2)
    for turn in range(3):
        for session in "abcde":
            if not turn:
                ledger.open(Account(session, "zcdp", 12))
            charge(ledger, 4, session)
    assert [ledger.totals(session).units for session in "abcde"] == [12] * 5
    for session in "edcba":
        with pytest.raises(BudgetError):
            charge(ledger, 1, session)
    assert verify(ledger).totals.entries == 15
