"""Calibration ends on the private side, and near the edge."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InputError
from holdfast.privacy import (
    Filter,
    approx,
    calibrate,
    events,
    gaussian_variance,
    gaussian_variance_gdp,
    gdp,
    laplace_scale,
    pure,
    zcdp,
)
from holdfast.privacy.rule import value

targets = st.one_of(st.floats(1e-6, 100), st.fractions(min_value=Fraction(1, 10**6), max_value=100))


def meant(target: float | Fraction) -> Fraction:
    return Fraction(repr(target)) if isinstance(target, float) else target


@given(st.integers(1, 10**9), targets)
def test_closed_forms_are_exact(sensitivity: int, target: float | Fraction) -> None:
    laplace = events.Laplace(sensitivity, laplace_scale(sensitivity, target))
    assert value(laplace, "pure") == meant(target)
    gaussian = events.Gaussian(sensitivity, gaussian_variance(sensitivity, rho=target))
    assert value(gaussian, "zcdp") == meant(target)
    discrete = events.Gaussian(sensitivity, gaussian_variance_gdp(sensitivity, mu_squared=target))
    assert value(discrete, "gdp") == meant(target)


@given(st.integers(1, 10**9), st.integers(1, 10**6), st.integers(1, 30))
def test_a_share_in_units_costs_exactly_that_share(units: int, sensitivity: int, size: int) -> None:
    """What a session plans: noise for a whole number of units, for a unit of several rows, no unit lost."""
    share = Fraction(units, 10**9)
    budgets = [
        (Filter.pure(1), events.Laplace(sensitivity, laplace_scale(sensitivity * size, share))),
        (Filter.zcdp(1), events.Gaussian(sensitivity, gaussian_variance(sensitivity * size**2, rho=share))),
    ]
    for budget, event in budgets:
        assert budget.cost(events.Group(event, size)) == units


def test_generic_calibration_of_noise() -> None:
    def make(scale: float) -> events.Event:
        return events.Repeat(events.Subsampled(events.Laplace(1, scale), 10, 1000), 100)

    def loss(event: events.Event) -> float:
        return approx(event, 1e-6).epsilon

    scale = calibrate(make, loss, 0.5, 1e-3, 1e6)
    assert loss(make(scale)) <= 0.5
    assert loss(make(scale * (1 - 1e-9))) > 0.5  # the twin one step towards less noise
    assert isinstance(scale, float)


def test_generic_calibration_of_counts() -> None:
    def make(votes: int) -> events.Event:
        return events.Votes(10**6, votes, Fraction(1, 4))

    votes = calibrate(make, lambda e: zcdp(e).rho, 1e-8, 1, 10**9)
    assert isinstance(votes, int)
    assert zcdp(make(votes)).rho <= 1e-8 < zcdp(make(votes + 1)).rho


def test_the_ends_of_the_range() -> None:
    def make(scale: float) -> events.Event:
        return events.Laplace(1, scale)

    def loss(event: events.Event) -> float:
        return pure(event).epsilon

    assert calibrate(make, loss, 1e6, 1.0, 10.0) == 1.0
    assert calibrate(make, loss, 0.1, 1, 10) == 10
    assert calibrate(make, loss, 0.2, 1, 10) == 5
    with pytest.raises(InputError, match="reached"):
        calibrate(make, loss, 0.01, 1.0, 10.0)
    with pytest.raises(InputError, match="lo < hi"):
        calibrate(make, loss, 0.01, 10.0, 1.0)
    with pytest.raises(InputError):
        calibrate(make, loss, math.nan, 1.0, 10.0)
    with pytest.raises(InputError):
        calibrate(make, loss, 1.0, math.nan, 10.0)


@pytest.mark.parametrize("bad", [math.nan, -1.0, 0, True, None, "1", 5e-324, math.inf])
def test_bad_numbers(bad: object) -> None:
    calls = [
        lambda x: laplace_scale(x, 1),
        lambda x: laplace_scale(1, x),
        lambda x: gaussian_variance(x, rho=1),
        lambda x: gaussian_variance(1, rho=x),
        lambda x: gaussian_variance_gdp(x, mu_squared=1),
        lambda x: gaussian_variance_gdp(1, mu_squared=x),
    ]
    for call in calls:
        with pytest.raises(InputError):
            call(bad)


def test_the_discrete_correction_is_not_forgotten() -> None:
    continuous = gaussian_variance_gdp(1, mu_squared=Fraction(1, 10)) - 4
    assert gdp(events.Gaussian(1, continuous)).mu_squared > 0.1  # the twin
    assert gdp(events.Gaussian(1, continuous + 4)).mu_squared == 0.1
