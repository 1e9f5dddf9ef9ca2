"""What every ledger must do; a newcomer is added to MAKERS and cannot skip a law."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import sqlite3
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.errors import BudgetError, InputError, LedgerError
from holdfast.ledger import (
    LOOKS,
    UNCOVERED,
    Account,
    Charge,
    Ledger,
    MemoryLedger,
    Precondition,
    SqliteLedger,
    Stale,
    Survey,
    Totals,
    copy_ledger,
    export,
    memory,
    verify,
    verify_export,
    writer,
)
from ledger.makers import MAKERS, charge


def test_totals_are_exact_integers(ledger: Ledger) -> None:
    ledger.open(Account("s", "zcdp", 10**18))
    for _ in range(200):
        charge(ledger, 1)
    assert ledger.totals("s") == Totals(200, 600, 200)
    assert ledger.totals() == Totals(200, 600, 400)
    assert ledger.totals("nobody") == Totals(0, 0, 0)


def test_the_first_of_a_beginning_is_its_least_key(ledger: Ledger) -> None:
    for name in ("s", "other"):
        ledger.open(Account(name, "zcdp", 10**18))
    draw = np.random.default_rng(3)
    questions = [uuid.UUID(bytes=draw.bytes(16)).hex for _ in range(4)]
    beginnings = [question + letter for question in questions for letter in "sw"]
    keys = [f"{draw.choice(beginnings[:-1])}{draw.bytes(8).hex()}" for _ in range(60)]
    for key in [*keys, "weights w question 3", questions[0], json.dumps(["sample", "x"])]:
        ledger.reserve("s", key, "{}", "{}", Charge(1, 1, 1))
    found = {entry.key for entry in ledger.firsts("s", beginnings)}
    least = {min((key for key in keys if key.startswith(one)), default="") for one in beginnings}
    assert found == least - {""}
    assert len(found) > 5  # the last beginning has none
    assert ledger.firsts("other", beginnings) == []
    entry = next(entry for entry in ledger.entries("s") if entry.key in found)
    ledger.record(entry.id, "told")
    assert "told" in {one.answer for one in ledger.firsts("s", beginnings)}


def test_a_survey_says_what_was_asked_and_where_the_ledger_stands(ledger: Ledger) -> None:
    draw = np.random.default_rng(4)
    questions = [uuid.UUID(bytes=draw.bytes(16)).hex for _ in range(100)]
    for name, some in (("s", questions[:30]), ("other", questions[20:60])):
        ledger.open(Account(name, "zcdp", 10**18))
        for question in some:
            ledger.reserve(
                name, f"{question}{draw.choice(list('wres'))}{draw.bytes(8).hex()}", "{}", "{}", Charge(1, 1)
            )
    surveys = [Survey(name, question) for question in questions for name in ("s", "other", "nobody")]
    told = ledger.survey_all(surveys)
    assert {one for one, said in zip(surveys, told, strict=True) if said.asked} == {
        *(Survey("s", question) for question in questions[:30]),
        *(Survey("other", question) for question in questions[20:60]),
    }
    assert all(said.moment == ledger.moment(one.session) for one, said in zip(surveys, told, strict=True))


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
    for over in (
        Precondition(session_answers=3), Precondition(table_answers=3), Precondition(table_units=2),
        Precondition(least_answers=5),
    ):  # fmt: skip
        with pytest.raises(Stale):
            ledger.reserve("s", "another", "{}", "{}", one, over)
    with pytest.raises(Stale):
        ledger.reserve("s", "key 0", "{}", "{}", one)
    assert ledger.totals("s").entries == 1
    just = Precondition(session_answers=4, table_answers=4, table_units=3, least_answers=4)
    ledger.reserve("s", "another", "{}", "{}", one, just)


def test_a_plan_for_a_fresh_table_is_reserved_first_or_not_at_all(ledger: Ledger) -> None:
    """Before anybody else, charged or not: an entry that costs nothing tells something as well."""
    for name in ("s", "other"):
        ledger.open(Account(name, "zcdp", 100))
    ledger.reserve("s", "first", "{}", "{}", Charge(1, 1), Precondition(fresh=True))
    for name in ("s", "other"):
        with pytest.raises(Stale):
            ledger.reserve(name, "second", "{}", "{}", Charge(0, 0, 0), Precondition(fresh=True))
    assert ledger.totals() == Totals(1, 1, 1)


def test_an_entry_that_costs_nothing_ends_a_fresh_table(ledger: Ledger) -> None:
    ledger.open(Account("s", "zcdp", 100))
    ledger.reserve("s", "free", "{}", "{}", Charge(0, 0, 0))
    with pytest.raises(Stale):
        ledger.reserve("s", "second", "{}", "{}", Charge(1, 1), Precondition(fresh=True))


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


def three(ledger: Ledger) -> list[int]:
    """Three reservations, answered in another order."""
    ledger.open(Account("s", "zcdp", 100))
    entries = [charge(ledger, 1) for _ in range(3)]
    for number in (2, 0):
        ledger.record(entries[number], f"answer {number}", secret=number == 2)
    return entries


def test_answers_are_told_in_their_order(ledger: Ledger) -> None:
    entries = three(ledger)
    told = list(ledger.answered())
    assert [(e.id, e.answer, e.secret) for _, e in told] == [
        (entries[2], "answer 2", True),
        (entries[0], "answer 0", False),
    ]
    assert [place for place, _ in told] == sorted({place for place, _ in told})
    ledger.record(entries[1], "answer 1")
    assert [e.answer for _, e in ledger.answered(told[-1][0])] == ["answer 1"]
    assert [e.answer for _, e in ledger.answered(told[0][0])] == ["answer 0", "answer 1"]


def test_an_answer_that_depends_on_all_before_is_recorded_after_them_or_not_at_all(ledger: Ledger) -> None:
    ledger.open(Account("s", "zcdp", 100))
    first, second, third = (charge(ledger, 1) for _ in range(3))
    assert ledger.record(first, "first", after=0) == "first"
    ((place, _),) = ledger.answered()
    for late in (0, place - 1, place + 1):
        with pytest.raises(Stale):
            ledger.record(second, "planned on other answers", after=late)
    assert ledger.record(second, "second", after=place) == "second"
    assert ledger.record(second, "again", after=0) == "second"
    with pytest.raises(Stale):
        ledger.record(third, "planned on other answers", after=place)
    ledger.record(third, "whenever")
    assert [e.answer for _, e in ledger.answered()] == ["first", "second", "whenever"]
    assert verify(ledger).answered == 3


def quickest(ledger: Ledger, threads: int = 8) -> int:
    """How many of several threads, which have all seen the same answers, record one."""
    ledger.open(Account("s", "zcdp", 100))
    entries, won = [charge(ledger, 1) for _ in range(threads)], []
    ready = threading.Barrier(threads)

    def run(entry: int) -> None:
        ready.wait()
        with contextlib.suppress(Stale):
            won.append(ledger.record(entry, "mine", after=0))

    started = [threading.Thread(target=run, args=(entry,)) for entry in entries]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return len(won)


def test_of_answers_planned_on_the_same_ones_one_is_recorded(ledger: Ledger) -> None:
    assert quickest(ledger) == 1


def test_answers_recorded_without_looking_would_be_caught() -> None:
    class Careless(MemoryLedger):
        """The broken twin."""

        def record(
            self,
            entry: int,
            answer: str,
            *,
            secret: bool = False,
            after: int | None = None,
            told: int | None = None,
        ) -> str:
            return super().record(entry, answer, secret=secret)

    assert quickest(Careless()) == 8


def test_looks_are_whole_and_refused_by_the_look(ledger: Ledger) -> None:
    ledger.open(Account("red", LOOKS, 2))
    ledger.set_limit(Account("all", LOOKS, 3))
    ledger.reserve("red", "1", "{}", "{}", Charge(1, 1))
    with pytest.raises(BudgetError, match=r"costs 2 and red has 1 left \(in looks\)") as refused:
        ledger.reserve("red", "2", "{}", "{}", Charge(2, 2))
    assert (refused.value.requested, refused.value.remaining) == (2, 1)
    assert "1 looks in all" in str(verify(ledger))


def test_one_ledger_counts_looks_or_privacy(ledger: Ledger) -> None:
    ledger.open(Account("private", "zcdp", 5))
    ledger.open(Account("red", LOOKS, 5))
    with pytest.raises(LedgerError, match="counts privacy"):
        ledger.reserve("red", "1", "{}", "{}", Charge(1, 1))
    ledger.set_limit(Account("all", LOOKS, 5))
    ledger.reserve("red", "1", "{}", "{}", Charge(1, 1))
    with pytest.raises(LedgerError, match="counts looks"):
        ledger.reserve("private", "1", "{}", "{}", Charge(1, 1))
    with pytest.raises(LedgerError, match="counts looks"):
        ledger.open(Account("another", "pure", 5))
    with pytest.raises(LedgerError, match="looks"):
        ledger.set_limit(Account("all", "zcdp", 5))
    assert verify(ledger).totals == Totals(1, 1, 1)


@pytest.mark.parametrize("currencies", [(LOOKS, "zcdp"), ("zcdp", LOOKS)])
def test_a_cap_is_never_changed_from_looks_to_privacy_or_back(
    ledger: Ledger, currencies: tuple[str, str]
) -> None:
    first, other = currencies
    ledger.set_limit(Account("all", first, 5))
    with pytest.raises(LedgerError):
        ledger.set_limit(Account("all", other, 5))


def test_a_mixture_is_noticed_in_a_perfect_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin mixes; hashes and sums are right, and the audit says no."""
    ledger = MemoryLedger()
    ledger.open(Account("private", "zcdp", 5))
    ledger.set_limit(Account("all", LOOKS, 5))
    with monkeypatch.context() as patched:
        patched.setattr("holdfast.ledger.memory.refuse_mixture", lambda *_: None)
        ledger.reserve("private", "1", "{}", "{}", Charge(1, 1))
    with pytest.raises(LedgerError, match="reserved at place 3: expected a ledger that counts zcdp"):
        verify(ledger)


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


