"""Losses: order within a notion, addition rounded up, nothing across notions; and the rounding under them."""

from __future__ import annotations

import math
import operator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InputError
from holdfast.privacy import Approx, Gdp, Pure, Zcdp
from holdfast.privacy.rounding import GRAINS, down, float_down, float_up, from_grains, grains, up

amounts = st.floats(0, 1e100).filter(lambda x: x == 0 or x > 1e-300)
chances = st.floats(0, 1).filter(lambda x: x == 0 or x > 1e-300)
LOSSES = (Pure(1.0), Approx(1.0, 0.5), Zcdp(1.0), Gdp(1.0))


@given(amounts, amounts)
def test_sums_are_rounded_up_by_at_most_one_step(a: float, b: float) -> None:
    truth = Fraction(a) + Fraction(b)
    for total in ((Pure(a) + Pure(b)).epsilon, (Zcdp(a) + Zcdp(b)).rho, (Gdp(a) + Gdp(b)).mu_squared):
        assert Fraction(total) >= truth
        assert Fraction(math.nextafter(total, 0.0)) < truth or total == 0.0


def test_plain_float_addition_would_round_down() -> None:
    a, b = 1.0, 2.0**-60
    assert Fraction(a + b) < Fraction(a) + Fraction(b)  # the twin
    assert Fraction((Pure(a) + Pure(b)).epsilon) >= Fraction(a) + Fraction(b)


@given(amounts, chances, amounts, chances)
def test_the_order_is_by_component(a: float, c: float, b: float, d: float) -> None:
    assert (Approx(a, c) <= Approx(b, d)) == (a <= b and c <= d)
    assert (Zcdp(a, c) <= Zcdp(b, d)) == (a <= b and c <= d)
    assert (Pure(a) <= Pure(b)) == (Gdp(a) <= Gdp(b)) == (a <= b)
    assert Approx(a, c) <= Approx(a, c) + Approx(b, d)
    assert Zcdp(a, c) <= Zcdp(a, c) + Zcdp(b, d)


def test_incomparable_losses_are_neither_way() -> None:
    assert not Approx(1.0, 0.0) <= Approx(0.5, 0.5)
    assert not Approx(0.5, 0.5) <= Approx(1.0, 0.0)
    assert Approx(1.0, 0.9) + Approx(1.0, 0.9) == Approx(2.0, 1.0)


@pytest.mark.parametrize("first", LOSSES)
@pytest.mark.parametrize("second", LOSSES)
def test_notions_do_not_mix(first: object, second: object) -> None:
    for operation in (operator.add, operator.le):
        if type(first) is type(second):
            assert operation(first, second) is not None
        else:
            with pytest.raises(TypeError):
                operation(first, second)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0, True, None, "1", 1e301])
def test_bad_losses(bad: object) -> None:
    for kind in (Pure, Gdp, Zcdp, lambda x: Approx(x, 0.0), lambda x: Approx(1.0, x), lambda x: Zcdp(1.0, x)):
        with pytest.raises(InputError):
            kind(bad)
    with pytest.raises(InputError):
        Approx(1.0, 1.5)


def test_losses_become_floats_from_above() -> None:
    assert Fraction(Pure(Fraction(1, 3)).epsilon) > Fraction(1, 3)  # type: ignore[arg-type]
    assert Pure(1).epsilon == 1.0
    assert type(Pure(1).epsilon) is float
    assert Pure(5e-324).epsilon == 5e-324


@given(st.fractions(min_value=0, max_value=10**30))
def test_floats_from_fractions(value: Fraction) -> None:
    high, low = float_up(value), float_down(value)
    assert Fraction(low) <= value <= Fraction(high)
    assert high in (low, math.nextafter(low, math.inf))


@given(st.one_of(st.fractions(min_value=0, max_value=10**9), st.floats(0, 1e9).map(Fraction)))
def test_grains_round_up_and_never_lose_a_charge(value: Fraction) -> None:
    amount = grains(value)
    assert from_grains(amount) - Fraction(1, GRAINS) < value <= from_grains(amount)
    assert (amount > 0) == (value > 0)
    assert grains(from_grains(amount)) == amount


def test_margins() -> None:
    assert up(1.0) > 1.0 > down(1.0)
    assert up(0.0) > 0.0 == down(0.0)
    assert up(1.0, 1e6) - 1.0 > 1e-8
    assert 1.0 - down(1.0, 1e6) > 1e-8
    assert 1.0 - down(1.0) < 1e-13
    with pytest.raises(InputError):
        float_up(Fraction(10**400))
