"""Least squares by sufficient statistics: the model of the rows, what is certified, and what is asymptotic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from oracles.statistics import FALSE_ALARM
from scipy import stats

import holdfast as hf
from holdfast.errors import BudgetError, MechanismError
from holdfast.learn.gram_regression import _solve, regress

SCHEMA = hf.Schema(a=hf.Real(0, 10), b=hf.Real(-2, 2), y=hf.Real(-40, 60))


def houses(rows: int, seed: int, **session: Any) -> tuple[hf.Session, Any, Any]:
    draw = np.random.default_rng(seed)
    x = np.stack([draw.uniform(0, 10, rows), draw.uniform(-2, 2, rows)], axis=1)
    y = 3 * x[:, 0] - 4 * x[:, 1] + 5 + draw.normal(0, 2, rows)
    table = hf.open({"a": x[:, 0], "b": x[:, 1], "y": y}, SCHEMA)
    how = {"epsilon": 1.0, "delta": 1e-6, "queries": 1, "target": "table", "only": "gaussian"} | session
    return table.session(**how), x, y


def least_squares(x: Any, y: Any) -> Any:
    return np.linalg.lstsq(np.column_stack([x, np.ones(len(x))]), y, rcond=None)[0]


def test_certified_and_asymptotic_intervals_cover() -> None:
    """Forty tables: the rows' own fit is inside what is certified every time, the truth inside 95% intervals mostly.
    The twin, intervals without the noise, is far too narrow."""
    truth, runs = np.array([3.0, -4.0, 5.0]), 40
    inside = narrow = 0
    for seed in range(runs):
        session, x, y = houses(4000, seed)
        found = regress(session, ["a", "b"], "y")
        assert (np.abs(found.coefficients - least_squares(x, y)) <= found.certified).all()
        low, high = found.intervals.T
        inside += int(((low <= truth) & (truth <= high)).sum())
        sampling = 2 / math.sqrt(4000) * 1.96 * np.array([1 / 2.887, 1 / 1.155, 2.0])
        narrow += int((np.abs(found.coefficients - truth) <= sampling).sum())
    assert stats.binomtest(inside, 3 * runs, 0.95).pvalue > FALSE_ALARM
    assert inside > 0.85 * 3 * runs and narrow < 0.75 * 3 * runs


def test_the_certificate_is_that_of_the_theorem() -> None:
    """Theorem 45 on noise of every direction at its largest: nothing escapes, and half of it is not enough."""
    draw = np.random.default_rng(3)
    v = np.column_stack([draw.uniform(-1, 1, (500, 2)), np.ones(500), draw.uniform(-1, 1, 500)])
    exact = v.T @ v / 500
    truth = np.linalg.solve(exact[:3, :3], exact[:3, 3])
    sigma, beta, worst = 0.002, 0.05, 0.0
    error = min(
        4 * sigma * math.sqrt(4 * math.log(9) + math.log(2 / beta)),
        math.sqrt(2) * sigma * (math.sqrt(10) + math.sqrt(2 * math.log(2 / beta))),
    )
    for _ in range(2000):
        noise = draw.normal(size=(4, 4))
        noise = (noise + noise.T) / 2
        noise *= error / np.linalg.norm(noise, 2)
        theta, _, reach, _ = _solve(exact + noise, sigma, 0.0, 500, beta)
        worst = max(worst, float(np.linalg.norm(theta - truth)) / reach)
    assert 0.3 < worst <= 1


def test_few_rows_get_a_ridge_and_no_certificate() -> None:
    for seed in range(20):  # noise turns some of the moments negative
        found = regress(houses(3 + seed, seed)[0], ["a", "b"], "y")
        assert found.ridge > 0 and np.isinf(found.certified).all()
        assert np.isfinite(found.coefficients).all() and (found.standard_errors > 0).all()


def test_without_intercept_it_goes_through_the_origin() -> None:
    draw = np.random.default_rng(4)
    a = draw.uniform(0, 10, 20_000)
    table = hf.open({"a": a, "b": a * 0, "y": 3 * a}, SCHEMA)
    session = table.session(epsilon=1.0, delta=1e-6, queries=1, target="table", only="gaussian")
    found = regress(session, ["a"], "y", intercept=False)
    assert found.coefficients == pytest.approx([3.0, 0.0], abs=0.1)
    assert found.coefficients[-1] == 0 == found.certified[-1]


def test_rows_with_null_count_as_nothing_and_budgets_are_refused() -> None:
    _, x, y = houses(5000, 2)
    a = x[:, 0].copy()
    a[::2] = np.nan
    y = np.where(np.arange(5000) % 2 == 0, 60.0, y)
    table = hf.open({"a": a, "b": x[:, 1].copy(), "y": y}, SCHEMA)
    half = table.session(epsilon=5.0, delta=1e-6, queries=2, target="table")
    found = regress(half, ["a", "b"], "y", rho=0.3)
    assert found.coefficients[:2] == pytest.approx([3, -4], abs=0.5)
    assert half.spent == pytest.approx(0.3, rel=1e-6)
    with pytest.raises(BudgetError):
        regress(half, ["a"], "y", rho=5.0)
    with pytest.raises(MechanismError, match="pure"):
        regress(table.session(epsilon=1.0, target="table"), ["a"], "y")
