"""Conversions against mpmath, against peers where they are right, and back again."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.privacy_loss import best_concentrated_delta, gaussian_profile

from holdfast.errors import InputError
from holdfast.privacy import (
    approx_to_gdp,
    approx_to_zcdp,
    gdp_delta,
    gdp_epsilon,
    pure_to_zcdp,
    zcdp_delta,
    zcdp_to_approx,
)
from holdfast.privacy.normal_tail import mills, mills_slope

RHOS = (1e-12, 1e-6, 1e-3, 0.0244, 0.5, 5.0, 100.0)
DELTAS = (1e-30, 1e-9, 1e-6, 0.01, 0.5)
MUS = (1e-6, 1e-3, 0.1, 0.2367, 0.2499, 0.25, 0.26, 1.0, 5.0, 20.0)
EPSILONS = (0.0, 1e-12, 1e-6, 3e-6, 1e-3, 0.1, 1.0, 2.0, 5.0, 20.0, 50.0)


@pytest.mark.parametrize("rho", RHOS)
def test_zcdp_delta_is_the_least_and_above_it(rho: float) -> None:
    for epsilon in (rho + 2 * math.sqrt(rho * x) for x in (0.1, 1.0, 14.0, 60.0)):
        truth = best_concentrated_delta(rho, epsilon)
        ours = zcdp_delta(rho, epsilon)
        assert truth <= ours * (1 + 1e-13)
        assert ours <= truth * (1 + 1e-9)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", DELTAS)
def test_zcdp_to_approx_is_the_inverse_of_the_profile(rho: float, delta: float) -> None:
    epsilon = zcdp_to_approx(rho, delta)
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / delta)) * (
        1 + 1e-12
    )  # Bun and Steinke, Prop. 1.3
    if epsilon > 1e-9:
        assert best_concentrated_delta(rho, epsilon) <= delta
        assert best_concentrated_delta(rho, epsilon * (1 - 1e-6)) > delta


@given(st.floats(1e-6, 50), st.floats(1e-30, 0.9))
def test_budgets_end_on_the_private_side(epsilon: float, delta: float) -> None:
    rho = approx_to_zcdp(epsilon, delta)
    assert zcdp_to_approx(rho, delta) <= epsilon
    assert zcdp_to_approx(rho * (1 + 1e-6), delta) > epsilon * (1 - 1e-9)
    mu = approx_to_gdp(epsilon, delta)
    assert gdp_delta(epsilon, mu) <= delta
    assert gdp_delta(epsilon, mu * (1 + 1e-8)) > delta
    assert gdp_epsilon(mu, delta) <= epsilon * (1 + 1e-9)
    assert mu * mu >= 2 * rho * (1 - 1e-9)  # the exact profile never gives less noise budget than zCDP


@given(st.floats(1e-9, 1e3), st.floats(1e-9, 1e3), st.floats(1e-12, 0.9))
def test_conversions_are_monotone(first: float, second: float, delta: float) -> None:
    low, high = sorted((first, second))
    assert zcdp_to_approx(low, delta) <= zcdp_to_approx(high, delta) * (1 + 1e-12)
    assert gdp_epsilon(min(low, 40), delta) <= gdp_epsilon(min(high, 40), delta) * (1 + 1e-12)
    assert pure_to_zcdp(low) <= pure_to_zcdp(high)


@pytest.mark.parametrize("mu", MUS)
def test_gaussian_profile_against_mpmath(mu: float) -> None:
    for epsilon in EPSILONS:
        truth = gaussian_profile(epsilon, mu)
        ours = gdp_delta(epsilon, mu)
        assert truth <= ours
        if truth > 1e-300:
            assert ours <= truth * (1 + 1e-10)


def test_the_textbook_formula_in_floats_is_caught() -> None:
    """The twin: Phi minus e^eps Phi in plain floats falls below the truth by cancellation."""

    def naive(epsilon: float, mu: float) -> float:
        def tail(x: float) -> float:
            return math.erfc(x / math.sqrt(2)) / 2

        return tail(epsilon / mu - mu / 2) - math.exp(epsilon) * tail(epsilon / mu + mu / 2)

    assert any(gaussian_profile(e, m) > naive(e, m) for m in MUS for e in EPSILONS)


def test_mills_ratio_and_its_slope() -> None:
    with mp.workdps(40):
        for step in range(-40, 400):
            x = mp.mpf(step) / 10
            truth = mp.erfc(x / mp.sqrt(2)) / 2 * mp.sqrt(2 * mp.pi) * mp.exp(x * x / 2)
            assert abs(mills(float(x)) / truth - 1) < 2**-48 + abs(float(x) - x) * 10
            slope = 1 - mp.mpf(float(x)) * mp.erfc(mp.mpf(float(x)) / mp.sqrt(2)) / 2 * mp.sqrt(
                2 * mp.pi
            ) * mp.exp(mp.mpf(float(x)) ** 2 / 2)
            assert abs(mills_slope(float(x)) / slope - 1) < 2**-46


@pytest.mark.parametrize("epsilon", [1e-200, 1e-9, 0.1, 1.0, 10.0, 1e5])
def test_pure_to_zcdp(epsilon: float) -> None:
    with mp.workdps(60):
        truth = mp.mpf(epsilon) * mp.tanh(mp.mpf(epsilon) / 2)
    assert truth <= pure_to_zcdp(epsilon)
    assert pure_to_zcdp(epsilon) <= truth * (1 + 1e-12) or epsilon < 1e-150


def test_the_known_points() -> None:
    """1000 counts at (1, 1e-6): standard deviation 133.6 by the exact profile, 143.3 by zCDP (peers.md 4)."""
    rho, mu = approx_to_zcdp(1, 1e-6), approx_to_gdp(1, 1e-6)
    assert math.sqrt(1000 / (2 * rho)) == pytest.approx(143.3, abs=0.05)
    assert math.sqrt(1000) / mu == pytest.approx(133.6, abs=0.05)


def test_zero_loss_stays_zero() -> None:
    assert zcdp_to_approx(0, 1e-6) == zcdp_delta(0, 1) == pure_to_zcdp(0) == gdp_epsilon(0, 1e-6) == 0.0
    assert gdp_delta(1, 0) == 0.0
    assert gdp_delta(0, 1e-9) > 0.0


@pytest.mark.parametrize("bad", [math.nan, -1.0, math.inf, "1", True, None, 5e-324, 1e301])
def test_bad_losses_are_refused(bad: object) -> None:
    calls = [
        lambda x: pure_to_zcdp(x),
        lambda x: zcdp_to_approx(x, 1e-6),
        lambda x: approx_to_zcdp(x, 1e-6),
        lambda x: zcdp_delta(x, 1),
        lambda x: zcdp_delta(1, x),
        lambda x: gdp_delta(x, 1),
        lambda x: gdp_delta(1, x),
        lambda x: gdp_epsilon(x, 1e-6),
        lambda x: approx_to_gdp(x, 1e-6),
    ]
    for call in calls:
        with pytest.raises(InputError):
            call(bad)


@pytest.mark.parametrize("bad", [math.nan, -1.0, 0, 0.0, 1, 1.0, 2, "1", True, None, Fraction(1)])
def test_bad_deltas_are_refused(bad: object) -> None:
    for call in (zcdp_to_approx, approx_to_zcdp, gdp_epsilon, approx_to_gdp):
        with pytest.raises(InputError):
            call(1, bad)
    for call in (approx_to_zcdp, approx_to_gdp):
        with pytest.raises(InputError):
            call(0, 1e-6)


def test_extreme_numbers_do_not_overflow() -> None:
    for rho in (1e-307, 1e-290, 1e-100, 1e100, 1e290):
        for delta in (1e-300, 0.999):
            epsilon = zcdp_to_approx(rho, delta)
            assert 0.0 <= epsilon < math.inf
            assert 0.0 < zcdp_delta(rho, max(epsilon, 1e-300)) <= 1.0
    for mu in (1e-307, 1e-100, 1e100):
        assert 0.0 <= gdp_epsilon(mu, 1e-300) < math.inf
        assert 0.0 < gdp_delta(1, mu) <= 1.0
    for epsilon in (1e-300, 1e-100, 1e100, 1e299):
        assert approx_to_zcdp(epsilon, 1e-6) >= 0.0
        assert approx_to_gdp(epsilon, 1e-6) >= 0.0


def test_peers_agree_where_they_are_right() -> None:
    import opendp.prelude as dp
    from dp_accounting.pld import privacy_loss_distribution

    dp.enable_features("contrib")
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    for scale in (2.0, 5.0, 30.0):
        measurement = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale))
        for delta in (1e-9, 1e-6, 1e-2):
            theirs = measurement.map(1).epsilon(delta)
            ours = zcdp_to_approx(1 / (2 * Fraction(scale) ** 2), delta)
            assert ours == pytest.approx(theirs, rel=1e-6)
        pld = privacy_loss_distribution.from_gaussian_mechanism(scale, value_discretization_interval=1e-4)
        assert gdp_epsilon(1 / scale, 1e-6) == pytest.approx(pld.get_epsilon_for_delta(1e-6), rel=2e-3)
