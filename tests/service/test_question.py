"""A condition that comes with an opening is read before the opening is charged."""

from __future__ import annotations

import pytest
from gateway import people, prepared

import holdfast as hf
from holdfast.service import question

ABOVE, WEIGH = (
    {"kind": "above", "threshold": 0.5, "hits": 1, "epsilon": 0.1, "confirm": True},
    {"kind": "weigh", "columns": ["smoker"], "queries": 5, "rho": 0.05, "confirm": True},
)


WRONG = [
    question.Above(**ABOVE, where="age >"),
    question.Above(**ABOVE, where="pets > 1"),
    question.Weigh(**WEIGH, where="smoker ="),
    question.Weigh(**WEIGH, where="age > 5"),  # a column that the weights do not have
]


def charges_of_wrong_conditions() -> int:
    """How many charges are left by openings that come with a condition which cannot be read."""
    with prepared({"people": people(5000)}) as started:
        for number, wrong in enumerate(WRONG):
            named = wrong.model_copy(update={"name": f"number {number}"})
            with pytest.raises(hf.HoldfastError):
                started.gateway.ask(started.person(started.analyst), "people", named)
        return started.gateway.tables.ledger("people").totals().entries


def test_a_condition_is_read_before_the_opening_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    assert charges_of_wrong_conditions() == 0
    monkeypatch.setattr(question, "parse_predicate", lambda *read: None)
    monkeypatch.setattr(question, "region", lambda *read: None)
    assert charges_of_wrong_conditions() == len(WRONG)


def test_an_estimate_reads_the_condition_too() -> None:
    session = people(5000).session(rho=50.0)
    for wrong in WRONG:
        with pytest.raises(hf.HoldfastError):
            wrong.plans(session)
    assert question.Above(**ABOVE, where="age > 5").plans(session)[0].cost > 0
    assert question.Weigh(**WEIGH, where="smoker = 'yes'").plans(session)[0].cost > 0
