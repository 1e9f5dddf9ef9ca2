"""Laplace noise has the scale sensitivity/epsilon, and no other."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from oracles.statistics import FALSE_ALARM, laplace_log_law, scaled

from holdfast.mechanisms.laplace import laplace
from holdfast.noise.bits import ReplayedBits


@pytest.mark.parametrize("sensitivity", [1, 3])
def test_the_noise_has_the_scale_of_the_claim(sensitivity: int) -> None:
    zeros = np.zeros(20_000, dtype=int)
    noise = laplace(zeros, sensitivity=sensitivity, epsilon=Fraction(1, 5), bits=ReplayedBits(2))
    assert scaled(noise, laplace_log_law, 5 * sensitivity) > FALSE_ALARM
    for factor in (0.9, 1.1):
        assert scaled(noise, laplace_log_law, 5 * sensitivity * factor) < FALSE_ALARM
