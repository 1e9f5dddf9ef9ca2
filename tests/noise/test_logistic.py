"""Logistic noise: comparisons and what is kept by walking their choice trees, draws against the exact law."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import exp

import mpmath
import numpy as np
import pytest
from oracles import statistics
from oracles.choice_tree import Law as Walked
from oracles.choice_tree import walk

from holdfast.errors import InputError
from holdfast.noise import logistic
from holdfast.noise.bits import ReplayedBits
from holdfast.noise.laplace import laplace_vector
from holdfast.noise.logistic import exceeds, logistic_vector
from holdfast.noise.logistic import logistic as noise

CASES = [
    (0, Fraction(1)),
    (1, Fraction(1)),
    (-1, Fraction(1)),
    (3, Fraction(2, 3)),
    (-7, Fraction(5)),
    (40, Fraction(1)),
    (-(10**30), Fraction(1)),
    (10**30, Fraction(2**52)),
    (5, Fraction(1, 10**40)),
]


def truth(distance: int, scale: Fraction) -> dict[object, float]:
    with mpmath.workdps(60):
        above = 1 / (1 + mpmath.exp(-mpmath.mpf(distance) * scale.denominator / scale.numerator))
        return {True: float(above), False: float(1 - above)}


def walked(distance: int, scale: Fraction, width: int = 4) -> Walked:
    return walk(lambda bits: exceeds(distance, scale, bits, width=width), floor=2**-24)


@pytest.mark.parametrize(("distance", "scale"), CASES)
@pytest.mark.parametrize("width", [1, 4])
def test_a_comparison_walked(distance: int, scale: Fraction, width: int) -> None:
    found = walked(distance, scale, width)
    assert found.leftover < 1e-5
    assert found.contradicts(truth(distance, scale), tolerance=1e-12) is None


def test_the_walk_catches_a_wrong_scale_and_a_wrong_side() -> None:
    for scale in (Fraction(9, 10), Fraction(11, 10)):
        assert walked(1, scale).contradicts(truth(1, Fraction(1))) is not None
    assert walked(-1, Fraction(1)).contradicts(truth(1, Fraction(1))) is not None


def test_a_comparison_that_trusts_its_floats_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "_MARGIN", -0.1)
    assert walked(1, Fraction(1)).contradicts(truth(1, Fraction(1))) is not None


def test_far_distances_settle_at_once() -> None:
    bits = ReplayedBits(3)
    assert all(exceeds(10**6, 1, bits) and not exceeds(-(10**6), 1, bits) for _ in range(50))


@pytest.mark.parametrize("scale", [0, Fraction(-1, 2), 0.5, 2**53])
def test_a_scale_that_cannot_be_drawn_is_refused(scale: object) -> None:
    with pytest.raises(InputError):
        exceeds(1, scale)  # type: ignore[arg-type]


# Noise on the integers.

LAW_SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(40)]


def kept_truth(x: int, scale: Fraction, power: int = 2) -> dict[object, float]:
    with mpmath.workdps(60):
        kept = 1 / (1 + mpmath.exp(-mpmath.mpf(abs(x)) * scale.denominator / scale.numerator)) ** power
        return {True: float(kept), False: float(1 - kept)}


def kept(x: int, scale: Fraction, width: int = 4) -> Walked:
    drawn = np.array([x], dtype=np.int64)
    return walk(lambda bits: bool(logistic._kept(drawn, scale, bits, width)[0]), floor=2**-24)


@pytest.mark.parametrize(("distance", "scale"), [case for case in CASES if abs(case[0]) < 2**62])
@pytest.mark.parametrize("width", [1, 4])
def test_a_draw_is_kept_with_its_chance(distance: int, scale: Fraction, width: int) -> None:
    found = kept(distance, scale, width)
    assert found.leftover < 1e-5
    assert found.contradicts(kept_truth(distance, scale), tolerance=1e-12) is None


def test_one_comparison_in_the_place_of_two_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept(1, Fraction(1)).contradicts(kept_truth(1, Fraction(1), power=1)) is not None
    monkeypatch.setattr(logistic, "_MARGIN", -0.1)
    assert kept(1, Fraction(1)).contradicts(kept_truth(1, Fraction(1))) is not None


def below(scale: Fraction) -> Callable[[int], float]:
    """Pr[N < k] of the discrete law, summed; by the tail of the continuous one where the scale is large."""
    s = float(scale)
    if s > 1000:  # the midpoint rule is off by less than 0.01/scale^2
        return lambda k: 1 / (1 + exp(-(k - 0.5) / s))
    reach = int(45 * s) + 10
    weights = 1 / np.cosh(np.arange(-reach, reach + 1) / (2 * s)) ** 2
    reached = np.concatenate([[0.0], np.cumsum(weights / weights.sum())])
    return lambda k: float(reached[min(max(k + reach, 0), reached.size - 1)])


@pytest.mark.parametrize("scale", [*LAW_SCALES, Fraction(10**6), Fraction(10**12)], ids=float)
def test_draws_have_the_law(scale: Fraction) -> None:
    """The truth is accepted; a scale of nine tenths and Laplace noise of the same scale are not."""
    draws = logistic_vector(scale, 300_000, ReplayedBits(2027))
    assert draws.dtype == np.int64
    assert statistics.fits(draws, below(scale)) > statistics.FALSE_ALARM
    if scale >= 1:
        for wrong in (Fraction(9, 10), Fraction(11, 10)):
            assert statistics.fits(draws, below(scale * wrong)) < statistics.FALSE_ALARM
        assert (
            statistics.fits(laplace_vector(scale, 300_000, ReplayedBits(2027)), below(scale))
            < statistics.FALSE_ALARM
        )


def test_draws_one_by_one_are_fresh_and_may_be_repeated() -> None:
    huge = Fraction(2**52)
    assert len({noise(huge) for _ in range(300)} | set(logistic_vector(huge, 300).tolist())) == 600
    assert [noise(Fraction(7, 2), ReplayedBits(s)) for s in range(20)] == [
        noise(Fraction(7, 2), ReplayedBits(s)) for s in range(20)
    ]
    assert type(noise(3)) is int and logistic_vector(3, 0).shape == (0,)
    assert not logistic_vector(Fraction(1, 10**400), 100).any()
    for wrong in (0, -1, 0.5, 2**53, True):
        with pytest.raises(InputError, match="expected"):
            noise(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="count"):
        logistic_vector(3, -1)