def test_what_an_answer_did_not_tell_is_free_again(ledger: Ledger) -> None:
    """Reserved before, read off the answer after: in the same transaction, once, and never below what was told."""
    ledger.open(Account("s", "zcdp", 10**18))
    first, second, third = (
        ledger.reserve("s", key, "{}", "{}", Charge(1, 1, 1, information))
        for key, information in (("a", 100), ("b", 40), ("c", 7))
    )
    assert ledger.totals().information == 147
    with pytest.raises(Stale):
        ledger.reserve("s", "d", "{}", "{}", Charge(1, 1, 1, 5), Precondition(table_information=146))
    assert ledger.record(first.id, "one", told=30) == "one"
    assert ledger.record(first.id, "other", told=0) == "one", "the first outcome stands"
    assert ledger.totals().information == ledger.moment("s").table.information == 77
    fourth = ledger.reserve("s", "d", "{}", "{}", Charge(1, 1, 1, 5), Precondition(table_information=77))
    ledger.record(second.id, "two")
    ledger.record(third.id, "three", told=9)
    ledger.record(fourth.id, "four", told=0)
    assert ledger.totals() == Totals(4, 4, 4, 77), (
        "as reserved where nothing is said, and where more was told"
    )
    assert [entry.spared for entry in ledger.entries()] == [70, 0, 0, 5]
    assert verify(ledger).totals == ledger.totals()


