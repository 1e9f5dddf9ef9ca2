"""Sessions whose plan counts mu squared, walked as others are: reopened, under a cap, with every kind of question."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import MemoryLedger
from holdfast.ledger.entry import MOST
from holdfast.privacy import Filter, events, gdp_delta

SCHEMA = hf.Schema(age=hf.Integer(0, 99), flag=hf.Boolean())
ROWS = {"age": np.arange(300) % 100, "flag": np.arange(300) % 3 == 0}
PLANNED: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "queries": 60}


def opened(rows: int = 300) -> hf.Table:
    data = {"age": np.arange(rows) % 100, "flag": np.arange(rows) % 3 == 0}
    return hf.open(data, SCHEMA, ledger=MemoryLedger())


def test_every_place_of_the_plan_is_answered_in_every_way_and_costs_what_is_left() -> None:
    session = opened(3000).session(**{**PLANNED, "queries": 300})
    assert session.currency == "gdp"
    for place in range(300):
        where = f"age BETWEEN {place % 17} AND {40 + place // 17}"
        if place % 3 == 0:
            session.fraction(where, mechanism="logistic")
        elif place % 3 == 1:
            session.fraction(where, by="flag")
        else:
            session.difference(where, "flag")
    with pytest.raises(hf.BudgetError, match="promised for 300"):
        session.fraction("age > 3")
    assert float(session.spent) <= float(session.limit)


def test_rho_is_half_of_what_a_question_costs_there() -> None:
    """In each way of asking; the answers' rho add up to what was spent."""
    session = opened(1000).session(epsilon=2.0, delta=1e-6, queries=500)
    assert session.currency == "gdp"
    rho = 0.002
    for ask in (
        lambda: session.fraction("age > 3", rho=rho),
        lambda: session.fraction("age > 4", rho=rho, mechanism="laplace"),
        lambda: session.quantile("age", 0.5, rho=rho, mechanism="smoothed"),
        lambda: session.select(["age > 3", "age < 50"], rho=rho),
    ):
        before = float(session.spent)
        answer = ask()
        cost = float(session.spent) - before
        assert 1.9 * rho < cost <= 2 * rho * (1 + 1e-6)
        if isinstance(answer, hf.Answer):
            assert 2 * answer.rho == pytest.approx(cost, rel=1e-4)
    before = float(session.spent)
    session.synthesize(["flag"], rho=0.04)
    assert 0.076 < float(session.spent) - before <= 0.08


def test_it_is_opened_again_as_it_was_and_with_more(tmp_path: Path) -> None:
    store = hf.open(ROWS, SCHEMA).save(tmp_path / "rows.hf")
    first = store.session(**PLANNED, name="me")
    told = first.fraction("age > 50")
    for more in ({}, PLANNED, {**PLANNED, "epsilon": 2.0}, {"rho": 0.5}, {**PLANNED, "only": "gaussian"}):
        again = store.session(**{**more, "name": "me"})
        assert again.currency == "gdp" and again.fraction("age > 50").value == told.value
    assert store.session(**{**PLANNED, "epsilon": 2.0}, name="me").limit.epsilon == pytest.approx(2.0)
    with pytest.raises(hf.HoldfastError, match="already charged more"):
        store.session(**{**PLANNED, "epsilon": 0.0001}, name="me")


