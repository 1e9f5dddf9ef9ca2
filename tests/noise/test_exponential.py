"""exp(-p/q) lies between the two integers, which are close."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.noise.exponential import exponential

rates = (
    st.fractions(min_value=0, max_value=300)
    | st.floats(0, 1000).map(Fraction)
    | st.integers(0, 2000).map(Fraction)
)


@given(rates, st.sampled_from([1, 2, 8, 16, 30, 64, 104, 168, 400]))
def test_the_bracket_holds_and_is_tight(rate: Fraction, width: int) -> None:
    low, high = exponential(rate, width)
    with mpmath.workdps(width // 3 + 350):
        true = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator) * mpmath.mpf(2) ** width
        assert low <= true <= high
    assert 0 <= low <= high <= low + 2
    assert high <= 1 << width | 1


def test_zero_is_exact() -> None:
    assert exponential(Fraction(0), 20) == (1 << 20, 1 << 20)


@pytest.mark.parametrize("rate", [Fraction(10) ** 400, Fraction(1, 10**400), Fraction(10**300, 10**299 + 1)])
def test_extreme_rationals_are_answered(rate: Fraction) -> None:
    low, high = exponential(rate, 64)
    assert high - low <= 2
    with mpmath.workdps(450):
        assert low <= mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator) * 2**64 <= high
