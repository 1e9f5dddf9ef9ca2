"""The three anytime forms: shares that sum to beta, budgets that add up, widths that grow slowly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from oracles.abstract_game import gaussian_miss, worst_mean

from holdfast.validity.anytime import (
    adaptive_width,
    capacity,
    capacity_width,
    epoch,
    epoch_noise,
    epoch_width,
    step,
)
from holdfast.validity.gaussian_answers import gaussian, gaussian_width, population_term
from holdfast.validity.normal_quantile import upper_quantile


def test_a_step_is_the_squared_loss_of_one_answer_of_discrete_noise() -> None:
    for s, grid in ((3.0, 1), (2.5, 2), (2.1, 1), (300.0, 7)):
        exact = Fraction(grid) ** 2 / (Fraction(s) ** 2 - 4)
        assert exact <= Fraction(step(s, grid)) <= exact * Fraction(1 + 1e-9)
    assert step(2.0) == math.inf


def test_a_capacity_is_all_that_the_cap_allows() -> None:
    for mu, s, grid in ((0.04, 5000.0, 1), (0.1, 300.0, 2), (0.5, 10.0, 1)):
        k = capacity(mu, s, grid)
        assert k * step(s, grid) <= mu * mu * (1 + 1e-9)
        assert (k + 1) * step(s, grid) > mu * mu
        assert capacity_width(10**6, 0.05, mu, s, grid) == gaussian_width(10**6, k, 0.05, s, grid)
    assert capacity(0.1, 2.0) == 0
    assert capacity_width(10**6, 0.05, 1e-9, 5.0) == math.inf


def test_epochs_double_and_their_shares_sum_to_beta() -> None:
    assert [epoch(j) for j in (1, 2, 3, 4, 7, 8)] == [0, 1, 1, 2, 2, 3]
    assert sum(1 / ((level + 1) * (level + 2)) for level in range(10**5)) < 1.0


def test_the_width_of_an_epoch_counts_every_answer_before_it() -> None:
    rows, beta, level = 10**6, 0.05, 9
    share = beta / ((level + 1) * (level + 2))
    mu = math.sqrt(sum(2**i / (epoch_noise(rows, i) ** 2 - 4) for i in range(level + 1)))
    z = upper_quantile(share / 2 ** (level + 1))
    formula = (epoch_noise(rows, level) * z + 0.5) / rows + population_term(share, mu)
    found = epoch_width(rows, beta, level)
    assert formula <= found * (1 + 1e-12)
    assert math.isclose(found, formula, rel_tol=1e-9)
    forgetful = math.sqrt(2**level / (epoch_noise(rows, level) ** 2 - 4))
    assert population_term(share, forgetful) < 0.75 * population_term(share, mu)  # the twin that forgets


def test_epochs_cost_little_more_than_knowing_the_number() -> None:
    widths = [epoch_width(10**6, 0.05, level) for level in range(18)]
    assert widths == sorted(widths)
    for level in (3, 9, 15):
        known = gaussian(10**6, 2 ** (level + 1) - 1, 0.05)
        assert known < widths[level] < 1.7 * known


def test_adaptive_noise_follows_its_formula_and_its_levels() -> None:
    rows, beta, base, s = 10**6, 0.05, 1e-5, 3000.0
    budget = 5e-5  # level 3: base * 8 is the first power above it
    b2 = beta / 2 / (4 * 5)
    z = upper_quantile(beta / 2 / (2 * 7 * 8))
    formula = (s * z + 0.5) / rows + population_term(b2, math.sqrt(8 * base))
    assert math.isclose(adaptive_width(rows, beta, 7, s, budget, base), formula, rel_tol=1e-9)
    assert adaptive_width(rows, beta, 7, 2.0, budget, base) == math.inf
    by_query = [adaptive_width(rows, beta, j, s, budget, base) for j in (1, 10, 1000)]
    by_budget = [adaptive_width(rows, beta, 7, s, b, base) for b in (1e-6, 1e-5, 1e-4)]
    assert by_query == sorted(by_query)
    assert by_budget == sorted(by_budget)


@pytest.mark.parametrize("beta", [0.02, 0.1])
def test_splitting_beta_covers_any_mixture_of_noises(beta: float) -> None:
    """Form (C) in games: z_j by any weights that sum to one, alpha_* at the other half; twin: no second
    half."""
    rng = np.random.default_rng(9)
    broken = 0
    for _ in range(300):
        queries = int(rng.integers(2, 9))
        chance = rng.dirichlet(np.full(4, 0.3))
        bias = rng.normal(0.0, 0.2, (4, queries)) * rng.integers(0, 2, (4, queries))
        sigma = 10.0 ** rng.uniform(-3.0, 1.0, queries)
        weights = rng.dirichlet(np.ones(queries))
        z = np.array([upper_quantile(float(beta / 2 * w / 2)) for w in weights])
        assert gaussian_miss(chance, bias, sigma, sigma * z + worst_mean(chance, bias, beta / 2)) <= beta
        broken += gaussian_miss(chance, bias, sigma, sigma * z) > beta
    assert broken > 100
