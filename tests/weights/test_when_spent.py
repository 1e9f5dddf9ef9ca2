"""Weights that go on while they can, and weights that begin at a fit: docs/theorems.md, Theorem 150."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import BudgetError, InputError
from holdfast.privacy.filter import UNITS
from holdfast.query.universe import universe
from holdfast.session.session import Session
from holdfast.synthesis import SyntheticTable
from holdfast.weights.answerer import MultiplicativeWeights
from holdfast.weights.distribution import Weights
from holdfast.weights.fitted_start import begin
from weights.test_answerer import DATA, NAMES, QUESTIONS, REGIONS, SCHEMA2, TRUTH, session_of

pytestmark = pytest.mark.usefixtures("replayed_noise")
COMPLETE = universe(SCHEMA2, NAMES, nulls=NAMES)


def opened() -> hf.Table:
    return hf.open({name: values.copy() for name, values in DATA.items()}, SCHEMA2)


def spending(session: Session, **options: Any) -> MultiplicativeWeights:
    terms: dict[str, Any] = {"queries": 2000, "within": 0.05, "stop": "when spent", "version": "best"}
    return session.multiplicative_weights(NAMES, **terms | options)


def cheapest(session: Session) -> float:
    """A budget for some of the updates that the worst case would take."""
    return session.estimate.multiplicative_weights(NAMES, queries=2000, within=0.05, version="best").cost / 8


def test_they_answer_while_the_budget_lasts_and_each_answer_keeps_its_promise() -> None:
    most = cheapest(session_of(opened()))
    session = session_of(opened(), rho=most)
    with pytest.raises(BudgetError, match='stop="when spent"'):
        spending(session, stop=None)
    assert session.spent == 0
    weights = spending(session)
    room = weights.updates_left
    assert 0 < room < weights.terms.updates / 7
    for where, _ in QUESTIONS:
        answer = weights.fraction(where)
        assert abs(answer.value - TRUTH[where]) <= weights.within
    assert weights.updates_left == room - weights.updates > 0
    assert not weights.settled  # only the worst case ends the potential


def test_they_stop_before_a_row_is_asked_for_nothing_and_repeats_go_on() -> None:
    """The adversary's hardest questions: when no update can be paid for, nothing more is compared."""
    plenty = spending(session_of(opened()))
    session = session_of(opened(), rho=2.5 * float(plenty._session.spent))  # the opening is one run
    weights, told = spending(session), {}
    with pytest.raises(BudgetError, match="left"):
        while True:
            gaps = {
                where: abs(truth - weights.weights.fraction(REGIONS[where]))
                for where, truth in TRUTH.items()
                if where not in told
            }
            where = max(gaps, key=lambda where: gaps[where])
            told[where] = weights.fraction(where)
            assert abs(told[where].value - TRUTH[where]) <= weights.within
    spent, asked = session.spent, weights.asked
    assert weights.updates_left == 0 and not weights.settled
    again = next(where for where, answer in told.items() if "an update" in answer.explanation)
    assert weights.fraction(again).value == told[again].value
    assert (session.spent, weights.asked) == (spent, asked)


def test_settled_by_the_updates_that_were_paid_for_would_be_wrong() -> None:
    """The broken twin: weights whose budget is spent, called settled, answer beyond their promise."""
    most = cheapest(session_of(opened())) / 24
    weights = spending(session_of(opened(), rho=most))
    wrong = [abs(weights.weights.fraction(REGIONS[w]) - truth) > weights.within for w, truth in TRUTH.items()]
    assert any(wrong) and not weights.settled


def test_stop_is_checked_before_a_charge() -> None:
    session = session_of(opened())
    with pytest.raises(InputError, match="stop"):
        spending(session, stop="never")
    with pytest.raises(InputError, match="within="):
        spending(session, within=None, rho=1.0)
    assert session.spent == 0


def test_in_a_covered_session_they_stop_in_the_same_way() -> None:
    session = opened().session(epsilon=1, delta=1e-6, queries=500)
    asked: dict[str, Any] = {"queries": 200, "within": 0.4}
    worst = session.estimate.multiplicative_weights(NAMES, **asked, stop="when spent")
    assert worst.cost <= float(session.remaining) and "stop when" in str(worst.explanation)
    weights = session.multiplicative_weights(NAMES, **asked, stop="when spent")
    assert weights.terms.looks is not None and weights.updates_left > 0
    for where, _ in QUESTIONS[:100]:
        answer = weights.fraction(where)
        assert answer.low <= TRUTH[where] <= answer.high


