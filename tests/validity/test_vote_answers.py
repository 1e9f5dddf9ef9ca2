"""Theorem L against an adaptive dynamic programme, the vote tails, T3, T4v and its remainder, small
worlds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles.adaptive_dp import World, best_conditional_mean, best_miss, vote_profile, votes_law

from holdfast.privacy import gdp_delta
from holdfast.validity.average_kl import information_votes_term
from holdfast.validity.gaussian_answers import MOST_QUERIES
from holdfast.validity.martingale import posterior_votes_term, vote_remainder
from holdfast.validity.mixture import mixture_term
from holdfast.validity.normal_quantile import upper_quantile, upper_tail
from holdfast.validity.reference import t3, t4v
from holdfast.validity.small_steps import (
    NearGaussian,
    bounded_range_step,
    filter_profile,
    pure_step,
    vote_step,
    votes_profile,
)
from holdfast.validity.transfer import sharp_term
from holdfast.validity.vote_answers import (
    MOST_VOTES,
    fewest_votes,
    votes,
    votes_noise,
    votes_sharp_term,
    votes_term,
    votes_width,
)

SLACKS = (0.003, 0.03, 0.3, 2.0)


def claimed(profile: NearGaussian, epsilon: float) -> float:
    return gdp_delta(epsilon, profile.mu) + math.exp(epsilon) * profile.err


@pytest.mark.parametrize(
    ("rows", "flip", "total"), [(1, 0.45, 10), (2, 0.4, 12), (4, 0.25, 12), (16, 0.1, 12)]
)
def test_theorem_l_covers_every_adaptive_analyst(rows: int, flip: float, total: int) -> None:
    for epsilon in (0.0, 0.05, 0.2, 0.5, 1.0):
        truth = vote_profile(rows, total, flip, epsilon)
        for slack in SLACKS:
            assert truth <= claimed(votes_profile(rows, total, flip, slack), epsilon)


def binomial_profile(rows: int, total: int, flip: float, epsilon: float) -> float:
    """delta of the plainest analyst: the same vote again and again, at the end of the range of biases."""
    p = flip
    q = flip + (1.0 - 2.0 * flip) / rows
    value, low, high = 0.0, (1.0 - p) ** total, (1.0 - q) ** total
    for j in range(total + 1):
        value += max(0.0, high - math.exp(epsilon) * low)
        low *= (total - j) / (j + 1) * p / (1.0 - p)
        high *= (total - j) / (j + 1) * q / (1.0 - q)
    return value


def test_votes_without_the_remainder_is_false() -> None:
    broken = 0
    for rows, flip, total in ((20, 0.1, 100), (50, 0.1, 400), (50, 0.25, 400)):
        v = vote_step(rows, flip)[0]
        for epsilon in (0.3, 0.6, 1.0, 1.5):
            truth = binomial_profile(rows, total, flip, epsilon)
            broken += truth > gdp_delta(epsilon, math.sqrt(total * v))
            for slack in SLACKS:
                assert truth <= claimed(votes_profile(rows, total, flip, slack), epsilon)
    assert broken >= 3


def test_the_remainder_is_the_sum_rounded_up() -> None:
    rows, flip = 300, 0.2
    v, b, m3 = vote_step(rows, flip)
    for total in (1, 2, 50, 5000):
        for slack in (0.01, 0.5):
            start = slack * total * v
            exact = 0.0
            for r in range(total):
                t = start + r * v
                exact += m3 / 6 * (1 - b) ** -3 * (0.24198 + 0.79789 * math.sqrt(t)) / t
                exact += v * v / 4 * (0.19948 * t**-1.5 + 0.121 / t)
            found = votes_profile(rows, total, flip, slack)
            first = m3 / 6 * (1 - b) ** -3 * (0.24198 + 0.79789 * math.sqrt(start)) / start
            first += v * v / 4 * (0.19948 * start**-1.5 + 0.121 / start)
            assert exact <= found.err <= exact + first
            assert math.isclose(found.mu, math.sqrt(start + total * v), rel_tol=1e-12)


def test_the_derivative_constants_are_suprema() -> None:
    d = np.linspace(-12.0, 12.0, 200_001)
    phi = np.exp(-d * d / 2.0) / math.sqrt(2.0 * math.pi)
    assert (np.abs(d) * phi).max() <= 0.24198
    assert 2.0 * phi.max() <= 0.79789
    assert (np.abs(d * d - 1.0) * phi).max() / 2.0 <= 0.19948
    assert (np.abs(d) * phi).max() / 2.0 <= 0.12100


def test_one_step_of_the_filter_covers_its_mechanisms() -> None:
    for epsilon in (0.01, 0.1, 0.5):
        v, b = pure_step(epsilon)
        p = 1.0 / (1.0 + math.exp(epsilon))
        response = (1.0 - 2.0 * p) ** 2 / (p * (1.0 - p))
        assert response <= v * (1.0 + 1e-9)
        assert math.isclose(b, math.expm1(epsilon), rel_tol=1e-12)
        squared, _ = bounded_range_step(epsilon)
        low = (1.0 + math.exp(-epsilon)) / 2.0
        assert math.isclose(squared, (low * math.exp(epsilon) - 1.0) * (1.0 - low), rel_tol=1e-9)


def test_the_filter_profile_covers_votes_and_never_says_less() -> None:
    rows, flip, total = 8, 0.3, 12
    v, b, _ = vote_step(rows, flip)
    for start in (2.0 * v, 6.0 * v, 20.0 * v):
        mixed = filter_profile(total * v, v, b, start)
        for epsilon in (0.0, 0.2, 0.6):
            assert vote_profile(rows, total, flip, epsilon) <= claimed(mixed, epsilon)
    v, b, _ = vote_step(10**6, 0.25)
    alone, mixed = votes_sharp_term(10**6, 10**9, 0.25, 0.05)[0], mixture_term(0.05, 10**9 * v, v, b)[0]
    assert alone <= mixed <= 1.02 * alone
    assert mixture_term(0.05, 0.01, 0.02, 0.9)[0] <= 1.0
    assert filter_profile(1.0, 0.1, 0.1, 0.1).err == math.inf
    assert filter_profile(1.0, 0.1, 1.0, 0.5).err == math.inf


def binomial_tail(m: int, p: float, j: int) -> float:
    return sum(math.comb(m, i) * p**i * (1.0 - p) ** (m - i) for i in range(j, m + 1))


def test_the_vote_tail_with_its_shift_and_not_without() -> None:
    broken = 0
    for m in (1, 2, 5, 20, 60):
        for p in (0.05, 0.25, 0.5, 0.7):
            for j in range(1, m + 1):
                if (j - 1) / m < p:
                    continue
                truth = binomial_tail(m, p, j)
                assert truth <= upper_tail(2.0 * math.sqrt(m) * ((j - 1) / m - p)) * (1.0 + 1e-12)
                broken += truth > upper_tail(2.0 * math.sqrt(m) * (j / m - p))
    assert broken > 20


def relative_entropy(p: np.ndarray, q: np.ndarray) -> float:
    return float((p * np.log(p / q)).sum())


def test_the_remainder_of_t4v_is_enough_and_needed() -> None:
    rng = np.random.default_rng(3)
    broken = tried = 0
    for _ in range(4000):
        flip, rows = float(rng.choice([0.05, 0.1, 0.25, 0.4])), int(rng.choice([2, 5, 10, 50]))
        shift = (1.0 - 2.0 * flip) / rows
        prior = rng.dirichlet(np.full(int(rng.integers(2, 4)), 0.5)) + 1e-9
        prior /= prior.sum()
        post = prior * np.exp(rng.normal(0.0, rng.choice([0.0, 0.1, 1.0]), len(prior)))
        post /= post.sum()
        low = float(rng.choice([flip, 1.0 - flip - shift, 0.5 - shift / 2]))
        bias = low + shift * rng.integers(0, 2, len(prior))
        lam = float(10.0 ** rng.uniform(-1.0, 1.3))
        s2, _, kappa = vote_remainder(rows, 0, flip, lam)
        if not math.isfinite(kappa):
            continue
        tried += 1
        radius = math.sqrt(max(0.0, 2.0 * relative_entropy(prior, post)))
        mean = 0.0
        for law in (bias, 1.0 - bias):
            chance = float((post * law).sum())
            after = math.sqrt(max(0.0, 2.0 * relative_entropy(prior, post * law / chance)))
            mean += chance * math.cosh(lam * after)
        grown = math.cosh(lam * radius * (1.0 + s2 / 2.0))
        assert mean <= (1.0 + 0.5 * s2 * lam * lam + kappa) * grown * (1.0 + 1e-9)
        broken += mean > (1.0 + 0.5 * s2 * lam * lam) * grown * (1.0 + 1e-6)
    assert tried > 3000
    assert broken > 50


def test_average_kl_of_a_vote() -> None:
    """T3's per-vote information against brute force over tables of bits, a >= 2/n and n >= 6."""
    for n in (6, 7, 12, 40):
        for flip in (2.0 / n, 0.3, 0.45):
            bound = (1 - 2 * flip) ** 2 / (2 * (n - 1) ** 2 * (1 - 4 / (n - 1)))
            worst = 0.0
            for ones in range(n + 1):
                p = flip + (1 - 2 * flip) * ones / n
                total = 0.0
                for bit, count in ((1, ones), (0, n - ones)):
                    if count:
                        other = flip + (1 - 2 * flip) * (ones - bit) / (n - 1)
                        total += count * (p * math.log(p / other) + (1 - p) * math.log((1 - p) / (1 - other)))
                worst = max(worst, total / n)
            assert worst <= bound
            assert worst > 0.2 * bound


