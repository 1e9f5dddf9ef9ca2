"""Distinct values and extremes in a session, in Python and in SQL: they hold for the table, or are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import UNCOVERED, MemoryLedger

SCHEMA = hf.Schema(
    x=hf.Integer(0, 99),
    g=hf.Category("a", "b", "c"),
    plane=hf.Text(6),
    y=hf.Real(0, 1),
    d=hf.Date("2024-01-01", "2024-12-31"),
)
SURE = {"confidence": 1 - 1e-11, "target": "table", "rho": 50.0}


def drawn() -> dict[str, Any]:
    draw = np.random.default_rng(4)
    g = draw.choice(["a", "b"], 6000)
    return {
        "x": draw.integers(0, 60, 6000) + 20 * (g == "b"),
        "g": g,
        "plane": np.array([f"N{k}" for k in draw.integers(0, 700, 6000)]),
        "y": draw.random(6000),
        "d": np.datetime64("2024-01-01") + draw.integers(0, 100, 6000),
    }


def opened(**terms: Any) -> Any:
    return hf.open(drawn(), SCHEMA, ledger=MemoryLedger()).session(queries=40, **(SURE | terms))


def test_numbers_of_distinct_values_hold_in_python_and_in_sql() -> None:
    rows, session = drawn(), opened()
    first = rows["g"] == "a"
    asked = session.distinct("plane", rho=0.5)
    assert asked.low <= len(set(rows["plane"])) <= asked.high and asked.high - asked.low < 30
    by = session.distinct("x", "x >= 10", by="g", rho=0.5)
    truth = [len({x for x in rows["x"][each] if x >= 10}) for each in (first, ~first)] + [0]
    assert [low <= true <= high for low, true, high in zip(by.low, truth, by.high, strict=True)] == [True] * 3
    assert session.sql_one("SELECT count(DISTINCT plane) FROM t", rho=0.5).value == asked.value  # told before
    (months,) = session.sql("SELECT approx_count_distinct(month(d)) AS months FROM t", rho=50 / 40)
    assert months.low <= 4 <= months.high
    table = session.sql(
        "SELECT g, count(DISTINCT x) FILTER (WHERE x >= 10) AS many FROM t GROUP BY g ORDER BY many DESC LIMIT 1",
        rho=0.5,
    )
    assert table[0].labels == ("b",) and table[0].value[0] == by["b"].value


def test_they_are_refused_for_the_population_with_the_reason() -> None:
    session = opened(target="population", confidence=0.95)
    for ask in (lambda: session.distinct("x"), lambda: session.sql("SELECT count(DISTINCT x) FROM t")):
        with pytest.raises(hf.MechanismError, match="values a population has"):
            ask()
    assert session.spent == 0


def test_they_end_the_leave_out_theorem_and_say_so() -> None:
    """No theorem bounds what a number that is no sum tells of the rows."""
    plan = opened().estimate.distinct("x", rho=0.5)
    assert plan.charge.information == UNCOVERED and plan.ends_theorem
    assert opened().estimate.count("x > 3", rho=0.5).charge.information < UNCOVERED  # a sum is bounded


def test_min_and_max_are_quantiles_and_say_so() -> None:
    rows, session = drawn(), opened()
    for name, rank in (("min", 0.001), ("max", 0.999)):
        plan = getattr(session.estimate, name)("x", rho=1.0)
        assert "belong to one row each" in plan.explanation and "not told" in plan.explanation
        found = getattr(session, name)("x", rho=1.0)
        assert found.question == session.quantile("x", rank, rho=1.0).question
        assert found.low <= np.quantile(rows["x"], rank, method="inverted_cdf") <= found.high
        (sql,) = session.sql(f"SELECT {name}(x) AS e FROM t", rho=1.0)
        assert sql.value == found.value
    assert "one row" not in session.estimate.quantile("x", 0.5, rho=1.0).explanation
    grouped = session.max("x", by="g", rho=1.0)
    assert grouped["b"].high >= 79


WRONG: list[tuple[Callable[[Any], Any], str]] = [
    (lambda s: s.distinct("nothing"), "no column 'nothing'"),
    (lambda s: s.distinct("y"), "real column"),
    (lambda s: s.distinct(["x"]), "name of one column"),
    (lambda s: s.distinct("x", mechanism="votes"), "cannot be used"),
    (lambda s: s.distinct("x", within=100), "within"),
    (lambda s: s.sql("SELECT count(DISTINCT x, g) FROM t"), "DISTINCT takes one column"),
    (lambda s: s.sql("SELECT DISTINCT x FROM t"), "DISTINCT is not part"),
    (lambda s: s.sql("SELECT sum(DISTINCT x) FROM t"), "DISTINCT is not part"),
    (lambda s: s.max("g"), "no order"),
    (lambda s: s.sql("SELECT max(g) FROM t"), "no order"),
]


@pytest.mark.parametrize(("ask", "why"), WRONG)
def test_what_is_wrong_is_refused_before_the_charge(ask: Callable[[Any], Any], why: str) -> None:
    session = opened()
    with pytest.raises(hf.HoldfastError, match=why):
        ask(session)
    assert session.spent == 0
