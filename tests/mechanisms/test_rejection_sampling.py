"""The lecture's rejection sampler: the right law, and a running time that knows nothing of the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from oracles.choice_tree import walk
from oracles.selection_laws import exponential_law
from oracles.statistics import FALSE_ALARM, chi_square
from oracles.textbook_samplers import bernoulli_exp

from holdfast.errors import InputError
from holdfast.mechanisms.rejection_sampling import lecture_rejection_sampler
from holdfast.noise.bits import Bits, ReplayedBits

EPSILON = Fraction(2)


def sped_up(scores: Sequence[int], bits: Bits) -> int:
    """The usual speed-up: accept with exp(epsilon*(score - best)/2). Returns how many proposals it took."""
    proposals = 0
    while True:
        proposals += 1
        score = scores[bits.below(len(scores))]
        if bernoulli_exp(EPSILON / 2 * (max(scores) - score), bits):
            return proposals


@pytest.mark.parametrize("scores", [(0, 1), (3, 3), (0, 4)])
def test_choice_and_time_are_independent_and_time_is_geometric(scores: tuple[int, int]) -> None:
    walked = walk(
        lambda bits: (
            (d := lecture_rejection_sampler(scores, epsilon=EPSILON, bits=bits, width=2)).index,
            d.proposals,
        ),
        floor=2**-16,
    )
    law = exponential_law(scores, EPSILON / 2)
    truth = {(i, k): float(law[i]) * 0.5**k for i in (0, 1) for k in range(1, 40)}
    assert walked.leftover < 0.1
    assert walked.contradicts(truth) is None
    twin = {(i, k): float(law[i]) * 0.45 * 0.55 ** (k - 1) for i in (0, 1) for k in range(1, 40)}
    assert walked.contradicts(twin) is not None


def time_law(n: int, longest: int) -> list[float]:
    return [(1 - 1 / n) ** k / n for k in range(longest)] + [(1 - 1 / n) ** longest]


def test_the_time_is_the_same_for_neighbours_and_the_speed_up_tells_them_apart() -> None:
    first, second, n, longest = (0, 0, 0, 2), (0, 0, 0, 1), 4, 20
    for scores in (first, second):
        bits = ReplayedBits(11)
        took = [lecture_rejection_sampler(scores, epsilon=EPSILON, bits=bits).proposals for _ in range(2500)]
        counts = np.bincount(np.minimum(np.array(took) - 1, longest), minlength=longest + 1)
        assert chi_square(counts, time_law(n, longest)) > FALSE_ALARM
    means = []
    for scores in (first, second):
        bits = ReplayedBits(12)
        took = [sped_up(scores, bits) for _ in range(4000)]
        means.append(np.mean(took))
        expected = n / sum(math.exp(float(EPSILON) / 2 * (s - max(scores))) for s in scores)
        assert means[-1] == pytest.approx(expected, rel=0.1)
    assert means[0] > 1.3 * means[1], "the positive control must leak through its number of proposals"


def test_bad_parameters_are_refused() -> None:
    for bad in ({"epsilon": 0}, {"epsilon": math.nan}, {"epsilon": 1, "sensitivity": -1}):
        with pytest.raises(InputError):
            lecture_rejection_sampler([1, 2], **bad)
