"""Shares of the meter in every ledger: a maximum is kept, and nobody tells what is somebody else's."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from holdfast.errors import BudgetError, LedgerError
from holdfast.ledger import (
    UNCOVERED,
    Account,
    Charge,
    Ledger,
    MemoryLedger,
    SqliteLedger,
    copy_ledger,
    given_away,
    memory,
    most_of_all,
    verify,
    writer,
)


def share(name: str, own: int, all_: int) -> Account:
    return Account(name, "zcdp", 10**9, "", own, all_)


def tell(ledger: Ledger, name: str, much: int, key: str = "") -> None:
    key = key or f"{name} {ledger.totals().entries}"
    ledger.reserve(name, key, '{"kind": "x"}', "{}", Charge(1, 1, 1, much))


def test_a_share_tells_its_maximum_and_nothing_more(ledger: Ledger) -> None:
    ledger.open(share("ann", 10, 30))
    tell(ledger, "ann", 7)
    with pytest.raises(BudgetError, match="its share of the meter"):
        tell(ledger, "ann", 4)
    tell(ledger, "ann", 3)
    tell(ledger, "ann", 0)
    assert ledger.totals("ann").information == ledger.totals().information == 10
    verify(ledger)


def test_what_is_given_away_can_be_told_by_nobody_else(ledger: Ledger) -> None:
    ledger.open(Account("guest", "zcdp", 10**9))
    tell(ledger, "guest", 4)
    ledger.open(share("ann", 10, 30))
    ledger.open(share("bob", 10, 30))
    with pytest.raises(BudgetError, match="shared out"):
        ledger.open(share("cyd", 7, 100))  # 4 + 10 + 10 + 7 are more than 30
    with pytest.raises(BudgetError, match="shared out"):
        ledger.open(share("cyd", 3, 26))  # their own plan would count less than others may tell
    ledger.open(share("cyd", 3, 30))
    with pytest.raises(BudgetError, match="shares of others"):
        tell(ledger, "guest", 4)
    with pytest.raises(BudgetError, match="shares of others"):
        tell(ledger, "guest", UNCOVERED)  # what no theorem bounds would end it for everybody
    tell(ledger, "guest", 3)
    for name, most in (("ann", 10), ("bob", 10), ("cyd", 3)):
        tell(ledger, name, most)
    assert ledger.totals().information == 30
    verify(ledger)


def test_without_a_share_anything_may_be_told(ledger: Ledger) -> None:
    ledger.open(Account("guest", "zcdp", 10**9))
    for much in (7, UNCOVERED, UNCOVERED, 3):
        tell(ledger, "guest", much)
    assert ledger.totals("guest").information == ledger.totals().information == UNCOVERED
    verify(ledger)


def test_what_an_answer_did_not_tell_is_given_back_to_its_share(ledger: Ledger, tmp_path: Path) -> None:
    ledger.open(Account("guest", "zcdp", 10**9))
    ledger.open(share("ann", 10, 16))
    for _ in range(3):  # each may tell 5 and tells 2
        for name in ("guest", "ann"):
            entry = ledger.reserve(
                name,
                f"{name} {ledger.totals().entries}",
                "{}",
                "{}",
                Charge(1, 1, 1, 5 if name == "ann" else 2),
            )
            ledger.record(entry.id, "1", told=2 if name == "ann" else None)
    assert ledger.totals("ann").information == ledger.totals("guest").information == 6
    assert ledger.moment("ann").session.information == 6 and ledger.totals().information == 12
    with pytest.raises(BudgetError):
        tell(ledger, "guest", 1)  # 10 are ann's, 6 were the guest's
    with pytest.raises(BudgetError):
        tell(ledger, "ann", 5)
    tell(ledger, "ann", 4)
    verify(ledger)
    copied = SqliteLedger(tmp_path / "copied.sqlite")
    copy_ledger(ledger, copied)
    verify(copied)
    assert copied.totals("ann") == ledger.totals("ann") and copied.totals() == ledger.totals()
    copied.close()


def test_a_share_stays_as_it_was_opened(ledger: Ledger) -> None:
    ledger.open(share("ann", 10, 30))
    for other in (share("ann", 11, 30), share("ann", 10, 31), Account("ann", "zcdp", 10**9)):
        with pytest.raises(LedgerError, match="another share of the meter"):
            ledger.open(other)
    assert ledger.open(share("ann", 10, 30)) == share("ann", 10, 30)


def test_what_a_closed_share_did_not_tell_is_free_and_no_other_plan_is_widened(ledger: Ledger) -> None:
    """ann told 4 of 10. bob's plan counts 20 for others: 4 are ann's, 16 anybody's, and not one more."""
    ledger.open(Account("guest", "zcdp", 10**9))
    for name in ("ann", "bob", "cyd"):
        ledger.open(share(name, 10, 30))
    tell(ledger, "ann", 3)
    late = ledger.reserve("ann", "late", "{}", "{}", Charge(1, 1, 1, 5))
    with pytest.raises(BudgetError):
        tell(ledger, "guest", 1)
    ledger.end("cyd")
    ledger.end("ann")
    with pytest.raises(BudgetError, match="shares of others"):
        tell(ledger, "guest", 13)  # 3 and 5 were told by ann at most, 10 are bob's
    ledger.record(late.id, "1", told=1)  # what was reserved and not told is given back after the end too
    tell(ledger, "guest", 6)
    ledger.open(share("dan", 10, 30))
    with pytest.raises(BudgetError, match="shares of others"):
        tell(ledger, "guest", 1)
    with pytest.raises(BudgetError, match="shared out"):
        ledger.open(share("eve", 1, 30))
    tell(ledger, "dan", 10)
    with pytest.raises(BudgetError, match="closed"):
        tell(ledger, "ann", 1)
    assert ledger.totals().information - ledger.totals("bob").information == 30 - 10
    tell(ledger, "bob", 10)
    verify(ledger)


