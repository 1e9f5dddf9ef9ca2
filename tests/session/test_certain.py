"""What is public costs nothing, and what is not is charged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import holdfast as hf


@pytest.mark.parametrize("target", ["table", "population"])
@pytest.mark.parametrize("options", [{}, {"rows_per_unit": 7}])
def test_the_number_of_rows_is_public_and_costs_nothing(
    make_table: Callable[..., hf.Table], target: str, options: dict[str, Any]
) -> None:
    session = make_table(**options).session(target=target, rho=1.0)
    ways: list[Callable[[Any], Any]] = [
        lambda s: s.count(),
        lambda s: s.count("TRUE", within=5),
        lambda s: s.sql_one("SELECT count(*) FROM t"),
        lambda s: s.sql_one("SELECT count(*) FROM t WHERE age = 3 OR NOT age = 3 OR age IS NULL", rho=0.5),
    ]
    for ask in ways:
        answer, plan = ask(session), ask(session.estimate)
        assert (answer.low, answer.value, answer.high) == (20_000, 20_000, 20_000)
        assert (answer.rho, answer.epsilon, answer.rows_read) == (0, 0, 0)
        assert (plan.cost, plan.width, plan.rows_read) == (0, 0, 0)
        assert "public" in plan.explanation and answer.target == plan.target == target
        assert str(answer) and answer._repr_html_() and hf.Answer.from_json(answer.to_json()) == answer
    assert session.fraction("TRUE").value == 1
    assert session.fraction("age > 3 AND age < 2").high == session.count("FALSE").high == 0
    assert session._ledger.totals().entries == 0
    assert session.history == []


def test_only_the_number_of_all_rows_is_public(table: hf.Table) -> None:
    """Groups, conditions and what may be NULL are charged."""
    session = table.session(target="table", rho=1.0)
    answers = [
        session.count("age >= 0", rho=0.01),
        session.sql_one("SELECT count(income) FROM t", rho=0.01),
        session.sql_one("SELECT smoker, count(*) FROM t GROUP BY smoker", rho=0.01),
        session.count(by="smoker", rho=0.02),
        session.count("FALSE", by="smoker", rho=0.01),
        session.histogram("age", rho=0.01),
    ]
    assert [answer.mechanism for answer in answers] == ["gaussian"] * 6
    count, mean = session.sql("SELECT count(*), avg(age) FROM t", rho=0.01)
    assert (count.mechanism, mean.mechanism) == ("public", "gaussian")
    assert session.spent.rho == pytest.approx(0.08, rel=1e-3)
    assert len(session.history) == 7
