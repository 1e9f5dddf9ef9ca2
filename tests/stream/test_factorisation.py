"""The square-root counter's privacy, path by path: how far one arrival moves the noise that explains it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from holdfast.noise.bits import ReplayedBits
from holdfast.noise.gaussian import gaussian_vector
from holdfast.query.running import root_coefficients
from holdfast.stream.factorisation import SHIFT, Grid, norm_squared, scaled


def noise(z: list[int], F: list[int]) -> int:
    """N_t from z_1..z_t, by the definition."""
    t = len(z) - 1
    rest = sum(F[k] * z[t - k] for k in range(1, t + 1))
    return z[t] + ((2 * rest + (1 << SHIFT)) >> (SHIFT + 1))


def moved(z: list[int], change: int, at: int, g: int) -> int:
    """The squared length of d: the same outputs from a stream that differs by `change` at time `at`."""
    F = scaled(len(z)).tolist()
    other: list[int] = []
    for t in range(len(z)):
        output = noise(z[: t + 1], F)
        total = g * change if t >= at else 0
        other.append(0)
        other[t] = output - total - noise(other, F)
        assert total + noise(other, F) == output, "the same output must come out"
    return sum((a - b) ** 2 for a, b in zip(z, other, strict=True))


@pytest.mark.parametrize("horizon", [1, 2, 5, 40])
@pytest.mark.parametrize("largest", [1, 7, 10**6])
def test_no_path_moves_farther_than_the_sensitivity(horizon: int, largest: int) -> None:
    grid = Grid.of(horizon, largest)
    variance = Fraction(grid.sensitivity_squared)
    reached = []
    for seed in range(6):
        z = gaussian_vector(variance, horizon, ReplayedBits(seed)).tolist()
        for at in {0, horizon // 2, horizon - 1}:
            reached += [moved(z, sign * largest, at, grid.steps) for sign in (1, -1)]
    assert max(reached) <= grid.sensitivity_squared
    assert max(reached) > 0.95 * grid.sensitivity_squared, "the bound should be nearly met"
    if horizon > 1:
        assert max(reached) > (grid.steps * largest) ** 2, "twin: the norm of a column forgotten"


def test_the_matrix_squared_is_the_prefix_sum() -> None:
    f = root_coefficients(60)
    root = np.array([[f[i - j] if i >= j else 0.0 for j in range(60)] for i in range(60)])
    assert root @ root == pytest.approx(np.tril(np.ones((60, 60))))
    exact = [math.comb(2 * k, k) / 4**k for k in range(60)]
    assert f == pytest.approx(exact, rel=1e-14)
    assert np.abs(scaled(60) / 2.0**SHIFT - exact).max() <= 2.0 ** -(SHIFT + 1) * 1.001
    assert np.abs(np.linalg.inv(root)).sum(axis=0).max() <= 2, "the l1 norm used in the proof"


def test_the_printed_bound_on_the_norm_is_too_small() -> None:
    """One might bound this sum by Psi(T) = 1 - (1-gamma)/pi + ln(T)/pi + 2/T; that is no bound."""
    gamma, T = 0.5772156649015329, 2**16
    exact = sum((math.comb(2 * k, k) / 4**k) ** 2 for k in range(400))
    assert norm_squared(400) == pytest.approx(exact, rel=1e-12)
    psi = 1 - (1 - gamma) / math.pi + math.log(T) / math.pi + 2 / T
    assert psi == pytest.approx(4.396, abs=1e-3)
    assert norm_squared(T) == pytest.approx(4.596, abs=1e-3)
    assert norm_squared(T) == pytest.approx((math.log(T) + gamma + 4 * math.log(2)) / math.pi, abs=1e-5)


@pytest.mark.parametrize("horizon", [1, 100, 10**5, 2**21])
@pytest.mark.parametrize("largest", [1, 1000, 2**36])
def test_the_grid_costs_less_than_one_percent(horizon: int, largest: int) -> None:
    grid = Grid.of(horizon, largest)
    ideal = grid.steps * largest * math.sqrt(norm_squared(horizon))
    assert ideal < math.sqrt(grid.sensitivity_squared) < 1.01 * ideal
