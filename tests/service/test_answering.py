"""A condition that comes with an opening is read before the opening is charged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from gateway import people, prepared

import holdfast as hf
from holdfast.planning.question import Above, Fraction, Question, Select, Weigh
from holdfast.query import parse
from holdfast.service import answering
from holdfast.session import above_threshold

ABOVE, WEIGH = (
    {"threshold": 0.5, "hits": 1, "epsilon": 0.1, "confirm": True},
    {"columns": ["smoker"], "queries": 5, "rho": 0.05, "confirm": True},
)


WRONG = [
    Above(**ABOVE, where="age >"),
    Above(**ABOVE, where="pets > 1"),
    Weigh(**WEIGH, where="smoker ="),
    Weigh(**WEIGH, where="age > 5"),  # a column that the weights do not have
]


def charges_of_wrong_conditions() -> int:
    """How many charges are left by openings that come with a condition which cannot be read."""
    with prepared({"people": people(5000)}) as started:
        for number, wrong in enumerate(WRONG):
            named = replace(wrong, name=f"number {number}")
            with pytest.raises(hf.HoldfastError):
                started.gateway.ask(started.person(started.analyst), "people", named)
        return started.gateway.tables.ledger("people").totals().entries


def test_a_condition_is_read_before_the_opening_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    assert charges_of_wrong_conditions() == 0
    monkeypatch.setattr(answering, "parse_predicate", lambda *read: None)
    monkeypatch.setattr(answering, "region", lambda *read: None)
    assert charges_of_wrong_conditions() == len(WRONG)


def cost(asked: Question, session: hf.Session) -> float:
    return answering.answering(asked, session, "people").plans()[0].cost


def test_an_estimate_reads_the_condition_too() -> None:
    session = people(5000).session(rho=50.0)
    for wrong in WRONG:
        with pytest.raises(hf.HoldfastError):
            answering.answering(wrong, session, "people")
    assert cost(Above(**ABOVE, where="age > 5"), session) > 0
    assert cost(Weigh(**WEIGH, where="smoker = 'yes'"), session) > 0


ONCE: dict[Question, list[str]] = {
    Fraction(where="age > 3", rho=0.01): ["age > 3"],
    Select(candidates=("age > 4", "smoker = 'yes'"), rho=0.01): ["age > 4", "smoker = 'yes'"],
    Above(**ABOVE, where="age > 5"): ["age > 5"],
    Weigh(**WEIGH | {"columns": ("smoker",)}, where="smoker = 'no'"): ["smoker = 'no'"],
}


def parsed(monkeypatch: pytest.MonkeyPatch) -> dict[Question, list[str]]:
    """What is parsed for each question on its way from the gateway's door to its answer."""
    found: dict[Question, list[str]] = {}
    parsing = parse._remembered
    with prepared({"people": people(5000)}) as started, monkeypatch.context() as patch:
        for asked in ONCE:
            texts: list[str] = []

            def noted(text: str, *more: Any, texts: list[str] = texts) -> Any:
                texts.append(text)
                return parsing(text, *more)

            patch.setattr(parse, "_remembered", noted)
            started.gateway.ask(started.person(started.analyst), "people", asked)
            found[asked] = texts
    return found


def test_a_question_is_parsed_once_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parsed(monkeypatch) == ONCE
    again = lambda where, schema: parse.parse_predicate(str(where), schema)  # noqa: E731  (the twin)
    monkeypatch.setattr(above_threshold, "condition_of", again)
    assert parsed(monkeypatch) != ONCE