def fitted(session: Session) -> SyntheticTable:
    made = session.synthesize(NAMES, rho=0.5)
    assert isinstance(made, SyntheticTable)
    return made


def test_a_start_that_is_near_needs_fewer_updates() -> None:
    rng = np.random.default_rng(7)
    first = rng.random(40_000) < 0.1
    data = {name: np.where(rng.random(40_000) < 0.97, first, ~first) for name in NAMES}
    updates = []
    for begins in (False, True):
        session = session_of(hf.open({name: values.copy() for name, values in data.items()}, SCHEMA2))
        start = fitted(session) if begins else None
        weights = session.multiplicative_weights(
            NAMES, queries=2000, within=0.05, version="best", nulls=NAMES, start=start
        )
        for where, _ in QUESTIONS:
            weights.fraction(where)
        updates.append(weights.updates)
    assert updates[1] <= updates[0] // 4


def test_the_worst_case_is_planned_with_the_start() -> None:
    session = session_of(opened())
    start = fitted(session)
    plain = session.multiplicative_weights(NAMES, queries=2000, within=0.1, version="best", nulls=NAMES)
    begun = session.multiplicative_weights(
        NAMES, queries=2000, within=0.1, version="best", nulls=NAMES, start=start, name="begun"
    )
    assert begun.terms.updates > plain.terms.updates
    assert begun.potential >= plain.potential + math.log(10)
    again = session.multiplicative_weights(
        NAMES, queries=2000, within=0.1, version="best", nulls=NAMES, start=start, name="begun"
    )
    assert again.weights.fraction(REGIONS[NAMES[0]]) == begun.weights.fraction(REGIONS[NAMES[0]])
    for other in ({}, {"start": start, "uniform": 0.2}):
        with pytest.raises(InputError, match="other terms"):
            session.multiplicative_weights(
                NAMES, queries=2000, within=0.1, version="best", nulls=NAMES, name="begun", **other
            )


def divergence(table: np.ndarray[Any, Any], start: Weights) -> float:
    held = table > 0
    cells = start.probabilities()[0].reshape(-1)
    with np.errstate(divide="ignore"):
        return float((table[held] * np.log(table[held] / cells[held])).sum())


def test_the_divergence_from_a_start_is_bounded_for_every_table_and_not_without_a_uniform_part() -> None:
    """All rows in one cell is the worst table. The broken twin: a fit that misses the cell, without g."""
    points = np.zeros(100, dtype=np.int64)
    start = SyntheticTable(Weights.of_points(COMPLETE, points), "twin", 0.0, "")
    for part in (0.01, 0.1, 1.0 - 1e-9):
        weights = Weights(COMPLETE)
        begin(weights, start, part)
        assert weights.total == pytest.approx(1.0)
        assert float(weights.array().sum()) == pytest.approx(1.0)
        for cell in (0, 1, COMPLETE.size - 1):
            table = np.eye(1, COMPLETE.size, cell)[0]
            assert divergence(table, weights) <= math.log(COMPLETE.points) + math.log(1 / part) + 1e-9
    assert divergence(np.eye(1, COMPLETE.size, 1)[0], start.weights) == math.inf  # type: ignore[arg-type]
    with pytest.raises(InputError, match="uniform"):
        begin(Weights(COMPLETE), start, 0.0)


def test_a_start_has_the_groups_of_the_weights_in_their_order() -> None:
    points = np.ravel_multi_index(np.array([[0, 1], [1, 1], *[[0, 0]] * (len(NAMES) - 2)]), COMPLETE.shape)
    start = SyntheticTable(Weights.of_points(COMPLETE, points), "two rows", 0.0, "")
    swapped = universe(SCHEMA2, [NAMES[1], NAMES[0]], nulls=NAMES[:2])
    weights = Weights(swapped)
    begin(weights, start, 1e-6)
    cells = weights.probabilities()[0]
    assert cells[1, 0] == pytest.approx(0.5, abs=1e-5) and cells[1, 1] == pytest.approx(0.5, abs=1e-5)
    with pytest.raises(InputError, match="groups of column"):
        begin(Weights(universe(SCHEMA2, NAMES, nulls=[])), start)


def test_the_ledger_is_charged_for_each_run_and_no_more() -> None:
    session = session_of(opened())
    weights = spending(session, within=0.1)
    for where, _ in QUESTIONS[:60]:
        weights.fraction(where)
    each = session._terms.session.cost(weights.terms.event) / UNITS
    runs = float(session.spent) / each
    assert runs == pytest.approx(round(runs)) and 0 <= round(runs) - weights.updates <= 1
