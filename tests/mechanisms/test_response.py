"""The mechanism itself: `mechanisms.randomized_response`."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from local.walking import law
from oracles.statistics import FALSE_ALARM, binomial

from holdfast.errors import InputError
from holdfast.mechanisms.response import randomized_response, response_epsilon
from holdfast.noise.bits import ReplayedBits


def test_law_of_an_array() -> None:
    """Each bit is kept with probability 11/20, independently of the others."""
    found = law(lambda bits: tuple(randomized_response(np.array([1, 0]), truth=0.55, source=bits).tolist()))
    t = Fraction(11, 20)
    assert found == {(1, 0): t * t, (1, 1): t * (1 - t), (0, 0): (1 - t) * t, (0, 1): (1 - t) ** 2}


def test_law_of_a_scalar() -> None:
    outcomes = [
        randomized_response(True, truth=Fraction(3, 4), source=ReplayedBits(choices=[c])) for c in range(4)
    ]
    assert outcomes == [True, True, True, False]
    assert randomized_response(0, truth=Fraction(3, 4), source=ReplayedBits(choices=[3])) == 1
    assert type(randomized_response(0, truth=0.75)) is int
    assert type(randomized_response(False, truth=0.75)) is bool


@pytest.mark.parametrize("truth", [0.55, 0.9])
def test_a_million_bits(truth: float) -> None:
    kept = int(
        np.sum(randomized_response(np.ones(10**6, dtype=np.int8), truth=truth, source=ReplayedBits(5)))
    )
    assert binomial(kept, 10**6, truth) > FALSE_ALARM
    assert all(binomial(kept, 10**6, 1 - (1 - truth) * wrong) < FALSE_ALARM for wrong in (0.9, 1.1))


def test_shape_and_type_stay() -> None:
    for dtype in (np.bool_, np.int8, np.uint64):
        told = randomized_response(np.ones((3, 2), dtype=dtype), truth=0.75)
        assert told.shape == (3, 2)
        assert told.dtype == dtype
    assert randomized_response(
        np.array([7, -3]), truth=0.75, source=ReplayedBits(choices=[0, 0])
    ).tolist() == [1, 1]


def test_epsilon() -> None:
    assert response_epsilon(Fraction(11, 20)) == pytest.approx(math.log(11 / 9), rel=1e-12)
    assert response_epsilon(Fraction(11, 20)) >= math.log(11 / 9)


@pytest.mark.parametrize("truth", [0.49, 1.0, 1, 0, -1, math.nan, math.inf, True, "0.6", None], ids=repr)
def test_bad_truth(truth: Any) -> None:
    with pytest.raises(InputError, match="truth"):
        randomized_response([1], truth=truth)


@pytest.mark.parametrize("bits", [[0.5], ["secret"], [None], 1.0], ids=repr)
def test_bad_bits(bits: Any) -> None:
    with pytest.raises(InputError) as error:
        randomized_response(bits, truth=0.75)
    assert "secret" not in str(error.value)
