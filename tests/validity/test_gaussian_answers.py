"""J0 and its discrete form: exact tails, abstract games, and the neighbours that must fail."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from oracles.abstract_game import gaussian_miss, worst_mean

from holdfast.validity.gaussian_answers import (
    MOST_QUERIES,
    gaussian,
    gaussian_noise,
    gaussian_width,
    population_term,
)
from holdfast.validity.normal_quantile import density, two_sided_quantile, upper_quantile, upper_tail
from holdfast.validity.transfer import sharp_term


def discrete_tail(s: float, m: int) -> mpmath.mpf:
    """Pr[N_Z(0, s^2) >= m], summed exactly."""
    reach = int(40 * s) + 5
    with mpmath.workdps(50):
        weight = [mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * mpmath.mpf(s) ** 2)) for x in range(reach + 1)]
        whole = weight[0] + 2 * sum(weight[1:])
        if m <= 0:
            return 1 - sum(weight[1 - m :]) / whole
        return sum(weight[m:]) / whole


@pytest.mark.parametrize("s", [2.001, 2.5, 4.0, 11.3])
def test_the_discrete_tail_with_half_a_step_and_not_without(s: float) -> None:
    broken = 0
    for m in range(1, int(9 * s)):
        exact = discrete_tail(s, m)
        with mpmath.workdps(50):
            half = mpmath.erfc((mpmath.mpf(m) - 0.5) / (mpmath.mpf(s) * mpmath.sqrt(2))) / 2
            none = mpmath.erfc(mpmath.mpf(m) / (mpmath.mpf(s) * mpmath.sqrt(2))) / 2
        assert exact <= half
        broken += exact > none
    assert broken > 0.9 * (int(9 * s) - 1)
    with mpmath.workdps(50):  # at m = 0 it fails: this is why z is at least 1
        assert discrete_tail(s, 0) > mpmath.erfc(mpmath.mpf(-0.5) / (mpmath.mpf(s) * mpmath.sqrt(2))) / 2


def ripple(variance: float) -> float:
    """How far sum over x of exp(-(x-g)^2/(2 variance)) depends on g, relative: max over min, minus 1."""
    with mpmath.workdps(60):
        sums = [
            mpmath.fsum(mpmath.exp(-((x - mpmath.mpf(g) / 16) ** 2) / (2 * variance)) for x in range(-60, 61))
            for g in range(17)
        ]
        return float(max(sums) / min(sums) - 1)


def test_the_two_stage_sampler_is_within_the_margin_and_a_finer_one_is_not() -> None:
    assert ripple(4.0) < 1e-33
    assert ripple(1.0) > 1e-9
    assert MOST_QUERIES * 1e-33 < 2.0**-44


def test_one_over_the_tail_is_convex_and_its_tangent_stays_below_one() -> None:
    x = np.linspace(-6.0, 8.0, 1401)
    inverse = np.array([1.0 / upper_tail(float(v)) for v in x])
    assert (np.diff(inverse, 2) >= -1e-9).all()

    def tangent_at_zero(z: float) -> float:
        return 1.0 / upper_tail(z) - z * density(z) / upper_tail(z) ** 2

    assert all(tangent_at_zero(z) <= 1.0 for z in np.linspace(1.0, 8.0, 200))
    assert tangent_at_zero(0.5) > 1.0  # without z >= 1 the argument has a hole


def random_game(rng: np.random.Generator, queries: int) -> tuple[np.ndarray, np.ndarray]:
    states = int(rng.integers(2, 6))
    chance = rng.dirichlet(np.full(states, float(rng.choice([0.2, 1.0]))))
    bias = rng.normal(0.0, 0.3, (states, queries)) * rng.integers(0, 2, (states, 1))
    return chance, bias


def test_j0_holds_in_every_game_with_one_noise() -> None:
    rng = np.random.default_rng(11)
    closest, broken = 0.0, 0
    for _ in range(400):
        queries, beta = int(rng.integers(1, 7)), float(rng.choice([0.01, 0.05, 0.2]))
        chance, bias = random_game(rng, queries)
        sigma = np.full(queries, float(rng.choice([0.02, 0.1, 0.5])))
        width = sigma * two_sided_quantile(beta, queries) + worst_mean(chance, bias, beta)
        miss = gaussian_miss(chance, bias, sigma, width)
        assert miss <= beta
        closest = max(closest, miss / beta)
        broken += gaussian_miss(chance, bias, sigma, 0.9 * width) > beta
    assert closest > 0.9
    assert broken > 100  # the twin: a width that is 10% smaller


def unequal_game(beta: float, queries: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One precise query whose mean is off with probability just below beta; all others are drowned in
    noise."""
    sigma = np.full(queries, 100.0)
    sigma[0] = 1e-4
    bias = np.zeros((2, queries))
    bias[0, 0] = 0.05
    return np.array([0.98 * beta, 1.0 - 0.98 * beta]), bias, sigma