def test_what_is_uncovered_stays_so(ledger: Ledger) -> None:
    ledger.open(Account("s", "zcdp", 10**18))
    small = ledger.reserve("s", "a", "{}", "{}", Charge(1, 1, 1, 100))
    end = ledger.reserve("s", "b", "{}", "{}", Charge(1, 1, 1, UNCOVERED))
    for entry in (small, end):
        ledger.record(entry.id, "told", told=0)
    assert ledger.totals().information == UNCOVERED == verify(ledger).totals.information


def test_more_than_was_reserved_is_not_given_back_in_a_perfect_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: a ledger that believes any number; the walk over its history notices."""
    ledger = MemoryLedger()
    ledger.open(Account("s", "zcdp", 10))
    entry = ledger.reserve("s", "a", "{}", "{}", Charge(1, 1, 1, 100))
    ledger.reserve("s", "b", "{}", "{}", Charge(1, 1, 1, 100))
    with monkeypatch.context() as patch:
        patch.setattr(Totals, "sparing", lambda self, reserved, told: reserved - told)
        ledger.record(entry.id, "one", told=-50)
    with pytest.raises(LedgerError, match="gives back more"):
        verify(ledger)


def test_copying_keeps_what_was_told(ledger: Ledger, tmp_path: Path) -> None:
    ledger.open(Account("s", "zcdp", 10**18))
    for key in "abc":
        entry = ledger.reserve("s", key, "{}", "{}", Charge(1, 1, 1, 100))
        if key != "b":
            ledger.record(entry.id, "told", told=10)
    copy = SqliteLedger(tmp_path / "copy.ledger")
    copy_ledger(ledger, copy)
    assert copy.totals() == ledger.totals() == Totals(3, 3, 3, 120)
    copy.close()


def test_copying_keeps_the_order_of_the_answers(ledger: Ledger, tmp_path: Path) -> None:
    three(ledger)
    target = SqliteLedger(tmp_path / "copy.sqlite")
    copy_ledger(ledger, target)
    assert [(e.answer, e.secret) for _, e in target.answered()] == [("answer 2", True), ("answer 0", False)]
    target.close()


def asked(ledger: Ledger) -> Ledger:
    """A ledger with facts of every kind that sessions make."""
    ledger.set_limit(Account("the table", "zcdp", 1000))
    for session in ("a", "b"):
        ledger.open(Account(session, "zcdp", 100, "promised"))
    ledger.record(charge(ledger, 7, "a"), '{"value": 0.25}')
    pending = charge(ledger, 9, "b")
    ledger.record(charge(ledger, 1, "a"), "the noisy threshold is 17", secret=True)
    ledger.set_limit(Account("the table", "zcdp", 2000))
    ledger.open(Account("b", "zcdp", 300, "promised"))
    ledger.record(pending, "late")
    charge(ledger, 2, "b")
    return ledger


def test_a_ledger_verifies_with_all_its_facts(ledger: Ledger) -> None:
    found = verify(asked(ledger))
    assert (found.place, found.sessions, found.answered, found.secret) == (12, 2, 3, 1)
    assert found.totals == ledger.totals() == Totals(4, 12, 38)
    assert verify(ledger) == found
    charge(ledger, 1, "a")
    assert verify(ledger).head != found.head


def test_what_was_verified_is_said_of_one_and_of_several(ledger: Ledger) -> None:
    ledger.open(Account("a", "zcdp", 100))
    charge(ledger, 1, "a")
    assert ": 1 charge by 1 session, 0 answered" in str(verify(ledger))
    charge(ledger, 1, "a")
    ledger.open(Account("b", "zcdp", 100))
    charge(ledger, 1, "b")
    assert " facts: 3 charges by 2 sessions, 0 answered" in str(verify(ledger))


def test_an_export_verifies_offline_and_keeps_the_secrets_back(ledger: Ledger) -> None:
    lines = list(export(asked(ledger)))
    assert verify_export(lines) == verify(ledger)
    assert keeps_secrets(lines)
    leaky = [leak(line) for line in lines]  # the broken twin: every answer goes out
    assert not keeps_secrets(leaky)


def keeps_secrets(lines: list[str]) -> bool:
    text = "".join(lines)
    return "threshold" not in text and "0.25" in text and "late" in text


def leak(line: str) -> str:
    fact = json.loads(line)
    return json.dumps(fact | {"answer": "the noisy threshold is 17"} if fact.get("secret") else fact)


def test_no_number_and_no_letter_of_an_export_can_change(ledger: Ledger) -> None:
    lines = list(export(asked(ledger)))
    for number, line in enumerate(lines):
        for name in json.loads(line):
            with pytest.raises(LedgerError):
                verify_export([*lines[:number], changed(line, name), *lines[number + 1 :]])
        with pytest.raises(LedgerError):
            verify_export(lines[:number] + lines[number + 1 :])


def changed(line: str, name: str) -> str:
    """The line with one field a little different."""
    fact = json.loads(line)
    value = fact[name]
    fact[name] = value + 1 if isinstance(value, int) else value[:-1] + ("0" if value[-1:] != "0" else "1")
    return json.dumps(fact)


def test_an_export_is_read_as_text_by_anyone(ledger: Ledger) -> None:
    """The chain by hand: what docs/ledger.md says is enough to check it."""
    first, *facts, tip = map(json.loads, export(asked(ledger)))
    head = hashlib.sha256(b"holdfast ledger" + first["ledger"].encode()).hexdigest()
    for fact in facts:
        said, answer, salt = fact.pop("head"), fact.pop("answer", None), fact.pop("salt", None)
        text = json.dumps(fact, sort_keys=True, separators=(",", ":"))
        head = hashlib.sha256((head + text).encode()).hexdigest()
        assert said == head
        if answer is not None:
            assert hashlib.sha256(bytes.fromhex(salt) + answer.encode()).hexdigest() == fact["digest"]
    assert head == tip["head"]


def test_a_passed_limit_is_noticed_in_a_perfect_chain() -> None:
    """The owner who raises nothing and charges on: hashes are right, the rules are not kept."""

    class NoLimits(MemoryLedger):
        def reserve(self, session, key, plan, event, charge, holds=None):  # type: ignore[no-untyped-def]
            standing, self._limit = self._limit, None
            try:
                return super().reserve(session, key, plan, event, charge)
            finally:
                self._limit = standing

    for ledger, kept in ((MemoryLedger(), True), (NoLimits(), False)):
        ledger.set_limit(Account("the table", "zcdp", 3))
        ledger.open(Account("s", "zcdp", 100))
        charge(ledger, 1)
        if kept:
            assert verify(ledger).totals.units == 2
            continue
        charge(ledger, 1)
        with pytest.raises(LedgerError, match="reserved at place 4: it passes the table's limit"):
            verify(ledger)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1, 5e-324, 0.5, 1.0, True, None, "1"])
def test_an_amount_is_a_whole_number_from_zero(wrong: Any) -> None:
    for make in (
        lambda: Charge(wrong, 1),
        lambda: Charge(1, wrong),
        lambda: Charge(1, 1, wrong),
        lambda: Account("s", "zcdp", wrong),
    ):
        with pytest.raises(InputError):
            make()


def test_huge_amounts_are_refused_and_nothing_wraps_around(ledger: Ledger) -> None:
    with pytest.raises(InputError):
        Account("s", "zcdp", 2**63)
    ledger.open(Account("s", "zcdp", 2**63 - 1))
    with pytest.raises(BudgetError):
        ledger.reserve("s", "huge", "{}", "{}", Charge(10**400, 1))
    with pytest.raises(BudgetError):
        ledger.reserve("s", "huge", "{}", "{}", Charge(1, 2**63))
    assert ledger.totals() == Totals()
    ledger.reserve("s", "all", "{}", "{}", Charge(2**63 - 1, 2**63 - 1))
    with pytest.raises(BudgetError):
        ledger.reserve("s", "one more", "{}", "{}", Charge(0, 1))
    assert ledger.totals().units == 2**63 - 1


CHARGES = {"memory": 10**6, "postgres": 200, "sqlite": 500}


def exact(ledger: Ledger, charges: int) -> bool:
    """Whether charges of one unit on top of a large one are all counted."""
    ledger.open(Account("s", "zcdp", 2**62))
    ledger.reserve("s", "large", "", "", Charge(10**17, 10**17, 0))
    one = Charge(1, 1)
    for number in range(charges):
        ledger.reserve("s", str(number), "", "", one)
    return ledger.totals("s").units == ledger.totals().units == 10**17 + charges


@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_a_million_charges_of_one_unit_all_count(kind: str, tmp_path: Path) -> None:
    ledger = MAKERS[kind](tmp_path)
    assert exact(ledger, CHARGES[kind])
    ledger.close()


def test_floats_would_lose_them() -> None:
    class Floats(MemoryLedger):
        def totals(self, session: str | None = None) -> Totals:
            found = super().totals(session)
            return Totals(found.entries, found.answers, float(found.units))  # type: ignore[arg-type]

    assert not exact(Floats(), 1000)


def test_an_answer_needs_a_reservation_and_a_reservation_an_account(ledger: Ledger) -> None:
    ledger.open(Account("s", "zcdp", 10))
    with pytest.raises(LedgerError):
        ledger.record(12345, "an answer to nothing")
    with pytest.raises(LedgerError, match="no account"):
        ledger.reserve("nobody", "key", "{}", "{}", Charge(1, 1))
    assert verify(ledger).place == 1


def test_a_closed_session_is_charged_no_more_and_keeps_what_it_paid_for(
    ledger: Ledger, tmp_path: Path
) -> None:
    for name in ("s", "other"):
        ledger.open(Account(name, "zcdp", 60))
    answered, pending = charge(ledger, 1), charge(ledger, 2)
    ledger.record(answered, "3")
    assert ledger.ended() == frozenset()
    for _ in range(2):
        ledger.end("s")
    assert ledger.ended() == {"s"} and [fact.kind for fact in ledger.history()].count("closed") == 1
    with pytest.raises(BudgetError, match="'s', which was closed") as refused:
        charge(ledger, 1)
    assert refused.value.remaining == 0 and ledger.totals("s").units == 3
    ledger.open(Account("s", "zcdp", 90))  # a larger budget opens it no more
    with pytest.raises(BudgetError, match="closed"):
        charge(ledger, 1)
    charge(ledger, 1, "other")
    assert ledger.record(pending, "4") == "4", "it was paid for"
    with pytest.raises(LedgerError, match="nothing to close"):
        ledger.end("nobody")
    verify(ledger)
    verify_export(export(ledger))
    copied = SqliteLedger(tmp_path / "copied.sqlite")
    copy_ledger(ledger, copied)
    verify(copied)
    with pytest.raises(BudgetError, match="closed"):
        charge(copied, 1)
    copied.close()
    assert SqliteLedger(tmp_path / "copied.sqlite").ended() == {"s"}


@pytest.mark.parametrize("room", [memory, writer])
def test_a_charge_after_the_end_is_noticed_in_a_perfect_chain(
    room: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin does not look whether a session was closed; whoever walks the history does."""
    made = MemoryLedger() if room is memory else SqliteLedger(tmp_path / "ledger.sqlite")
    monkeypatch.setattr(room, "refuse_closed", lambda *how: None)
    made.open(Account("s", "zcdp", 60))
    made.end("s")
    charge(made, 1)
    with pytest.raises(LedgerError, match="closed"):
        verify(made)
    made.close()


