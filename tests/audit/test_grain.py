"""The lowest set bit of a float."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.audit.grain import ZERO_GRAIN, grain


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_value_is_an_odd_multiple_of_its_grain(x: float) -> None:
    e = float(grain(x))
    if x == 0.0:
        assert e == ZERO_GRAIN
    else:
        multiple = Fraction(x) / Fraction(2) ** int(e)
        assert multiple.denominator == 1
        assert multiple.numerator % 2 == 1


def test_what_is_no_number_has_the_coarsest_grain() -> None:
    assert grain([math.nan, math.inf, -math.inf, 0.0, -0.0]).tolist() == [ZERO_GRAIN] * 5


def test_float_noise_has_finer_bits_around_zero_than_around_one() -> None:
    noise = np.random.default_rng(1).laplace(size=100_000)
    assert float(grain(0.0 + noise).min()) < -53.0
    assert float(grain(1.0 + noise).min()) == -53.0
