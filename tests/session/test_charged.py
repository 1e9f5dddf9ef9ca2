"""What cannot be answered is refused before it is charged; what was charged is answered."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from gateway import people, prepared

import holdfast as hf
from holdfast.ledger import MemoryLedger
from holdfast.service import question
from holdfast.session import planner, watch
from holdfast.session.session import Session

ROWS = 500
TABLE = {"ms": np.arange(ROWS) * 10**8, "x": np.arange(ROWS) % 7}
SCHEMA = hf.Schema(ms=hf.Integer(0, 2 * 10**12), x=hf.Integer(0, 6))
QUESTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda s, **how: s.sum("ms", **how),
    "mean": lambda s, **how: s.mean("ms", **how),
    "fraction": lambda s, **how: s.fraction("x > 3", **how),
    "histogram": lambda s, **how: s.histogram("x", **how),
    "quantile": lambda s, **how: s.quantile("ms", 0.5, **how),
}
AMOUNTS = [{name: amount} for name in ("within", "epsilon", "rho") for amount in (1e-30, 1e-9, 1e-4, 1e18)]
ASKED = [*AMOUNTS, *({"within": 1e30, "mechanism": m} for m in ("gaussian", "laplace", "subsampled-laplace"))]


def opened(**terms: Any) -> Session:
    return hf.open(TABLE, SCHEMA, ledger=MemoryLedger()).session(**({"rho": 9e9} | terms))


def charged_and_refused(session: Session, ask: Callable[[Session], Any]) -> bool:
    try:
        ask(session)
    except hf.HoldfastError:
        return session._ledger.totals(session.name).entries > 0
    return False


def all_sound(name: str, target: str) -> bool:
    return not any(
        charged_and_refused(opened(target=target), lambda s, how=how: QUESTIONS[name](s, **how))
        for how in ASKED
    )


@pytest.mark.parametrize("target", ["table", "population"])
@pytest.mark.parametrize("name", list(QUESTIONS))
def test_a_question_is_refused_before_its_charge_or_answered(name: str, target: str) -> None:
    assert all_sound(name, target)


def test_noise_that_cannot_be_drawn_was_once_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "refuse_undrawable", lambda *recipe: None)
    assert not all_sound("sum", "table")
    monkeypatch.setattr(planner, "_MOST_NOISE", dict.fromkeys(planner._MOST_NOISE, Fraction(10**50)))
    assert not all_sound("fraction", "table")  # within= is met by the largest noise that can be drawn


def test_a_wide_answer_has_the_largest_noise_that_can_be_drawn() -> None:
    far = hf.open({"far": np.arange(500)}, hf.Schema(far=hf.Integer(0, 10**15)))
    for mechanism in ("gaussian", "laplace"):
        session = far.session(rho=1.0, target="table")
        answer = session.sum("far", within=4.9e17, mechanism=mechanism)
        assert session.estimate.sum("far", within=4.9e17, mechanism=mechanism).width < 4.9e17 / 4
        assert 0 == answer.low <= answer.value <= answer.high


def test_a_paid_answer_that_cannot_be_drawn_says_so_when_it_is_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = opened()
    with monkeypatch.context() as before:
        before.setattr(planner, "refuse_undrawable", lambda *recipe: None)
        with pytest.raises(hf.InputError, match="scale"):
            session.sum("ms", epsilon=1e-4)
    spent = session.spent
    with pytest.raises(hf.InputError, match="cannot be drawn"):
        session.sum("ms", epsilon=1e-4)
    assert session.spent == spent


def test_a_sparse_vector_whose_questions_cannot_be_drawn_is_not_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ask(session: Session) -> bool:
        # The noise of its threshold can be drawn, that of its questions cannot.
        return session.sparse_vector(0.5, 10_000, epsilon=2e-12).above("x > 3")

    assert not charged_and_refused(opened(), ask)
    monkeypatch.setattr(watch, "refuse_undrawable", lambda *noise: None)
    assert charged_and_refused(opened(), ask)


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


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "subsampled-laplace"])
def test_a_column_of_one_value_is_refused(mechanism: str) -> None:
    session = hf.open({"one": np.zeros(9, dtype=int)}, hf.Schema(one=hf.Integer(0, 0))).session(rho=1.0)
    with pytest.raises(hf.InputError, match="nothing to ask"):
        session.sum("one", within=3000.0, mechanism=mechanism)
    assert session.spent == 0