@pytest.mark.parametrize(("rows", "flip", "m", "queries"), [(2, 0.4, 2, 3), (4, 0.4, 3, 2), (6, 0.35, 2, 2)])
def test_no_adaptive_analyst_moves_the_population_further(
    rows: int, flip: float, m: int, queries: int
) -> None:
    for population in ((0.5, 0.5), (0.4, 0.35, 0.25)):
        world = World.of(population, rows)
        for beta in (0.1, 0.3):
            truth = best_conditional_mean(world, votes_law(m, flip), queries, beta)
            for term in (
                votes_term(rows, queries * m, flip, beta),
                votes_sharp_term(rows, queries * m, flip, beta)[0],
                posterior_votes_term(rows, queries * m, flip, beta),
                information_votes_term(rows, queries * m, flip, beta),
            ):
                assert truth <= term + 1e-12
            assert truth > 0.25 * votes_term(rows, queries * m, flip, beta)


def test_no_adaptive_analyst_misses_more_often_than_promised() -> None:
    """A world in which the certified width excludes something: nearly no noise is left, many votes, large
    beta."""
    rows, m, flip, queries = 40, 400, 0.45, 2
    world = World.of((0.5, 0.5), rows)
    for beta in (0.2, 0.5):
        width = votes_width(rows, queries, beta, m, flip)
        assert width < 1.3

        def missed(q: int, ones: int, width: float = width) -> bool:
            return abs((ones / m - flip) / (1 - 2 * flip) - float(world.truth[q])) > width

        assert best_miss(world, votes_law(m, flip), 1, missed) <= beta

        def missed_tight(q: int, ones: int) -> bool:
            return abs((ones / m - flip) / (1 - 2 * flip) - float(world.truth[q])) > 0.15

        assert best_miss(world, votes_law(m, flip), 1, missed_tight) > beta


