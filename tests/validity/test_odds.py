"""Theorems V and W in exact games, and the overshoot of Wilson's limits against brute force."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from oracles.abstract_game import interval_miss, odds_excess
from oracles.adaptive_dp import votes_law

from holdfast.privacy import gdp_delta
from holdfast.validity.normal_quantile import two_sided_quantile, upper_tail
from holdfast.validity.odds import GaussianOdds, VotesOdds, gaussian_odds, gaussian_odds_noise, votes_odds
from holdfast.validity.vote_answers import votes_width
from holdfast.validity.wilson import overshoot, wilson_low


def game(rng: np.random.Generator, queries: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rare events whose empirical frequency is off in some hidden states."""
    states = int(rng.integers(2, 5))
    chance = rng.dirichlet(np.full(states, 0.4))
    truth = rng.choice([0.01, 0.05, 0.3, 0.9], queries)
    mean = np.clip(truth[None, :] * np.exp(rng.normal(0.0, 0.8, (states, queries))), 0.0, 1.0)
    mean[0] = truth
    return chance, truth, mean - truth[None, :]


def gaussian_law(sigma: float):  # type: ignore[no-untyped-def]
    steps = np.linspace(-6.0, 6.0, 301)
    edges = np.concatenate(([-np.inf], (steps[1:] + steps[:-1]) / 2, [np.inf]))
    weights = np.array([upper_tail(float(a)) - upper_tail(float(b)) for a, b in pairwise(edges)])

    def law(mean: float) -> tuple[np.ndarray, np.ndarray]:
        return mean + sigma * steps, weights

    return law


def test_v_holds_in_games_and_fails_without_its_slack() -> None:
    rng = np.random.default_rng(2)
    broken = 0
    for _ in range(30):
        queries, beta, epsilon = int(rng.integers(1, 4)), 0.1, float(rng.choice([0.1, 0.5]))
        chance, truth, bias = game(rng, queries)
        sigma = 0.004
        slack = odds_excess(chance, truth, bias, epsilon) / beta
        reach = sigma * (two_sided_quantile(beta, queries) + 0.03)  # 0.03: the grid of the law
        law = gaussian_law(sigma)
        assert interval_miss(chance, truth, bias, law, GaussianOdds(reach + slack, epsilon)) <= beta
        broken += interval_miss(chance, truth, bias, law, GaussianOdds(reach, 0.0)) > beta
    assert broken > 10


def test_w_holds_in_games_and_fails_without_the_overshoot() -> None:
    rng = np.random.default_rng(4)
    votes, flip, z = 60, 0.25, 1.2
    broken = 0
    y = 2.0 * overshoot(votes, flip, z)

    def law(mean: float) -> tuple[np.ndarray, np.ndarray]:
        answers = (np.arange(votes + 1) / votes - flip) / (1.0 - 2.0 * flip)
        return answers, votes_law(votes, flip)(mean)

    for _ in range(25):
        queries, beta, epsilon = int(rng.integers(1, 4)), 0.1, 0.3
        chance, truth, bias = game(rng, queries)
        excess = odds_excess(chance, truth, bias, epsilon)
        whole = VotesOdds(votes, flip, z, (excess + queries * y) / beta, epsilon)
        part = VotesOdds(votes, flip, z, 0.0, 0.0)
        assert interval_miss(chance, truth, bias, law, whole) <= beta
        broken += interval_miss(chance, truth, bias, law, part) > beta
    assert broken > 15


@pytest.mark.parametrize(
    ("votes", "flip", "z"), [(1, 0.25, 1.0), (30, 0.25, 1.5), (200, 0.1, 3.0), (500, 0.4, 2.0)]
)
def test_the_overshoot_is_a_rigorous_supremum(votes: int, flip: float, z: float) -> None:
    limits = np.array([wilson_low(ones, votes, flip, z) for ones in range(votes + 1)])
    assert (np.diff(limits) > 0.0).all()
    law = votes_law(votes, flip)
    truth = max(float((law(s) * np.maximum(0.0, limits - s)).sum()) for s in np.linspace(0.0, 1.0, 101))
    found = overshoot(votes, flip, z)
    assert truth <= found <= 1.7 * truth + 1e-12


def test_the_odds_are_moved_by_exactly_epsilon_and_outward() -> None:
    for epsilon in (0.01, 0.3, 2.0):
        low, high = GaussianOdds(0.05, epsilon)(0.2)
        assert math.isclose(math.log(low / (1 - low)), math.log(0.15 / 0.85) - epsilon, rel_tol=1e-9)
        assert math.isclose(math.log(high / (1 - high)), math.log(0.25 / 0.75) + epsilon, rel_tol=1e-9)
        # Privacy cannot move the mean further than tanh(epsilon/4).
        assert GaussianOdds(0.0, epsilon)(0.5)[1] - 0.5 <= math.tanh(epsilon / 4) * (
            1 + 1e-9
        ) + 0.5 * math.tanh(epsilon)


def test_clipped_answers_keep_their_end() -> None:
    odds = GaussianOdds(0.1, 0.2)
    assert odds(-3.0) == (0.0, odds(-3.0)[1])
    assert odds(0.05)[0] == 0.0
    assert odds(0.95)[1] == 1.0
    assert odds(4.0)[1] == 1.0
    assert GaussianOdds(math.inf, math.inf)(0.5) == (0.0, 1.0)
    for answer in (-0.2, 0.0, 0.3, 1.0, 1.4):
        low, high = odds(answer)
        assert 0.0 <= low <= high <= 1.0


def test_gaussian_odds_meet_their_equation() -> None:
    rows, queries, beta, s = 10**6, 10**4, 0.05, 2500.0
    odds = gaussian_odds(rows, queries, beta, s)
    mu = math.sqrt(queries / (s * s - 4))
    z = two_sided_quantile(beta, queries)
    formula = (s * z + 0.5) / rows + gdp_delta(odds.epsilon, mu) / beta
    assert formula <= odds.reach <= formula * (1 + 1e-9)
    assert gaussian_odds(rows, queries, beta, 1.9)(0.3) == (0.0, 1.0)


def test_planned_frequency_is_where_the_interval_is_narrow() -> None:
    rows, queries, beta = 10**6, 10**4, 0.05
    s = gaussian_odds_noise(rows, queries, beta, 0.01)[1]
    rare = gaussian_odds(rows, queries, beta, s, at=0.01)
    common = gaussian_odds(rows, queries, beta, s, at=0.5)

    def half(odds: GaussianOdds, at: float) -> float:
        low, high = odds(at)
        return max(high - at, at - low)

    assert half(rare, 0.01) < half(common, 0.01)
    assert half(common, 0.5) < half(rare, 0.5)


def test_votes_odds_are_narrower_for_rare_events_than_the_uniform_width() -> None:
    rows, queries, beta, votes = 10**6, 30_000, 0.05, 36_000
    odds = votes_odds(rows, queries, beta, votes)
    low, high = odds(0.001)
    assert high - 0.001 < 0.6 * votes_width(rows, queries, beta, votes)
    assert low == 0.0
    low, high = odds(0.5)
    assert 0.5 - low == pytest.approx(high - 0.5, rel=1e-3)
