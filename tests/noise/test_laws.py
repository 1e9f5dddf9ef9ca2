"""A million draws at the default sizes: the truth is accepted, scale x 0.9 and x 1.1 are rejected."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import exp, expm1

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles import statistics
from scipy.special import ndtr

from holdfast.errors import InputError
from holdfast.noise.bits import ReplayedBits
from holdfast.noise.gaussian import gaussian, gaussian_vector
from holdfast.noise.geometric import geometric, geometric_vector
from holdfast.noise.histogram import Histogram
from holdfast.noise.laplace import laplace, laplace_vector
from noise.truth import gaussian_law, geometric_law, laplace_law, probabilities

SCALES = [Fraction(3, 10), Fraction(10), Fraction(1433, 10), Fraction(10**6), Fraction(10**12)]
DRAWS = 1_000_000
Below = Callable[[int], float]


def laplace_below(scale: float) -> Below:
    """P(X = x) is (1-q)/(1+q) * q^|x| with q = exp(-1/scale); sums of it are geometric."""
    q = exp(-1 / scale)
    return lambda k: exp((k - 1) / scale) / (1 + q) if k <= 0 else 1 - exp(-k / scale) / (1 + q)


def geometric_below(scale: float) -> Below:
    return lambda k: -expm1(-k / scale) if k > 0 else 0.0


def gaussian_below(scale: float) -> Below:
    if scale > 1000:  # the midpoint rule is off by less than 0.01/scale^2
        return lambda k: float(ndtr((k - 0.5) / scale))
    reach = int(10 * scale) + 10
    law = probabilities(gaussian_law(Fraction(scale) ** 2), reach)
    reached = np.concatenate([[0.0], np.cumsum([law.get(x, 0.0) for x in range(-reach, reach + 1)])])
    return lambda k: float(reached[min(max(k + reach, 0), reached.size - 1)])


FAMILIES: dict[str, tuple[Callable[..., NDArray[np.int64]], Callable[[float], Below]]] = {
    "laplace": (laplace_vector, laplace_below),
    "gaussian": (lambda scale, *rest: gaussian_vector(scale**2, *rest), gaussian_below),
    "geometric": (lambda scale, *rest: geometric_vector(1 / scale, *rest), geometric_below),
}


@pytest.mark.parametrize("scale", SCALES, ids=float)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_million_draws(family: str, scale: Fraction) -> None:
    draw, below = FAMILIES[family]
    draws = draw(scale, DRAWS, ReplayedBits(2026))
    assert draws.dtype == np.int64
    assert statistics.fits(draws, below(float(scale))) > statistics.FALSE_ALARM
    for wrong in (0.9, 1.1):
        assert statistics.fits(draws, below(float(scale) * wrong)) < statistics.FALSE_ALARM


@pytest.mark.parametrize("scale", [Fraction(10), Fraction(10**6)], ids=float)
@pytest.mark.parametrize("family", FAMILIES)
def test_small_tables_have_the_same_law(family: str, scale: Fraction) -> None:
    """A law that is asked rarely is drawn from a small table; 1000 draws stay below the turn."""
    draw, below = FAMILIES[family]
    bits = ReplayedBits(4)
    draws = np.concatenate([draw(scale, 1000, bits) for _ in range(100)])
    assert statistics.fits(draws, below(float(scale))) > statistics.FALSE_ALARM
    for wrong in (0.9, 1.1):
        assert statistics.fits(draws, below(float(scale) * wrong)) < statistics.FALSE_ALARM


@pytest.mark.parametrize("scale", SCALES[:3], ids=float)
def test_one_at_a_time_from_the_system(scale: Fraction) -> None:
    for draw, below in (
        (lambda: laplace(scale), laplace_below(float(scale))),
        (lambda: gaussian(scale**2), gaussian_below(float(scale))),
        (lambda: geometric(1 / scale), geometric_below(float(scale))),
    ):
        draws = np.array([draw() for _ in range(30_000)])
        assert statistics.fits(draws, below) > statistics.FALSE_ALARM


def test_the_noise_is_fresh_at_every_call() -> None:
    huge = Fraction(2**52)
    seen = [laplace(huge) for _ in range(300)] + laplace_vector(huge, 300).tolist()
    assert len(set(seen)) == 600


@pytest.mark.parametrize("seeded", [laplace, gaussian, geometric])
def test_explicit_bits_replay(seeded: Callable[..., int]) -> None:
    assert [seeded(Fraction(7, 2), ReplayedBits(s)) for s in range(20)] == [
        seeded(Fraction(7, 2), ReplayedBits(s)) for s in range(20)
    ]


@pytest.mark.parametrize(
    "scale",
    [
        Fraction(1, 1000),
        Fraction(1, 10**300),
        Fraction(0.1),
        Fraction(2**52),
        Fraction(1e-300),
        Fraction(3**700, 2**1100),
    ],
    ids=["tiny", "tinier", "0.1", "largest", "1e-300", "long"],
)
def test_extreme_parameters(scale: Fraction) -> None:
    for draws in (
        laplace_vector(scale, 3000),
        gaussian_vector(scale**2, 3000),
        geometric_vector(1 / scale, 3000),
    ):
        assert draws.shape == (3000,)
        # 60 scales: beyond with probability below exp(-60) for each of the 9000.
        assert float(np.abs(draws).max()) <= max(60 * float(scale), 0.5)
    for law in (laplace_law(scale), gaussian_law(scale**2), geometric_law(1 / scale)):
        assert Histogram(law).blocks <= 4096  # the work of building is bounded, whatever the parameter


def test_types_and_sizes() -> None:
    assert type(laplace(3)) is int
    assert type(gaussian(Fraction(3), ReplayedBits(1))) is int
    assert gaussian_vector(3, 0).shape == (0,)
    assert laplace_vector(np.int64(3), np.int64(4)).shape == (4,)  # type: ignore[arg-type]


@pytest.mark.parametrize("call", [laplace, gaussian, geometric])
@pytest.mark.parametrize(
    "wrong", [0, -1, 1.5, float("nan"), float("inf"), True, None, "1", Fraction(-1, 3), Fraction(0)]
)
def test_bad_parameters_are_refused(call: Callable[..., int], wrong: object) -> None:
    call(Fraction(1))  # a parameter that equals True is kept already
    with pytest.raises(InputError, match="expected"):
        call(wrong)
    with pytest.raises(InputError, match="expected"):
        call(wrong, ReplayedBits(1))


def test_scales_whose_noise_would_not_fit_are_refused() -> None:
    for call, wrong in ((laplace, 2**52 + 1), (gaussian, 2**104 + 1), (geometric, Fraction(1, 2**52 + 1))):
        with pytest.raises(InputError, match="expected"):
            call(wrong)


@pytest.mark.parametrize("wrong", [-1, 2.5, True])
def test_bad_counts_are_refused(wrong: object) -> None:
    for call in (laplace_vector, gaussian_vector, geometric_vector):
        with pytest.raises(InputError, match="count"):
            call(Fraction(3), wrong)  # type: ignore[arg-type]