def test_strange_text_is_kept_or_refused_but_never_half(ledger: Ledger) -> None:
    ledger.open(Account("s", "zcdp", 10))
    entry = charge(ledger, 1)
    ledger.record(entry, "π ≤ 4, 'quoted'; DROP TABLE entries; --")
    for strange in ("\x00", "\ud800"):
        before = ledger.totals("s")
        try:
            ledger.reserve("s", strange, strange, strange, Charge(1, 1))
        except LedgerError:
            assert ledger.totals("s") == before
        else:
            assert ledger.totals("s") == before.of_session(Charge(1, 1))
    found = verify(ledger)
    assert found.totals == ledger.totals()


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
        threading.Event().wait(0.05)
        self._totals[session] = mine.of_session(charge)


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


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    for number, statement in enumerate(("PRAGMA user_version=99", "CREATE TABLE accounts (name TEXT)")):
        other = tmp_path / f"{number}.sqlite"
        connection = sqlite3.connect(other)
        connection.execute(statement)
        connection.close()
        before = other.read_bytes()
        with pytest.raises(LedgerError, match=f"got version {0 if number else 99}"):
            SqliteLedger(other)
        assert other.read_bytes() == before
    foreign = tmp_path / "foreign.sqlite"
    foreign.write_bytes(b"this is not a database at all, but it is long enough to look like one" * 20)
    with pytest.raises(LedgerError):
        SqliteLedger(foreign)
