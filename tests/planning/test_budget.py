"""The budget is enforced: exactly, across sessions, across restarts, across threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.privacy.filter import UNITS


def test_an_answer_that_does_not_fit_is_refused_and_costs_nothing(table: hf.Table) -> None:
    session = table.session(target="table", rho=0.01)
    session.count("age > 40", rho=0.009)
    with pytest.raises(hf.BudgetError) as refused:
        session.count("age > 50", within=20)
    assert refused.value.requested > refused.value.remaining
    assert session.spent == pytest.approx(0.009, rel=1e-5)
    assert refused.value.within is not None
    answer = session.count("age > 50", within=refused.value.within)
    assert (answer.high - answer.low) / 2 <= refused.value.within
    assert session.remaining < 1e-4


@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.3}])
def test_what_is_spent_and_left_adds_up(table: hf.Table, budget: dict[str, float]) -> None:
    session = table.session(target="table", **budget, queries=10)
    for age in range(10):
        session.count(f"age > {age}")
    limit = session.report().terms.session.limit
    assert float(session.spent) + float(session.remaining) == pytest.approx(limit)
    assert session.spent <= limit
    assert session.spent > 0.999 * limit
    with pytest.raises(hf.BudgetError, match="10 queries"):
        session.count("age > 77")


def test_the_sum_of_recorded_events_is_within_the_promise(table: hf.Table) -> None:
    """The truth from the ledger's events by mpmath-free fractions: sum of D^2/(2 s^2) <= rho."""
    from fractions import Fraction

    session = table.session(target="table", epsilon=1.0, delta=1e-6, queries=50)
    for age in range(50):
        session.histogram("smoker", where=f"age > {age}")
    rho = Fraction(0)
    for entry in table._ledger.entries(session.name):
        import json

        event = json.loads(entry.event)
        rho += Fraction(event["sensitivity_squared"]) / (2 * Fraction(event["variance"]))
    assert hf.privacy.zcdp_to_approx(rho, 1e-6) <= 1.0


def test_a_pure_session_uses_pure_mechanisms_only(table: hf.Table) -> None:
    session = table.session(target="table", epsilon=1.0)
    assert session.count("age > 40", within=100).mechanism == "laplace"
    with pytest.raises(hf.MechanismError, match="pure"):
        session.count("age > 40", rho=0.1)
    with pytest.raises(hf.MechanismError, match="pure"):
        session.count("age > 40", within=10, mechanism="gaussian")
    answer = session.histogram("smoker", epsilon=0.25)
    assert answer.epsilon == pytest.approx(0.25, rel=1e-5)
    assert answer.epsilon <= 0.25


def test_a_session_that_counts_mu_squared_takes_every_kind_at_its_price(table: hf.Table) -> None:
    """Gaussian noise costs twice its rho and a little; what lies in a range of eta (pi/2)(eta/2)^2: Theorem 290."""
    session = table.session(target="table", epsilon=1.0, delta=1e-6, only="gaussian")
    assert session.currency == "gdp"
    answer = session.count("age > 40", within=500)
    assert answer.mechanism == "gaussian"
    before = float(session.spent)
    assert before == pytest.approx(2 * answer.rho, rel=1e-3) and before > 2 * answer.rho
    assert session.count("age > 41", epsilon=0.1).mechanism == "laplace"
    assert float(session.spent) - before == pytest.approx(np.pi / 2 * 0.1**2, rel=1e-3)
    before = float(session.spent)
    session.select(["age > 40", "age < 41"], epsilon=0.1)
    assert float(session.spent) - before == pytest.approx(np.pi / 2 * 0.05**2, rel=1e-3)
    assert session.quantile("age", 0.5, rho=0.001).rho <= 0.001
    with pytest.raises(hf.BudgetError):
        session.count("age > 42", epsilon=0.2)


