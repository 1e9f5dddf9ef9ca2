"""Lemma O, T1, T1° and T1*: on exact random channels, against mpmath, and their false neighbours."""

from __future__ import annotations

import math
from functools import lru_cache, partial

import mpmath
import numpy as np
import pytest
from oracles.random_channel import Channel, conditional_tail, sharp_transfer

from holdfast.privacy import gdp_delta, zcdp_delta
from holdfast.validity.average_kl import information_term
from holdfast.validity.martingale import cosh_constant, posterior_term
from holdfast.validity.normal_quantile import hazard, log_upper_tail, profile_at, upper_quantile, upper_tail
from holdfast.validity.transfer import (
    approximate_term,
    classic_term,
    concentrated_term,
    gaussian_term,
    sharp_term,
    transfer_width,
)

RATIOS = (1.0, 1.02, 1.1, 1.3, 1.8, 3.0, 8.0)


def channels(count: int) -> list[Channel]:
    rng = np.random.default_rng(20_250_101)
    shapes = [(2, 1, 3), (2, 2, 4), (3, 2, 5), (2, 3, 4)]
    return [
        Channel.random(rng, *shapes[i % len(shapes)], spread=(0.05, 0.3, 1.0, 2.5)[i // 4 % 4])
        for i in range(count)
    ]


def test_lemma_o_on_random_channels() -> None:
    rng = np.random.default_rng(7)
    for channel in channels(80):
        outputs, universe = channel.law.shape[-1], len(channel.population)
        for extreme in (True, False):
            query = rng.random((outputs, universe))
            query = np.round(query) if extreme else query
            for ratio in RATIOS:
                for row in range(channel.rows):
                    assert channel.lemma_o(row, query, ratio) <= channel.profile(ratio) + 1e-14


def test_lemma_o_is_tight_so_a_smaller_ratio_fails() -> None:
    channel = Channel.response(1.0, 0.3)
    query = np.array([[1.0, 0.0], [0.0, 1.0]])
    exact = math.e
    assert channel.lemma_o(0, query, exact) <= channel.profile(exact) + 1e-15
    assert channel.lemma_o(0, query, exact * 0.98) > channel.profile(exact)


def test_the_transfer_terms_hold_on_random_channels() -> None:
    for channel in channels(32):
        profile = lru_cache(maxsize=None)(channel.profile)
        for beta in (0.02, 0.1, 0.4):
            truth = channel.best_mean(beta)
            sharp = sharp_transfer(profile, beta, cells=150)
            one = transfer_width(1, beta, lambda e, f=profile: f(math.exp(e)), high=8.0)
            assert truth <= sharp + 1e-12
            assert sharp <= one + 1e-2  # the oracle's grid is coarse, upwards
            assert truth <= one


def test_pure_privacy_attains_the_transfer_term_and_less_would_be_false() -> None:
    epsilon = 0.8
    t = math.tanh(epsilon / 4.0)
    truth = Channel.response(epsilon, (1.0 - t) / 2.0).best_mean(0.05)
    assert math.isclose(truth, t, rel_tol=1e-12)
    assert truth <= approximate_term(0.05, epsilon, 0.0) <= t * (1.0 + 1e-12)
    assert truth > approximate_term(0.05, 0.97 * epsilon, 0.0)


def gaussian_truth(mu: float, beta: float, weight: float) -> float:
    """E[posterior - prior | best event] for one bit seen through N(0, 1/mu^2): a Gaussian channel at n =
    1."""
    y = np.linspace(-9.0, 9.0 + mu, 40_001)
    zero, one = np.exp(-(y**2) / 2), np.exp(-((y - mu) ** 2) / 2)
    chance = (1.0 - weight) * zero + weight * one
    lift = weight * one / chance - weight
    return conditional_tail(chance / chance.sum(), np.maximum(lift, -lift), beta)


@pytest.mark.parametrize("beta", [0.01, 0.05, 0.2])
def test_gaussian_terms_cover_a_real_channel_and_not_much_less(beta: float) -> None:
    mu = 0.2
    truth = max(gaussian_truth(mu, beta, w) for w in np.linspace(0.35, 0.5, 16))
    terms = [
        term(beta, mu) for term in (sharp_term, gaussian_term, classic_term, information_term, posterior_term)
    ]
    assert truth <= min(terms)
    assert truth > 0.82 * sharp_term(beta, mu)  # the twin: a term 18% smaller is false


def precise_sharp(beta: float, mu: float, err: float) -> mpmath.mpf:
    """T1* with 40 digits at the root of its defining equation, or at the end t0 when the root lies beyond
    it."""
    with mpmath.workdps(40):
        b, m, e = mpmath.mpf(beta), mpmath.mpf(mu), mpmath.mpf(err)
        q = lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2  # noqa: E731
        start = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * e) if err else mpmath.inf
        rest = q(start - m / 2) if err else mpmath.mpf(0)
        shrink = mpmath.exp(-m * m / 8)
        total = lambda t: q(t) - e + q(t - m) + 2 * shrink * (q(t - m / 2) - rest) - b  # noqa: E731
        low, high = m / 2, min(start, mpmath.mpf(30))
        for _ in range(120):
            middle = (low + high) / 2
            low, high = (middle, high) if total(middle) > 0 else (low, middle)
        tanh = mpmath.tanh((m * low - m * m / 2) / 4)
        return min(1, (q(low - m) - q(low) + e - tanh * total(low)) / b)


@pytest.mark.parametrize("beta", [1e-6, 0.001, 0.05, 0.5])
@pytest.mark.parametrize("mu", [1e-6, 0.001, 0.04, 0.7, 3.0])
@pytest.mark.parametrize("share", [0.0, 1e-4, 0.02])
def test_the_sharp_term_is_the_root_rounded_up(beta: float, mu: float, share: float) -> None:
    exact = float(precise_sharp(beta, mu, share * beta))
    found = sharp_term(beta, mu, share * beta)
    assert exact <= found <= exact * (1.0 + 1e-9) + 3e-13


def test_the_closed_form_is_the_integral_over_the_profile() -> None:
    for beta, mu in ((0.05, 0.5), (0.2, 1.0), (0.01, 0.3)):
        by_sum = sharp_transfer(lambda r, m=mu: gdp_delta(math.log(r), m), beta, cells=1500)
        assert sharp_term(beta, mu) <= by_sum <= sharp_term(beta, mu) * 1.01


def test_every_place_gives_a_valid_sharp_bound_so_the_root_need_not_be_exact() -> None:
    beta, mu = 0.05, 0.3
    for t in np.linspace(0.3, 5.0, 40):
        tanh = math.tanh((mu * t - mu * mu / 2) / 4)
        total = upper_tail(t) + upper_tail(t - mu) + 2 * math.exp(-mu * mu / 8) * upper_tail(t - mu / 2)
        assert (upper_tail(t - mu) - upper_tail(t) + tanh * (beta - total)) / beta >= sharp_term(
            beta, mu
        ) - 1e-12


def test_terms_grow_with_the_loss_and_shrink_with_beta() -> None:
    for term in (sharp_term, gaussian_term, classic_term, posterior_term, concentrated_term):
        values = [term(0.05, loss) for loss in (0.0, 1e-6, 1e-4, 0.01, 0.1, 1.0, 30.0)]
        assert values[0] < 1e-300
        assert values == sorted(values)
        assert values[-1] <= 1.0
        by_beta = [term(beta, 0.1) for beta in (1e-9, 1e-4, 0.05, 0.5)]
        assert by_beta == sorted(by_beta, reverse=True)


def test_the_remainder_is_never_free() -> None:
    values = [sharp_term(0.05, 0.04, err) for err in (0.0, 1e-9, 1e-6, 1e-4, 1e-2)]
    assert values == sorted(values)
    assert values[0] < values[1]
    assert sharp_term(0.05, 0.04, 0.2) <= 1.0


def test_known_coefficients() -> None:
    mu = 1e-3
    for beta, t1, t4 in ((0.05, 1.169, 0.679), (0.01, 1.446, 0.814), (0.001, 1.777, 0.975)):
        assert math.isclose(classic_term(beta, mu) / mu, t1, abs_tol=6e-4)
        assert math.isclose(posterior_term(beta, mu) / mu, t4, abs_tol=6e-4)
    assert math.isclose(gaussian_term(0.05, mu) / mu, 0.648, abs_tol=3e-3)
    assert math.isclose(information_term(0.05, mu) / mu, 1.118, abs_tol=6e-4)
    rho = 1e-8
    assert math.isclose(concentrated_term(0.05, rho) / math.sqrt(2 * rho), 0.744, abs_tol=5e-3)
    assert cosh_constant(0.05) <= math.sqrt(2 * math.log(40))


def test_the_transfer_width_takes_any_profile_and_any_sensitivity() -> None:
    rho, beta = 1e-3, 0.05
    direct = transfer_width(100, beta, partial(zcdp_delta, rho))
    assert math.isclose(direct, concentrated_term(beta, rho), rel_tol=1e-6)
    assert math.isclose(
        transfer_width(100, beta, partial(zcdp_delta, rho), sensitivity=0.03), 3 * direct, rel_tol=1e-9
    )
    assert transfer_width(1, beta, lambda _: 1.0) >= 1.0 - 1e-9


def test_normal_functions_are_on_the_safe_side() -> None:
    with mpmath.workdps(30):
        for p in (1e-300, 1e-40, 1e-9, 0.0123, 0.3, 0.5, 0.9):
            z = upper_quantile(p)
            exact = mpmath.findroot(lambda x, p=p: mpmath.erfc(x / mpmath.sqrt(2)) / 2 / p - 1, z)
            assert exact <= z <= exact + abs(exact) * mpmath.mpf(1e-13) + mpmath.mpf(1e-13)
        for z in (-3.0, 0.0, 1.0, 5.0, 25.0, 60.0):
            exact = mpmath.npdf(z) / (mpmath.erfc(mpmath.mpf(z) / mpmath.sqrt(2)) / 2)
            assert exact <= hazard(z) <= exact * (1 + mpmath.mpf(1e-12))
        for x in (-5.0, 0.0, 3.0, 40.0, 200.0):
            exact = mpmath.log(mpmath.erfc(mpmath.mpf(x) / mpmath.sqrt(2)) / 2)
            assert mpmath.almosteq(exact, log_upper_tail(x), rel_eps=1e-12, abs_eps=1e-12)
    for mu in (0.01, 0.5, 2.0):
        for t in (mu / 2, mu / 2 + 1.0, mu / 2 + 4.0):
            exact = gdp_delta(mu * t - mu * mu / 2, mu)
            assert abs(profile_at(t, mu) - exact) <= 1e-13 * (1.0 + exact)
