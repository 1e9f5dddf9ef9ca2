"""The laws of the fast samplers, computed by walking their choice trees with tables shrunk to a few bits.

A table of 6-bit thresholds leaves much undecided, so these walks go through the exact path all the time; at
the default sizes it is taken once in 2**50 draws. The law may not depend on the sizes: that is checked here.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles import statistics, textbook_samplers
from oracles.choice_tree import Law as Walked
from oracles.choice_tree import walk

from holdfast.noise.bits import Bits, system_bits
from holdfast.noise.histogram import Histogram
from holdfast.noise.law import Law
from noise.truth import block_probabilities, gaussian_law, geometric_law, laplace_law, pairs, probabilities

NARROW = [
    laplace_law(Fraction(1, 3)),
    laplace_law(Fraction(1)),
    laplace_law(Fraction(5, 2)),
    gaussian_law(Fraction(1, 2)),
    gaussian_law(Fraction(3)),
    gaussian_law(Fraction(20)),
    geometric_law(Fraction(2)),
    geometric_law(Fraction(1, 5)),
]
WIDE = [laplace_law(Fraction(7)), gaussian_law(Fraction(20)), geometric_law(Fraction(1, 9))]


def one_draw(sampler: Histogram, floor: float = 2**-18) -> Walked:
    return walk(lambda bits: int(sampler.draw(1, bits)[0]), floor=floor)


@pytest.mark.parametrize("law", NARROW, ids=str)
def test_draws_of_narrow_laws(law: Law) -> None:
    sampler = Histogram(law, width=6, guide=3, blocks=64)
    assert sampler.shift == 0
    walked = one_draw(sampler)
    assert walked.leftover < 1e-3
    assert walked.contradicts(probabilities(law)) is None


def test_two_draws_are_independent() -> None:
    law = laplace_law(Fraction(1, 2))
    sampler = Histogram(law, width=3, guide=2, blocks=64)
    walked = walk(lambda bits: tuple(sampler.draw(2, bits).tolist()), floor=2**-18)
    assert walked.leftover < 0.01
    assert walked.contradicts(pairs(probabilities(law))) is None


@pytest.mark.parametrize("law", WIDE, ids=str)
def test_whole_proposals_of_wide_laws(law: Law) -> None:
    sampler = Histogram(law, width=4, guide=2, blocks=8, gate=2, fraction=3)
    assert sampler.shift
    walked = walk(lambda bits: tuple(sampler.propose(1, bits).tolist()), floor=2**-14)
    truth = probabilities(law)
    # The edge 0 is never thinned, so the chance of its block fixes the scale of all the others.
    scale = block_probabilities(law, 1 << sampler.shift)[0] / (1 << sampler.shift) / truth[0]
    proposals: dict[Hashable, float] = {(x,): p * scale for x, p in truth.items()}
    proposals[()] = 1 - sum(proposals.values())
    assert walked.leftover < 0.1
    assert walked.contradicts(proposals) is None


def test_rejected_proposals_are_drawn_again() -> None:
    law = gaussian_law(Fraction(2))
    sampler = Histogram(law, width=3, guide=2, blocks=4, gate=1, fraction=2)
    assert sampler.shift
    walked = one_draw(sampler, floor=2**-13)
    assert walked.leftover < 0.4
    assert walked.contradicts(probabilities(law)) is None


def test_neighbours_and_missing_rejection_are_caught() -> None:
    law = laplace_law(Fraction(5, 2))
    for factor in (Fraction(9, 10), Fraction(11, 10)):
        wrong = Histogram(laplace_law(Fraction(5, 2) * factor), width=6, guide=3, blocks=64)
        assert one_draw(wrong).contradicts(probabilities(law)) is not None
    unthinned = Histogram(law, width=4, guide=2, blocks=8)
    unthinned._rejection = KeepAll()  # type: ignore[assignment]
    assert unthinned.shift
    assert one_draw(unthinned).contradicts(probabilities(law)) is not None


class KeepAll:
    def keep(self, drawn: NDArray[np.int64], blocks: NDArray[np.int64], bits: Bits) -> NDArray[np.bool_]:
        return np.ones(drawn.size, dtype=np.bool_)


def test_the_textbook_agrees() -> None:
    walked = walk(lambda bits: textbook_samplers.geometric(Fraction(2, 3), bits), floor=1e-5)
    assert walked.leftover < 0.1
    assert walked.contradicts(probabilities(geometric_law(Fraction(2, 3)))) is None
    bits = system_bits()
    for law, textbook in (
        (laplace_law(Fraction(5, 2)), lambda: textbook_samplers.laplace(Fraction(5, 2), bits)),
        (gaussian_law(Fraction(20)), lambda: textbook_samplers.gaussian(Fraction(20), bits)),
    ):
        slow = np.array([textbook() for _ in range(3_000)])
        fast = Histogram(law).draw(1_000_000, bits)
        known = probabilities(law)
        truth = [known.get(x, 0.0) for x in range(-300, 301)]
        for draws in (slow, fast):
            counts = np.bincount(draws + 300, minlength=601)
            assert statistics.chi_square(counts, truth) > statistics.FALSE_ALARM
