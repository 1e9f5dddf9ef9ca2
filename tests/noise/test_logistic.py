"""A comparison with logistic noise, by walking its choice tree."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from oracles.choice_tree import Law as Walked
from oracles.choice_tree import walk

from holdfast.errors import InputError
from holdfast.noise import logistic
from holdfast.noise.bits import ReplayedBits
from holdfast.noise.logistic import exceeds

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