def test_the_best_number_of_votes_is_a_minimum_and_the_fewest_fit() -> None:
    rows, queries, beta = 10**5, 300, 0.05
    value, best = votes_noise(rows, queries, beta)
    assert value == votes_width(rows, queries, beta, best) == votes(rows, queries, beta)
    for factor in (0.5, 0.8, 1.25, 2.0):
        assert votes_width(rows, queries, beta, round(best * factor)) >= value
    assert fewest_votes(rows, queries, beta, value * 0.99) is None
    assert votes_width(rows, queries, beta, 100, 0.5) == math.inf


def test_the_width_is_the_formula_with_its_shift_and_its_remainder() -> None:
    rows, queries, beta, m, flip = 10**5, 300, 0.05, 20_000, 0.3
    term, profile = votes_sharp_term(rows, queries * m, flip, beta)
    assert term == sharp_term(beta, profile.mu, profile.err) > sharp_term(beta, profile.mu)
    z = upper_quantile(beta / (2 * queries))
    noise = z / (2 * (1 - 2 * flip) * math.sqrt(m)) + 1 / (m * (1 - 2 * flip))
    formula = noise + votes_term(rows, queries * m, flip, beta)
    found = votes_width(rows, queries, beta, m, flip)
    assert formula * (1 - 1e-12) <= found <= formula * (1 + 1e-10)


def test_few_answers_at_low_confidence_keep_z_at_one() -> None:
    rows, beta, m, flip = 10**5, 0.9, 400, 0.3
    formula = (1 / (2 * math.sqrt(m)) + 1 / m) / (1 - 2 * flip) + votes_term(rows, m, flip, beta)
    assert formula * (1 - 1e-12) <= votes_width(rows, 1, beta, m, flip) <= formula * (1 + 1e-9)


def test_a_width_is_claimed_for_flips_and_votes_that_the_theorem_covers() -> None:
    for flip in (-0.1, 0.0, 0.5, 0.7, 1.0):
        assert votes_width(10**5, 1, 0.05, 400, flip) == math.inf
    for flip in (0.01, 0.49):
        assert votes_width(10**5, 1, 0.05, 400, flip) < math.inf
    for older in (t3, t4v):
        assert older(10**5, 1, 0.05, 400, 0.49) < math.inf
        assert [older(10**5, 1, 0.05, 400, flip) for flip in (0.0, 0.5, 0.7)] == [math.inf] * 3
        assert older(10**5, MOST_QUERIES + 1, 0.05, 400, 0.25) == math.inf
    assert votes_width(10**12, MOST_VOTES // 10, 0.05, 10) < math.inf
    assert votes_width(10**12, MOST_VOTES // 10, 0.05, 11) == math.inf
