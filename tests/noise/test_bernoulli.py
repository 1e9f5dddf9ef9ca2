"""Coins have the probability they are given, exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from oracles import statistics
from oracles.choice_tree import ChoiceBits, walk
from oracles.choice_tree import Law as Walked

from holdfast.errors import InputError
from holdfast.noise.bernoulli import bernoulli, bernoulli_vector
from holdfast.noise.bits import ReplayedBits, system_bits

PROBABILITIES = [
    Fraction(0),
    Fraction(1),
    Fraction(1, 2),
    Fraction(1, 3),
    Fraction(5, 7),
    Fraction(3, 16),
    Fraction(99, 100),
]


def coin(p: float | Fraction) -> dict[object, float | Fraction]:
    return {True: p, False: 1 - p}


@pytest.mark.parametrize("p", PROBABILITIES)
def test_bernoulli_walked(p: Fraction) -> None:
    walked = walk(lambda bits: bernoulli(p, bits))
    assert walked.leftover == 0
    assert walked.probabilities.get(True, Fraction(0)) == p


def vector(probability: Fraction, count: int, width: int) -> Walked:
    def sampler(bits: ChoiceBits) -> tuple[bool, ...]:
        return tuple(bernoulli_vector(probability, count, bits, width=width).tolist())

    return walk(sampler, floor=2**-24)


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("p", PROBABILITIES)
def test_vector_walked(p: Fraction, width: int) -> None:
    one = vector(p, 1, width)
    assert one.leftover < 1e-5
    assert one.contradicts({(True,): p, (False,): 1 - p}) is None
    two = vector(p, 2, width)
    truth = {(a, b): (p if a else 1 - p) * (p if b else 1 - p) for a in (True, False) for b in (True, False)}
    assert two.leftover < 1e-3
    assert two.contradicts(truth) is None


def test_a_vector_that_drops_its_ties_is_caught() -> None:
    p, width = Fraction(1, 3), 3

    def rounded(bits: ChoiceBits) -> bool:
        return bool(bits.chunks(1, width)[0] < int(p * 2**width))

    assert walk(rounded).contradicts(coin(p)) is not None


def test_default_widths_statistically() -> None:
    for p in (Fraction(1, 4), Fraction(1, 3), Fraction(1, 10**6)):
        heads = int(bernoulli_vector(p, 1_000_000, ReplayedBits(1)).sum())
        assert statistics.binomial(heads, 1_000_000, float(p)) > statistics.FALSE_ALARM
    heads = int(bernoulli_vector(Fraction(1, 3), 1_000_000, ReplayedBits(2)).sum())
    for wrong in (Fraction(9, 30), Fraction(11, 30)):
        assert statistics.binomial(heads, 1_000_000, float(wrong)) < statistics.FALSE_ALARM


def test_types_and_sizes() -> None:
    assert bernoulli_vector(Fraction(1, 3), 7).dtype == np.bool_
    assert bernoulli_vector(Fraction(1, 3), 0).shape == (0,)
    assert bernoulli(1) is True
    assert bernoulli(0, system_bits()) is False


@pytest.mark.parametrize("wrong", [0.5, float("nan"), True, "1/2", None, Fraction(-1, 2), Fraction(3, 2)])
def test_bad_probabilities_are_refused(wrong: object) -> None:
    with pytest.raises(InputError, match="probability"):
        bernoulli(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="probability"):
        bernoulli_vector(wrong, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [-1, 2.0, True, None])
def test_bad_counts_are_refused(wrong: object) -> None:
    with pytest.raises(InputError, match="count"):
        bernoulli_vector(Fraction(1, 2), wrong)  # type: ignore[arg-type]
