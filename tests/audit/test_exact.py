"""Exact laws: known closed forms, and twins that differ by a hair."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from oracles.textbook_samplers import bernoulli_exp

from holdfast.audit import exact_epsilon
from holdfast.noise.bernoulli import bernoulli
from holdfast.noise.bits import Bits
from holdfast.noise.subset import with_replacement


def coin(bit: bool, *, bits: Bits, truth: Fraction = Fraction(11, 20)) -> bool:
    return bit == bernoulli(truth, bits)


def vote(sample: tuple[int, ...], *, bits: Bits, flip: Fraction = Fraction(1, 4)) -> int:
    return sample[int(with_replacement(len(sample), 1, bits)[0])] ^ bernoulli(flip, bits)


def test_the_lecture_coin() -> None:
    audit = exact_epsilon(coin, False, True)
    assert audit.leftover == 0
    assert audit.epsilon == pytest.approx(math.log(11 / 9), abs=1e-15)
    assert str(audit).startswith("epsilon = 0.2006")


@pytest.mark.parametrize("rows", [2, 3, 10])
def test_one_vote_costs_what_theory_says_and_not_less(rows: int) -> None:
    flip = Fraction(1, 4)
    audit = exact_epsilon(vote, (0,) * rows, (0,) * (rows - 1) + (1,))
    assert audit.epsilon == pytest.approx(math.log(1 + (1 - 2 * flip) / (flip * rows)), abs=1e-14)
    twin = exact_epsilon(
        lambda s, bits: vote(s, bits=bits, flip=flip / 2), (0,) * rows, (0,) * (rows - 1) + (1,)
    )
    assert twin.epsilon > audit.epsilon + 0.1


def test_an_output_possible_on_one_side_only_is_infinitely_bad() -> None:
    audit = exact_epsilon(lambda bit, bits: bit * bits.below(3), 0, 1)
    assert audit.epsilon == math.inf
    assert audit.delta(5.0) == pytest.approx(2 / 3)


def test_delta_of_a_coin() -> None:
    audit = exact_epsilon(coin, False, True)
    assert audit.delta(0.0) == pytest.approx(0.1, abs=1e-15)
    assert audit.delta(math.log(11 / 9) + 1e-12) == 0.0


def test_leftover_mass_never_raises_epsilon() -> None:
    def cautious(bit: bool, bits: Bits) -> bool:
        return bit == bernoulli_exp(Fraction(1), bits)

    chance = math.exp(-1)
    truth = math.log((1 - chance) / chance)
    for tolerance in (Fraction(1, 10), Fraction(1, 1000), Fraction(1, 10**6)):
        audit = exact_epsilon(cautious, False, True, tolerance=tolerance)
        assert audit.leftover > 0
        assert audit.epsilon <= truth
        assert audit.delta(0.3) <= (1 - chance) - math.exp(0.3) * chance + 1e-15
    assert audit.epsilon == pytest.approx(truth, abs=1e-4)
