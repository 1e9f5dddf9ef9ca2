"""One plan serves every condition, and an answer is what the ledger holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import holdfast as hf
from holdfast.ledger import MemoryLedger
from holdfast.planning.plan import Plan
from holdfast.session.answer import Answer
from holdfast.session.session import Session
from holdfast.session.table import Table

KINDS = [
    lambda s, where: s.fraction(where, within=0.1, mechanism="votes"),
    lambda s, where: s.fraction(where, within=0.1),
    lambda s, where: s.count(where, rho=0.01),
    lambda s, where: s.sum("age", where, rho=0.01),
    lambda s, where: s.mean("age", where, rho=0.01),
    lambda s, where: s.quantile("age", 0.5, where, rho=0.01),
    lambda s, where: s.fraction(where, by="smoker", rho=0.01),
]


def session_of(table: Table) -> Session:
    return Table(table._source, MemoryLedger()).session(rho=10.0, queries=50, target="table")


def shared_plan_is_right(table: Table, ask: Any) -> bool:
    """Whether a plan kept from another condition is the one that would be made afresh."""
    fresh = ask(session_of(table).estimate, "age > 40")
    session = session_of(table)
    ask(session.estimate, "smoker = 'yes' OR age IS NULL")
    kept: Plan = ask(session.estimate, "age > 40")
    return (kept, kept.text, kept.event_text, str(kept)) == (fresh, fresh.text, fresh.event_text, str(fresh))


@pytest.mark.parametrize("ask", KINDS)
def test_a_plan_does_not_depend_on_the_condition(table: hf.Table, ask: Any) -> None:
    assert shared_plan_is_right(table, ask)


def test_a_plan_that_keeps_the_other_question_is_caught(
    table: hf.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin: the plan of one condition handed out for another."""
    monkeypatch.setattr(Plan, "about", lambda self, statistic: self)
    assert not shared_plan_is_right(table, KINDS[0])


@pytest.mark.parametrize("ask", KINDS)
def test_a_returned_answer_is_the_stored_one(table: hf.Table, ask: Any) -> None:
    session = session_of(table)
    answer: Answer = ask(session, "age > 40")
    (stored,) = session.history
    again: Answer = ask(session, "age > 40")
    assert answer.to_json() == stored.to_json() == again.to_json()
    assert str(answer) == str(replace(stored, repeated=False))
    assert again.repeated
    assert not answer.repeated
