"""The auditor: never above the truth, near it when it can be, and blind to nothing that it claims to see."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from holdfast.audit import epsilon_lower_bound
from holdfast.audit.epsilon import _best
from holdfast.audit.outputs import Outputs
from holdfast.audit.score import scores
from holdfast.errors import InputError
from holdfast.noise.bits import ReplayedBits
from holdfast.noise.gaussian import gaussian_vector
from holdfast.noise.laplace import laplace_vector
from holdfast.privacy.conversion import zcdp_delta

SURE = 1.0 - 1e-9


def response(epsilon: float, seed: int) -> Any:
    """Many truthful-or-not coins."""
    generator = np.random.default_rng(seed)
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    return lambda bit, runs: np.where(generator.random(runs) < truth, bit, 1 - bit)


def discrete_laplace(scale: Fraction, seed: int) -> Any:
    bits = ReplayedBits(seed)
    return lambda value, runs: value + laplace_vector(scale, runs, bits)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_a_coin_is_measured_closely_from_below(epsilon: float) -> None:
    audit = epsilon_lower_bound(None, 0, 1, runs=400_000, confidence=SURE, many=response(epsilon, 3))
    assert 0.8 * epsilon - 0.02 < audit.epsilon_lower <= epsilon
    assert audit.violates(0.7 * epsilon)
    assert not audit.violates(epsilon)


def test_the_certificate_misses_no_more_often_than_it_says() -> None:
    many, misses = response(0.4, 11), 0
    for _ in range(600):
        misses += epsilon_lower_bound(None, 0, 1, runs=80, confidence=0.9, many=many).violates(0.4)
    assert misses <= 60


def test_an_auditor_that_tests_on_the_runs_it_searched_is_caught() -> None:
    """The twin looks for events and tests them on the same runs: it condemns a constant law on a huge set."""
    generator = np.random.default_rng(5)

    def useless(_: int, runs: int) -> np.ndarray:
        return generator.integers(0, 10**6, size=runs)

    assert epsilon_lower_bound(None, 0, 1, runs=4000, confidence=SURE, many=useless).epsilon_lower == 0.0
    here, there = Outputs.of(useless(0, 2000)), Outputs.of(useless(1, 2000))
    twin = _best(scores(here, there), scores(there, here), here, there, (1 - SURE) / 2, 0.0)
    assert twin.promise > 3.0


def test_exact_laplace_passes_and_too_little_noise_does_not() -> None:
    runs = 200_000
    honest = epsilon_lower_bound(
        None, 0, 1, runs=runs, confidence=SURE, many=discrete_laplace(Fraction(1), 7)
    )
    assert 0.9 < honest.epsilon_lower <= 1.0
    scarce = epsilon_lower_bound(
        None, 0, 1, runs=runs, confidence=SURE, many=discrete_laplace(Fraction(9, 10), 7)
    )
    assert scarce.violates(1.0)


def test_float_laplace_is_caught_through_its_support() -> None:
    generator = np.random.default_rng(2)
    audit = epsilon_lower_bound(
        None, 0.0, 1.0, runs=20_000, confidence=SURE, many=lambda v, runs: v + generator.laplace(size=runs)
    )
    assert audit.violates(4.0)
    assert "grain" in audit.event
    assert audit.other_hits == 0


def test_delta_is_subtracted() -> None:
    """A mechanism that tells everything with probability 1/100 is bad at delta 0 and fine at delta 1/100."""
    generator = np.random.default_rng(4)

    def leaky(value: int, runs: int) -> np.ndarray:
        return np.where(generator.random(runs) < 0.01, value, -1)

    assert epsilon_lower_bound(None, 0, 1, runs=40_000, confidence=SURE, many=leaky).violates(1.5)
    assert (
        epsilon_lower_bound(None, 0, 1, runs=40_000, confidence=SURE, delta=0.01, many=leaky).epsilon_lower
        == 0
    )


def test_the_gaussian_mechanism_stays_below_its_profile_and_half_the_noise_does_not() -> None:
    variance, epsilon = Fraction(1), 1.0
    delta = zcdp_delta(0.5, epsilon)

    def many(scale: Fraction) -> Any:
        bits = ReplayedBits(9)
        return lambda value, runs: value + gaussian_vector(scale, runs, bits)

    audits = [
        epsilon_lower_bound(None, 0, 1, runs=200_000, confidence=SURE, delta=delta, many=many(v))
        for v in (variance, variance / 4)
    ]
    assert not audits[0].violates(epsilon)
    assert audits[1].violates(epsilon)


def test_vectors_are_judged_by_all_coordinates_at_once() -> None:
    """Twenty coins of epsilon 0.25 each: no single coordinate reveals more, their sum does."""
    generator = np.random.default_rng(6)
    truth = 1.0 / (1.0 + math.exp(-0.25))

    def many(bit: int, runs: int) -> np.ndarray:
        return np.where(generator.random((runs, 20)) < truth, bit, 1 - bit)

    audit = epsilon_lower_bound(None, 0, 1, runs=10_000, confidence=SURE, many=many)
    assert 1.0 < audit.epsilon_lower <= 5.0
    assert audit.event.startswith("linear classifier")


def test_middle_events_and_other_types_are_found() -> None:
    generator = np.random.default_rng(8)
    spread = epsilon_lower_bound(
        None,
        1.0,
        3.0,
        runs=8000,
        confidence=SURE,
        many=lambda s, runs: np.rint(1000 * s * generator.normal(size=runs)),
    )
    assert spread.epsilon_lower > 0.5
    words = epsilon_lower_bound(
        lambda bit: ("yes", "no")[int(generator.random() < (0.2, 0.8)[bit])], 0, 1, runs=2000, confidence=SURE
    )
    assert 0.7 < words.epsilon_lower <= math.log(4)
    ragged = epsilon_lower_bound(
        lambda bit: (1,) * (1 + int(generator.random() < (0.1, 0.9)[bit])), 0, 1, runs=2000, confidence=SURE
    )
    assert 1.0 < ragged.epsilon_lower <= math.log(9)


def test_outputs_that_are_no_finite_number_do_no_harm() -> None:
    generator = np.random.default_rng(8)
    values = np.array([math.nan, math.inf, -math.inf, 0.0, 1e308])
    audit = epsilon_lower_bound(
        None, 0, 1, runs=4000, many=lambda bit, runs: generator.choice(values, size=runs)
    )
    assert audit.epsilon_lower < 0.2


def test_it_prints_what_it_found() -> None:
    text = str(epsilon_lower_bound(None, 0, 1, runs=2000, many=response(2.0, 3)))
    assert text.startswith("epsilon >= 1.")
    assert "of 1000 runs" in text


@pytest.mark.parametrize(
    "changes",
    [
        {"runs": 39},
        {"runs": True},
        {"runs": 1e4},
        {"confidence": 1.0},
        {"confidence": math.nan},
        {"confidence": True},
        {"delta": -0.1},
        {"delta": math.nan},
        {"delta": 1.0},
        {"mechanism": None},
        {"mechanism": 3},
        {"many": 3},
        {"many": lambda value, runs: [0]},
        {"many": lambda value, runs: np.zeros((runs, 2, 2))},
        {"mechanism": lambda value: {}},
    ],
)
def test_nonsense_is_refused(changes: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {"mechanism": lambda value: value, "runs": 100} | changes
    mechanism = arguments.pop("mechanism")
    with pytest.raises(InputError):
        epsilon_lower_bound(mechanism, 0, 1, **arguments)