def test_j0_with_unequal_noise_is_false_and_its_repairs_hold() -> None:
    beta, queries = 0.05, 20
    chance, bias, sigma = unequal_game(beta, queries)
    alpha = worst_mean(chance, bias, beta)
    z = two_sided_quantile(beta, queries)
    assert gaussian_miss(chance, bias, sigma, sigma * z + alpha) > 1.8 * beta
    # A repair: one uniform width.
    assert gaussian_miss(chance, bias, sigma, np.full(queries, sigma.max() * z + alpha)) <= beta
    # Another: split beta between noise and population, any sigma_j (the form (C) of Theorem 18).
    split = sigma * two_sided_quantile(beta / 2, queries) + worst_mean(chance, bias, beta / 2)
    assert gaussian_miss(chance, bias, sigma, split) <= beta


def test_matched_hazards_hold_for_unequal_noise() -> None:
    """phi(z_j)/Q(z_j) = C sigma_j with sum of 2 Q(z_j) <= beta: widths sigma_j z_j + alpha_*, in random
    games."""
    rng = np.random.default_rng(5)
    for _ in range(150):
        queries, beta = int(rng.integers(2, 6)), 0.05
        chance, bias = random_game(rng, queries)
        sigma = rng.uniform(0.05, 0.4, queries)
        alpha = worst_mean(chance, bias, beta)

        def z_of(hazard: float) -> float:
            low, high = -5.0, 60.0
            for _ in range(80):
                middle = (low + high) / 2
                value = density(middle) / upper_tail(middle) if middle < 30 else middle
                low, high = (low, middle) if value > hazard else (middle, high)
            return high

        low, high = 0.0, 1e4
        for _ in range(60):
            c = (low + high) / 2
            spent = sum(2 * upper_tail(z_of(c * s)) for s in sigma)
            low, high = (c, high) if spent > beta else (low, c)
        width = np.array([s * z_of(high * s) + alpha for s in sigma])
        assert gaussian_miss(chance, bias, sigma, width) <= beta * (1 + 1e-9)


def test_the_width_is_the_formula_rounded_up() -> None:
    rows, queries, beta, s, grid = 10**5, 50, 0.05, 900.0, 3
    mu = grid * math.sqrt(queries / (s * s - 4.0))
    formula = (s * upper_quantile(beta / (2 * queries)) + 0.5) / (grid * rows) + sharp_term(beta, mu)
    found = gaussian_width(rows, queries, beta, s, grid)
    assert formula <= found <= formula * (1 + 1e-10)
    assert gaussian_width(rows, queries, beta, 2.0) == math.inf
    assert gaussian_width(rows, MOST_QUERIES + 1, beta, s) == math.inf


def test_few_answers_at_low_confidence_keep_z_at_one() -> None:
    rows, s, beta = 10**4, 300.0, 0.9
    formula = (s + 0.5) / rows + population_term(beta, 1 / math.sqrt(s * s - 4.0))
    assert formula <= gaussian_width(rows, 1, beta, s) <= formula * (1 + 1e-9)


@pytest.mark.parametrize("s", [2.001, 3.0, 3.999])
def test_any_noise_above_two_counts_has_a_width(s: float) -> None:
    rows, beta = 10**4, 0.05
    formula = (s * upper_quantile(beta / 2) + 0.5) / rows + population_term(beta, 1 / math.sqrt(s * s - 4.0))
    assert formula <= gaussian_width(rows, 1, beta, s) * (1 + 1e-9)
    assert gaussian_width(rows, 1, beta, s) <= formula * (1 + 1e-9)


def test_the_best_noise_is_a_minimum() -> None:
    for rows, queries, beta in ((10**4, 5, 0.05), (10**6, 10**4, 1e-6), (300, 1, 0.3), (10**8, 10**7, 0.05)):
        value, best = gaussian_noise(rows, queries, beta)
        assert value == gaussian(rows, queries, beta)
        for factor in (0.6, 0.9, 1.1, 1.6):
            assert gaussian_width(rows, queries, beta, best * factor) >= value
