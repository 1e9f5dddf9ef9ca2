"""Theorem 78: the ends of every coefficient hold whatever the sums in the box are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.planning.question import Regression
from holdfast.query import least_squares
from holdfast.query.propagation import propagated
from holdfast.query.statistic import workload

SCHEMA = hf.Schema(x=hf.Integer(0, 9), w=hf.Real(-2.0, 2.0), y=hf.Real(-5.0, 5.0))
N = 60


def drawn(seed: int) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    x, w = draw.integers(0, 10, N), draw.uniform(-2, 2, N)
    return {"x": x, "w": w, "y": np.clip(0.4 * x - w + draw.normal(0, 1, N), -5, 5)}


def ends(columns: dict[str, Any], half: float, pushes: np.ndarray) -> tuple[np.ndarray, list[Any]]:
    """The coefficients of the rows, and the ends that sums pushed so far give."""
    made = workload(Regression(column="y", features=["x", "w"]).read(SCHEMA).statistics[0], SCHEMA, N)
    codes = {"x": columns["x"].astype(np.uint8), "w": columns["w"], "y": columns["y"]}
    exact = [m.totals(codes).astype(float) for m in made.measurements]
    halves = [half * scale for scale in made.scales]
    found = []
    for push in pushes:
        told = [total + h * p for total, h, p in zip(exact, halves, push, strict=True)]
        box = [(total - h, total + h) for total, h in zip(told, halves, strict=True)]
        found.append(propagated(made, box, N))
    features = np.column_stack([np.ones(N), columns["x"], columns["w"]])
    return np.linalg.lstsq(features, columns["y"], rcond=None)[0], found


def misses(half: float) -> tuple[int, int]:
    """How many intervals miss, and how many tell something."""
    missed = told = 0
    for seed in range(6):
        draw = np.random.default_rng(seed)
        pushes = np.vstack([draw.choice([-1.0, 1.0], (12, 10)), draw.uniform(-1, 1, (6, 10))])
        truth, found = ends(drawn(seed), half, pushes)
        for low, high in found:
            missed += int(np.count_nonzero((truth < low) | (truth > high)))
            told += int(np.isfinite(low).all())
    return missed, told


@pytest.mark.parametrize("half", [1e-4, 0.05, 0.3])
def test_every_coefficient_is_held(half: float) -> None:
    missed, told = misses(half)
    assert missed == 0 and told > 50


def test_a_reading_to_first_order_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: what the sums beside the matrix may be off by alone, as if the matrix were known."""
    gram = least_squares._gram

    def known(*given: Any) -> Any:
        middle, radius = gram(*given)
        inner = np.ones_like(radius)
        inner[1, :] = inner[:, 1] = 0
        return middle, radius * (1 - inner)

    monkeypatch.setattr(least_squares, "_gram", known)
    assert misses(0.3)[0] > 50


def test_features_that_depend_on_each_other_leave_every_number() -> None:
    columns = drawn(1) | {"w": np.full(N, 0.5)}
    for half in (0.0, 1e-6, 0.1, 5.0):
        _, ((low, high),) = ends(columns, half, np.zeros((1, 10)))
        assert np.isinf(low).all() and np.isinf(high).all()
    _, ((low, _),) = ends(drawn(1), 60.0, np.zeros((1, 10)))
    assert np.isinf(low).all()