def test_what_is_left_of_the_cap_is_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin compares only accounts that count alike."""
    table = opened()
    table.limit(epsilon=1.2, delta=1e-6)
    session, other = table.session(**PLANNED), table.session(rho=0.03)
    if session.currency != "gdp":
        session = table.session(**PLANNED, only="gaussian")
    other.fraction("age > 3", rho=0.029)
    assert float(session.remaining) == pytest.approx(2 * (0.0342 - 0.029), rel=0.02)
    session.fraction("age > 4", rho=session.remaining.rho * 0.999)
    with monkeypatch.context() as patched:
        patched.setattr("holdfast.session.session.from_cap", lambda units, cap, own: MOST)
        assert float(session.remaining) > 0.04


TEXTS = hf.Schema(word=hf.Text(8), age=hf.Integer(0, 99))


def worded() -> hf.Table:
    rows = {"word": np.array(["a", "b", "c"] * 100), "age": ROWS["age"]}
    return hf.open(rows, TEXTS, ledger=MemoryLedger())


@pytest.mark.parametrize("kept", [None, 2e-7])
def test_what_is_kept_of_delta_for_keys_is_not_given_to_the_profile(kept: float | None) -> None:
    """(epsilon, delta) is what the limit and the deltas of keys come to together."""
    session = worded().session(**PLANNED, keys_delta=kept)
    assert session.currency == "gdp"
    own = session._budget.filter
    rest = 1e-6 - own.delta_limit_units * 1e-18
    assert rest == pytest.approx(5e-7 if kept is None else 8e-7)
    assert own.delta_limit_units * 1e-18 == pytest.approx(1e-6 - rest)
    assert gdp_delta(1.0, float(session.limit) ** 0.5) <= rest * (1 + 1e-9)
    assert gdp_delta(1.0, (1.01 * float(session.limit)) ** 0.5) > rest
    assert session.limit.epsilon == pytest.approx(1.0, rel=1e-6)
    half = session._budget.amount(own.limit_units // 2).epsilon
    assert half is not None and gdp_delta(half, (own.limit_units // 2 / 1e9) ** 0.5) <= rest * (1 + 1e-9)


def test_keys_are_discovered_within_their_part_of_the_budget() -> None:
    session = worded().session(epsilon=12.0, delta=1e-6, only="gaussian", target="table", queries=5)
    before = float(session.limit)
    found = session.keys("word")
    assert set(found) == {"a", "b", "c"}
    assert float(session.spent) <= before / 10 * (1 + 1e-6)
    asked = float(session.spent)
    population = worded().session(**PLANNED)
    assert population.currency == "gdp"
    population.keys("word", rho=0.01)
    assert 0.015 < float(population.spent) <= 0.02 * (1 + 1e-6) and asked > 0


def test_a_filter_of_mu_squared_counts_deltas_apart() -> None:
    budget = Filter.gdp(1, 1e-7)
    small = events.ApproxMechanism(Fraction(1, 100), Fraction(6, 10**8))
    once = budget.charge(small)
    assert once.delta_spent_units == 6 * 10**10 and not once.affords(small)
    with pytest.raises(hf.BudgetError, match="delta"):
        once.charge(small)
    with pytest.raises(hf.BudgetError):
        Filter.gdp(1).charge(small)


@pytest.mark.parametrize("epsilon", [1.0, 1.5, 2.0, 20.0])
def test_default_releases_fit_in_what_is_left(epsilon: float) -> None:
    for columns in (["flag"], ["age", "flag"]):
        session = opened().session(epsilon=epsilon, delta=1e-6, queries=60, only="gaussian")
        left = float(session.limit)
        session.synthesize(columns)
        assert float(session.spent) <= left
        assert epsilon > 3 or float(session.spent) > 0.5 * left


def test_permute_and_flip_is_charged_as_pure() -> None:
    """Twice the range of the exponential mechanism: four times its price."""
    spent = []
    for mechanism in ("exponential", "permute-and-flip"):
        session = opened().session(epsilon=1.0, delta=1e-6, only="gaussian", target="table")
        session.select(["age > 3", "age < 50"], epsilon=0.1, mechanism=mechanism)
        spent.append(float(session.spent))
    assert spent[1] == pytest.approx(4 * spent[0], rel=1e-6)
    assert spent[0] == pytest.approx(np.pi / 8 * 0.01, rel=1e-5)


def test_a_question_that_stands_is_free() -> None:
    session = opened().session(epsilon=1.0, delta=1e-6, queries=10, only="gaussian", target="table")
    session.quantile("age", 0.5, rho=0.9 * float(session.limit) / 20)
    session.quantile("age", 0.5)
    spent = float(session.spent)
    session.quantile("age", 0.5)
    session.quantile("age", 0.5, rho=0.5 * float(session.limit) / 20)
    assert float(session.spent) == spent
