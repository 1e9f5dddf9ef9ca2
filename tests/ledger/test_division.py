"""Units are set aside by the first account of a ledger or never, also if two processes open the table at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.errors import InputError, LedgerError
from holdfast.ledger import ASIDE, Account, Ledger, copy_ledger, verify
from holdfast.ledger.entry import LOOKS
from ledger.dividing import Opener
from ledger.homes import HOMES

DIVIDED = Account(ASIDE, "zcdp", 0, json.dumps({"rows": 400, "aside": 40}))


def session(name: str, **terms: str) -> Account:
    return Account(name, "zcdp", 10**9, json.dumps(terms))


def test_what_comes_first_decides(ledger: Ledger) -> None:
    ledger.open(DIVIDED)
    with pytest.raises(LedgerError, match="set aside since"):
        ledger.open(session("all units"))
    assert ledger.open(DIVIDED) == DIVIDED, "coming back is allowed"
    ledger.open(session("the rest", part="rest"))
    ledger.open(session("those aside", part="aside"))
    with pytest.raises(LedgerError, match="another name"):
        ledger.open(session("the rest"))
    assert [account.name for account in ledger.accounts()] == [ASIDE, "the rest", "those aside"]


def test_nothing_is_set_aside_after_a_session(ledger: Ledger, tmp_path: Path) -> None:
    ledger.open(session("all units"))
    with pytest.raises(InputError, match="after sessions were opened"):
        ledger.open(DIVIDED)
    ledger.open(session("more"))
    assert [account.name for account in ledger.accounts()] == ["all units", "more"]


def test_a_copy_keeps_it_and_looks_at_boards_are_no_sessions(ledger: Ledger, tmp_path: Path) -> None:
    from holdfast.ledger import SqliteLedger

    ledger.open(DIVIDED)
    ledger.open(session("the rest", part="rest"))
    ledger.open(Account("a team", LOOKS, 3))
    copy = SqliteLedger(tmp_path / "copy.sqlite", tmp_path / "anchors")
    copy_ledger(ledger, copy)
    with pytest.raises(LedgerError, match="set aside since"):
        copy.open(session("all units"))
    verify(copy)
    copy.close()


@pytest.fixture(scope="module", params=[False, True], ids=["as it is", "broken twin"])
def two(request: pytest.FixtureRequest) -> Iterator[tuple[bool, Opener, Opener]]:
    openers = Opener(request.param), Opener(request.param)
    yield request.param, *openers
    for opener in openers:
        opener.stop()


@pytest.mark.parametrize("kind", sorted(HOMES))
def test_two_processes_at_once(two: tuple[bool, Opener, Opener], kind: str, tmp_path: Path) -> None:
    """The first stops before its transaction, the second goes through, and then the first goes on."""
    broken, slow, quick = two

    def both(first: dict[str, object], second: dict[str, object]) -> tuple[str, str]:
        """What each said: the quick one, then the slow one."""
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        home = HOMES[kind](folder)
        home.open().close()
        at = {"address": home.address, "anchors": str(folder / "anchors")}
        assert slow.say({**at, **first, "stop": True}) == "stopped"
        said = quick.say({**at, **second, "stop": False})
        return said, slow.say("go on")

    asks: dict[str, object] = {"share": None, "ask": True}
    tenth: dict[str, object] = {"share": 0.1, "ask": False}
    quarter: dict[str, object] = {"share": 0.25, "ask": False}
    divides_late, asks_late = both(tenth, asks), both(asks, tenth)
    assert divides_late[0] == "400 units" and asks_late[0] == "360 units"
    if broken:
        assert (divides_late[1], asks_late[1]) == ("360 units", "400 units"), "both proceed, on other units"
        return
    assert divides_late[1].startswith("InputError: expected set_aside= when the table is first opened")
    assert asks_late[1].startswith("LedgerError: units of this table were set aside since")
    other = both(quarter, tenth)
    assert other[0] == "360 units"
    assert other[1].startswith("InputError: expected set_aside=0.1 as when this table was first opened")
    assert both(tenth, tenth) == ("360 units", "360 units")
