"""No session makes more reservations than it may, however many are asked at the same moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from gateway import people

from holdfast.errors import BudgetError
from holdfast.ledger import (
    Account,
    Charge,
    Ledger,
    MemoryLedger,
    PostgresLedger,
    Reserve,
    SqliteLedger,
    Stale,
)
from holdfast.service.public_times import PublicTimesLedger
from service.at_once import DATABASES, Request, code_of, two_gateways
from service.process import database_of
from service.site import Site, site
from service.test_work_lists import in_a_list

MOST = 5


@pytest.fixture(params=["memory", *DATABASES])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    made: Ledger = MemoryLedger()
    if request.param == "sqlite":
        made = SqliteLedger(tmp_path / "l.sqlite", anchors=tmp_path)
    if request.param == "postgres":
        made = PostgresLedger(database_of("postgres")["HOLDFAST_DATABASE"], "entries", tmp_path)
    made.open(Account("ann", "zcdp", 10**9))
    yield PublicTimesLedger(made, MOST)
    made.close()


def reserved(number: int) -> Reserve:
    return Reserve("ann", f"key {number}", "{}", "{}", Charge(1, 1))


def test_a_ledger_counts_in_the_transaction_of_the_charge(ledger: Ledger) -> None:
    said = ledger.commit_all([reserved(number) for number in range(3 * MOST)])
    assert [isinstance(one, BudgetError) for one in said] == [False] * MOST + [True] * 2 * MOST
    assert ledger.totals("ann").entries == MOST == ledger.totals("ann").units
    with pytest.raises(BudgetError, match="as many questions of this table as anybody may"):
        ledger.reserve("ann", "another", "{}", "{}", Charge(0, 0))
    with pytest.raises(Stale):
        ledger.reserve("ann", "key 2", "{}", "{}", Charge(0, 0))
    assert ledger.find("ann", "key 2") is not None, "what was reserved is found as ever"


def test_threads_that_race_for_the_last_entry(ledger: Ledger) -> None:
    start, said = Barrier(16), list[Any]()

    def ask(number: int) -> None:
        start.wait()
        try:
            said.append(ledger.reserve("ann", f"key {number}", "{}", "{}", Charge(1, 1)))
        except BudgetError as error:
            said.append(error)

    threads = [Thread(target=ask, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(isinstance(one, BudgetError) for one in said) == {False: MOST, True: 16 - MOST}


def entries_of_a_list(here: Site) -> int:
    """How many a person has after sixty questions that were taken in one list."""
    person = here.started.person(here.started.analyst)
    asked = [("ann", f"age > {number}", 1e-6, None) for number in range(60)]
    codes = Counter(map(str, in_a_list(here, {"ann": person}, asked)))
    held = here.ledger().totals(person.id).entries
    assert codes["budget"] == 60 - held
    return held


@pytest.mark.parametrize("counted", [True, False])
def test_a_list_of_many_has_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch, counted: bool) -> None:
    """The broken twin looks before the charge alone: all of the list saw an empty ledger."""
    if not counted:
        monkeypatch.setattr(PublicTimesLedger, "_capped", lambda ledger, holds: holds)
    declared = {"queries": 1_000, "target": "table"}  # one plan for all, which no other answer makes stale
    with site({"people": people(2_000)}, declared=declared, most_entries=MOST) as here:
        assert entries_of_a_list(here) == (MOST if counted else 60)


@pytest.mark.parametrize("kind", DATABASES)
def test_two_gateways_that_are_asked_at_once_keep_to_it(kind: str) -> None:
    declared = {"queries": 1_000, "target": "table"}
    with two_gateways(kind, {"people": people(2_000)}, declared=declared, most_entries=MOST) as pair:
        questions = [{"kind": "fraction", "where": f"age > {number}", "rho": 1e-6} for number in range(32)]
        asked = [Request("/datasets/people/ask", one, pair.started.analyst) for one in questions]
        assert Counter(map(code_of, pair.at_once(asked))) == {"200": MOST, "budget": 32 - MOST}
        person = pair.started.person(pair.started.analyst).id
        assert pair.started.gateway.tables.ledger("people").totals(person).entries == MOST
