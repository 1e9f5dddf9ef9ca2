"""What a charge may be, how long a plan holds, and where a budget ends; number by number."""

from __future__ import annotations

import pytest

from holdfast.errors import BudgetError, InputError, LedgerError
from holdfast.ledger import Account, Charge, Precondition, Stale, Totals
from holdfast.ledger.entry import MOST, refuse_overspending


def test_a_plan_counted_in_another_currency_is_refused_for_good() -> None:
    cap = Account("the table", "pure", 100)
    with pytest.raises(LedgerError, match="counted in pure now, not in zcdp"):
        Precondition(currency="zcdp").check(Totals(), Totals(), cap)
    for currency in (None, "pure"):
        Precondition(currency=currency).check(Totals(), Totals(), cap)
    Precondition(currency="zcdp").check(Totals(), Totals(), None)


@pytest.mark.parametrize(
    ("holds", "session", "table"),
    [
        (Precondition(session_answers=3), Totals(9, 4, 9), Totals()),
        (Precondition(table_answers=3), Totals(), Totals(9, 4, 9)),
        (Precondition(table_units=3), Totals(), Totals(1, 1, 4)),
        (Precondition(fresh=True), Totals(1, 0, 0), Totals(2, 0, 0)),
    ],
)
def test_a_plan_holds_up_to_its_numbers_and_no_further(
    holds: Precondition, session: Totals, table: Totals
) -> None:
    with pytest.raises(Stale):
        holds.check(session, table)
    Precondition(3, 3, 3, fresh=True).check(Totals(1, 3, 3), Totals(1, 3, 3))


def test_a_refusal_says_what_was_wanted_and_what_was_left() -> None:
    account = Account("ann", "zcdp", 10**9)
    refuse_overspending(account, 10**9, 7)
    with pytest.raises(BudgetError, match="ann has 1 left") as refused:
        refuse_overspending(account, 3 * 10**12, 3 * 10**12)
    assert (refused.value.requested, refused.value.remaining) == (pytest.approx(3000.0), pytest.approx(1.0))
    with pytest.raises(BudgetError) as beyond:
        refuse_overspending(account, 10**400, 10**400)
    assert beyond.value.requested == pytest.approx(1e291)
    refuse_overspending(None, MOST, 1)
    with pytest.raises(BudgetError, match="the table has"):
        refuse_overspending(None, MOST + 1, 1)


@pytest.mark.parametrize("bad", [(-1, 0, 0), (0, -1, 0), (0, 0, -1), (1.0, 0, 0), (0, True, 0), (0, 0, "1")])
def test_a_charge_is_whole_and_not_below_nothing(bad: tuple[int, int, int]) -> None:
    with pytest.raises(InputError, match="whole units"):
        Charge(*bad)
    assert Totals(1, 2, 3).of_session(Charge(5, 6, 4, 7, 8)) == Totals(2, 6, 8, 7, 8)
    assert Totals(1, 2, 3, 4).of_table(Charge(5, 6, 4, 7, 8)) == Totals(2, 6, 9, 11, 8)
