"""What T noisy steps are certified to reach on the rows, against the formulas of docs/learn.md written down again."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.session.minimize.certificate import SCORE, noise_norm, rules, score_unit, slope, table_excess


def loss(**changed: Any) -> Any:
    region = SimpleNamespace(diameter=3.0, radius=1.7, reach=2.5)
    facts = {
        "dimension": 5,
        "region": region,
        "step": 0.25,
        "norm": 8,
        "penalty": 0.4,
        "strong": 0.4,
        "smooth": 3.0,
        "rounding": 0.001,
    }
    return SimpleNamespace(**(facts | changed))


D, R, G, H, L, d, GRID = 3.0, 1.7, 0.25 * 8 + 0.4 * 2.5, 0.4, 3.0, 5, 0.001


def expected(rule: str, T: int, sigma: float, beta: float) -> tuple[float, float]:
    noise = sigma * (math.sqrt(d) + math.sqrt(2 * math.log(2 * T / beta)))
    likely = sigma * math.sqrt(2 * math.log(2 / beta))
    if rule == "convex":
        mean = 3 / 2 * D * (G + noise) / math.sqrt(T) + D * GRID
        return mean + D * likely / math.sqrt(T), mean
    if rule == "strongly-convex":
        sure = (G + noise) ** 2 / H * (1 + math.log(T)) / T + 2 * sigma**2 * math.log(2 / beta) / (H * T)
        return sure + D * GRID, (G**2 + d * sigma**2) / H * (1 + math.log(T)) / T + D * GRID
    if rule == "smooth-strong":
        error = noise + GRID
        p = [(1 - H / L) ** t * R + error / H for t in (T - 1, T)]
        return L / 2 * p[0] ** 2 + error * p[1], math.inf
    mean = L * R**2 / (2 * T) + d * sigma**2 / L + D * GRID
    sure = L * R**2 / (2 * T) + D * likely / math.sqrt(T) + noise**2 / L + D * GRID
    if rule == "smooth-last":
        mean += T * (math.sqrt(d) * sigma + GRID) ** 2 / (2 * L)
        sure += T * (noise + GRID) ** 2 / (2 * L)
    return sure, mean


@pytest.mark.parametrize("rule", ["convex", "strongly-convex", "smooth", "smooth-last", "smooth-strong"])
@pytest.mark.parametrize(("T", "sigma", "beta"), [(1, 0.3, 0.05), (17, 0.02, 0.3), (400, 1.5, 1e-6)])
def test_the_excess_on_the_rows_is_its_formula(rule: str, T: int, sigma: float, beta: float) -> None:
    found, truth = table_excess(loss(), rule, T, sigma, beta), expected(rule, T, sigma, beta)
    for one, other in zip(found, truth, strict=True):
        assert other <= one <= other * (1 + 1e-9)


def test_a_step_that_overshoots_does_not_shrink_below_nothing() -> None:
    """H may be declared above L; then a step lands within its error of the optimum, whatever T is."""
    steep = loss(strong=5.0, smooth=3.0)
    assert table_excess(steep, "smooth-strong", 9, 0.1, 0.05) == pytest.approx(
        (
            3 / 2 * (noise_norm(5, 9, 0.1, 0.05) + GRID) ** 2 / 25
            + (noise_norm(5, 9, 0.1, 0.05) + GRID) ** 2 / 5,
            math.inf,
        )
    )


def test_only_rules_whose_conditions_are_declared_are_tried() -> None:
    assert rules(loss()) == ("convex", "strongly-convex", "smooth", "smooth-last", "smooth-strong")
    assert rules(loss(strong=0.0)) == ("convex", "smooth", "smooth-last")
    assert rules(loss(smooth=None)) == ("convex", "strongly-convex")
    assert rules(loss(strong=0.0, smooth=None)) == ("convex",)


def test_slope_and_score_are_what_the_steps_and_the_choice_need() -> None:
    assert slope(loss()) == pytest.approx(G)
    assert score_unit(loss()) * SCORE == pytest.approx((0.25 * 8 + 0.001) * 1.7)