def test_a_share_that_goes_on_after_its_end_would_widen_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin frees a share and lets it go on: others are told more than bob's plan counts."""
    made = MemoryLedger()
    monkeypatch.setattr(memory, "refuse_closed", lambda *how: None)
    for name in ("ann", "bob"):
        made.open(share(name, 10, 20))
    made.end("ann")
    made.open(share("dan", 10, 20))
    tell(made, "dan", 10)
    tell(made, "ann", 10)
    assert made.totals().information > 20 - 10
    with pytest.raises(LedgerError, match="closed"):
        verify(made)


def test_what_may_have_been_told() -> None:
    shares = [share("ann", 10, 30), share("bob", 5, 25)]
    told = {"ann": 4, "bob": 6}  # bob's was lost with an older copy
    assert given_away(shares, told.__getitem__, 12) == 10 + 6 + 2
    assert given_away(shares, told.__getitem__, UNCOVERED) == UNCOVERED
    assert given_away([], told.__getitem__, 12) == 12
    assert most_of_all(shares) == 25 and most_of_all([]) == UNCOVERED


def test_shares_are_saved_with_the_table(tmp_path: Path) -> None:
    source = MemoryLedger()
    source.open(Account("guest", "zcdp", 10**9, delta=7))
    source.reserve("guest", "first", '{"kind": "x"}', "{}", Charge(1, 1, 1, 4, 5))
    source.open(share("ann", 10, 16))
    tell(source, "ann", 6)
    tell(source, "guest", 2)
    copied = SqliteLedger(tmp_path / "copy.sqlite")
    copy_ledger(source, copied)
    verify(copied)
    assert copied.totals() == source.totals() and copied.totals("guest").delta == 5
    with pytest.raises(BudgetError):
        tell(copied, "ann", 5)
    with pytest.raises(BudgetError):
        tell(copied, "guest", 1)
    copied.close()


@pytest.mark.parametrize("room", [memory, writer])
def test_a_ledger_that_does_not_look_is_noticed(
    room: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin: a share that tells more than its maximum. Whoever walks the history sees it."""
    made = MemoryLedger() if room is memory else SqliteLedger(tmp_path / "ledger.sqlite")
    monkeypatch.setattr(room, "check_told", lambda *told: None)
    made.open(share("ann", 10, 30))
    tell(made, "ann", 11)
    with pytest.raises(LedgerError, match="its share of the meter"):
        verify(made)
    made.close()


def test_a_share_that_was_raised_by_hand_is_noticed(tmp_path: Path) -> None:
    made = SqliteLedger(tmp_path / "ledger.sqlite")
    made.open(share("ann", 10, 30))
    made.close()
    forged = sqlite3.connect(tmp_path / "ledger.sqlite")
    for trigger in forged.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        forged.execute(f"DROP TRIGGER {trigger[0]}")
    forged.execute("UPDATE accounts SET information = 20")
    forged.commit()
    forged.close()
    with pytest.raises(LedgerError, match="changed"):
        verify(SqliteLedger(tmp_path / "ledger.sqlite"))
