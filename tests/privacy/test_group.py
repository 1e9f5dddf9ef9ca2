"""A group of rows is charged for exactly what its law may show."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from holdfast.privacy import group


def mass(x: int, scale: Fraction) -> float:
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** abs(x)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_group_privacy_is_exactly_size_times_epsilon(size: int) -> None:
    epsilon = Fraction(1, 2)
    worst = max(abs(math.log(mass(x, 1 / epsilon) / mass(x - size, 1 / epsilon))) for x in range(-40, 40))
    assert worst == pytest.approx(group(epsilon, size))
    assert size == 1 or worst > group(epsilon, 1) + 0.1, "twin: a group is not one row"