def test_a_plan_that_the_budget_keeps_wide_is_counted_in_mu_squared(
    make_table: Callable[..., hf.Table],
) -> None:
    """And no other: where rho suffices for the narrowest plan nothing is gained. A named budget is what it says."""
    wide = make_table().session(epsilon=0.1, delta=1e-6, queries=2000)
    exact = make_table().session(epsilon=0.1, delta=1e-6, queries=2000, only="gaussian")
    assert wide.currency == exact.currency == "gdp" and wide.plan == exact.plan
    kept = wide.limit
    assert kept.epsilon is not None and kept.epsilon <= 0.1 * (1 + 1e-9)
    assert make_table().session(epsilon=10.0, delta=1e-6, queries=10).currency == "zcdp"
    assert make_table().session(epsilon=0.1, delta=1e-6).currency == "zcdp"
    assert make_table().session(rho=0.0003, queries=2000).currency == "zcdp"
    assert make_table().session(epsilon=0.1, queries=2000).currency == "pure"


def test_rows_per_unit_charges_group_privacy(make_table: Callable[..., hf.Table]) -> None:
    one = make_table().session(target="table", rho=1.0).estimate.count("age > 40", within=100)
    three = (
        make_table(rows_per_unit=3).session(target="table", rho=1.0).estimate.count("age > 40", within=100)
    )
    assert three.noise_parameter == one.noise_parameter
    assert three.rho == pytest.approx(9 * one.rho)
    pure = (
        make_table(rows_per_unit=3)
        .session(target="table", epsilon=1.0)
        .estimate.count("age > 40", epsilon=0.3)
    )
    assert float(pure.noise_parameter) == pytest.approx(10, rel=1e-5)


def test_sessions_share_the_tables_limit(table: hf.Table) -> None:
    table.limit(epsilon=1.0, delta=1e-6)
    first = table.session(target="table", epsilon=1.0, delta=1e-6)
    second = table.session(target="table", epsilon=1.0, delta=1e-6)
    share = float(first.remaining)
    first.count("age > 40", rho=0.7 * share)
    assert float(second.remaining) == pytest.approx(0.3 * share, rel=1e-4)
    with pytest.raises(hf.BudgetError, match="the table"):
        second.count("age > 40", rho=0.4 * share)
    second.count("age > 40", rho=0.2 * share)
    assert table.spent == pytest.approx(0.9 * share, rel=1e-4)


def test_a_pure_limit_admits_pure_sessions_only(table: hf.Table) -> None:
    table.limit(epsilon=1.0)
    with pytest.raises(hf.InputError, match="pure"):
        table.session(target="table", epsilon=0.5, delta=1e-6)
    table.session(target="table", epsilon=0.5).count("age > 40", epsilon=0.5)
    with pytest.raises(hf.BudgetError):
        table.session(target="table", epsilon=0.6).count("age > 40", epsilon=0.6)


def test_saving_keeps_what_was_spent(table: hf.Table, tmp_path: Path) -> None:
    table.limit(rho=1.0)
    session = table.session(target="table", rho=0.5, name="mine")
    first = session.count("age > 40", rho=0.4)
    table.save(tmp_path / "people.hf")
    reopened = hf.open(tmp_path / "people.hf")
    assert reopened.spent == table.spent
    again = reopened.session(target="table", name="mine")
    assert again.spent == session.spent
    repeated = again.count("age > 40", rho=0.4)
    assert repeated.value == first.value
    assert repeated.repeated
    with pytest.raises(hf.BudgetError):
        again.count("age > 50", rho=0.2)
    with pytest.raises(hf.BudgetError):
        reopened.session(target="table", rho=0.7).count("age > 50", rho=0.7)


