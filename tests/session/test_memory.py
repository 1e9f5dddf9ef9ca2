"""What a session keeps in memory stays small, whatever is asked of it for nothing."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.session import kept_plans, session
from holdfast.session.session import Session
from holdfast.weights import answerer as multiplicative_weights

ROWS = 200
SCHEMA = hf.Schema(x=hf.Real(0.0, 1000.0), a=hf.Integer(0, 99), b=hf.Integer(0, 99))


def opened() -> Session:
    values = np.arange(ROWS) % 100
    return hf.open({"x": values * 1.0, "a": values, "b": values}, SCHEMA).session(rho=1e6, target="table")


def kept(ask: Callable[[int], Any], times: int) -> float:
    """How many megabytes stay behind."""
    ask(0)
    tracemalloc.start()
    try:
        for number in range(1, times + 1):
            ask(number)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / 1e6
    finally:
        tracemalloc.stop()


def edges(number: int, count: int) -> list[float]:
    return [0.1 * i + 1e-5 * number for i in range(count)]


def plans_kept() -> float:
    estimate = opened().estimate
    return kept(lambda number: estimate.histogram("x", edges(number, 2000), rho=0.001), 30)


def test_plans_with_many_groups_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plans_kept() < 5
    monkeypatch.setattr(kept_plans, "_SIZE_KEPT", 1 << 60)
    assert plans_kept() > 6


def test_the_plan_that_is_kept_has_no_condition() -> None:
    once = opened()
    long = once.estimate.count("a IN (1, 3, 5, 7)", rho=0.5)
    again = once.estimate.count("b = 3", rho=0.5)
    assert again.cost == long.cost and again.question == "count where b = 3"
    [(_, plan, _)] = once._plans._plans.values()
    assert str(plan.statistic) == "count"


def test_kept_plans_are_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    one = opened()
    made: list[Any] = []
    real = session.plan
    monkeypatch.setattr(session, "plan", lambda *asked: (made.append(asked), real(*asked))[1])
    for cut in range(20):
        one.estimate.fraction(f"a < {cut}", within=0.5)
        one.estimate.quantile("x", 0.5, f"a < {cut + 50}", within=0.5)  # 1024 bins
    assert len(made) == 2


def conditions_kept() -> float:
    """Conditions that compare columns have a value for each of 10,000 cells."""
    weights = opened().multiplicative_weights(["a", "b"], queries=10**6, rho=1e5)
    assert weights.settled or weights.within < 1
    return kept(lambda number: weights.fraction(f"a < b AND a <> {number}"), 90)


def test_conditions_with_a_value_for_each_cell_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert conditions_kept() < 3
    monkeypatch.setattr(multiplicative_weights, "_is_small", lambda *asked: True)
    assert conditions_kept() > 6