def test_a_reopened_session_keeps_its_promise(table: hf.Table, tmp_path: Path) -> None:
    stored = table.save(tmp_path / "people.hf")
    stored.session(target="table", rho=0.5, name="mine", queries=2, confidence=0.9).count("age > 40", rho=0.1)
    again = hf.open(tmp_path / "people.hf").session(name="mine")
    assert (again.queries, again.confidence) == (2, 0.9)
    assert again.count("age > 41", rho=0.1).target == "table"
    with pytest.raises(hf.BudgetError, match="2 queries"):
        again.count("age > 42", rho=0.1)
    for other in ({"queries": 9}, {"confidence": 0.99}, {"target": "population"}, {"epsilon": 1.0}):
        with pytest.raises(hf.LedgerError):
            hf.open(tmp_path / "people.hf").session(name="mine", **other)


def test_rows_per_unit_is_kept_with_the_store(make_table: Callable[..., hf.Table], tmp_path: Path) -> None:
    make_table(rows_per_unit=3).save(tmp_path / "people.hf")
    assert hf.open(tmp_path / "people.hf").rows_per_unit == 3
    assert hf.open(tmp_path / "people.hf", rows_per_unit=5).rows_per_unit == 5
    with pytest.raises(hf.InputError, match="3"):
        hf.open(tmp_path / "people.hf", rows_per_unit=2)


def test_the_same_question_costs_once(table: hf.Table) -> None:
    session = table.session(target="table", rho=0.1)
    texts = ["age > 40 AND insured", "insured AND NOT age <= 40", "INSURED and (age>=41)"]
    answers = [session.fraction(text, within=0.05) for text in texts for _ in range(300)]
    assert len({answer.value for answer in answers}) == 1
    assert [answer.repeated for answer in answers] == [False] + [True] * 899
    assert len(session.history) == 1
    assert session.fraction(texts[0], within=0.04).value != answers[0].value or len(session.history) == 2


def test_an_answer_of_zero_is_remembered_too(table: hf.Table) -> None:
    session = table.session(target="table", rho=1e-5, queries=10)
    first = session.fraction("smoker = 'never asked'", within=0.9)
    assert first.value == 0.0 or first.low == 0.0
    assert session.fraction("smoker = 'never asked'", within=0.9).repeated


def test_without_the_memory_averaging_would_pay() -> None:
    """The broken twin: fresh noise for each repetition reveals the value at the price of one."""
    values = [hf.mechanisms.laplace(1000, epsilon=0.1) for _ in range(4000)]
    assert abs(np.mean(values) - 1000) < 2
    assert len(set(values)) > 1


def test_threads_share_a_session(table: hf.Table) -> None:
    session = table.session(target="table", rho=0.1, queries=160)
    failures: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            for step in range(10):
                session.count(f"age > {worker} AND income > {step}")
        except BaseException as failure:
            failures.append(failure)

    workers = [threading.Thread(target=work, args=(worker,)) for worker in range(16)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures
    assert len(session.history) == 160
    assert session.spent <= 0.1
    entries = list(table._ledger.entries(session.name))
    assert sum(entry.charge.session for entry in entries) == round(float(session.spent) * UNITS)


def test_anytime_intervals_widen_slowly(table: hf.Table) -> None:
    session = table.session(target="table", rho=1.0)
    widths = [session.count(f"age > {age}", rho=1e-4).noise for age in range(60)]
    assert widths == sorted(widths)
    assert 1.2 < widths[-1] / widths[0] < 2


def test_cost_depends_on_public_facts_only(data: dict[str, Any], table: hf.Table) -> None:
    neighbour = {name: np.array(values, copy=True) for name, values in data.items()}
    neighbour["age"][7], neighbour["smoker"][7], neighbour["income"][7] = 3, "no", np.nan
    other = hf.open(neighbour, table.schema)
    for ask in (
        lambda e: e.count("age > 3", within=50),
        lambda e: e.mean("income", "age = 3", rho=0.1),
        lambda e: e.quantile("income", 0.3, within=0.1),
        lambda e: e.histogram("visit", rho=0.01),
    ):
        plans = [ask(t.session(target="table", rho=1.0, name="a").estimate) for t in (table, other)]
        assert plans[0] == plans[1]
        assert plans[0].explain() == plans[1].explain()
