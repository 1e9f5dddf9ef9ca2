"""Votes: the exact law by walking every choice, the claimed likelihood ratio by enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from oracles import statistics
from oracles.choice_tree import walk
from scipy import stats

from holdfast.errors import InputError
from holdfast.mechanisms.votes import FLIP, round_randomly, unbiased, vote, votes
from holdfast.noise.subset import with_replacement
from holdfast.privacy import events, pure, zcdp

FLIPS = [Fraction(1, 4), Fraction(3, 8), Fraction(1, 16)]


def law_of_ones(truths: list[bool], flip: Fraction) -> dict[int, Fraction]:
    """The number of ones, convolved by hand."""
    law = {0: Fraction(1)}
    for truth in truths:
        one = 1 - flip if truth else flip
        law = {
            ones: law.get(ones, Fraction(0)) * (1 - one) + law.get(ones - 1, Fraction(0)) * one
            for ones in range(len(law) + 1)
        }
    return law


@pytest.mark.parametrize(
    ("truths", "flip"),
    [
        ([True, False, True], FLIP),
        *(
            (truths, flip)
            for flip in FLIPS[1:]
            for truths in ([True], [False], [True, False], [True, True, False])
        ),
    ],
)
def test_the_law_is_exact(truths: list[bool], flip: Fraction) -> None:
    walked = walk(lambda bits: votes(np.array(truths), flip=flip, bits=bits), floor=Fraction(1, 2**40))
    assert walked.leftover == 0
    expected = law_of_ones(truths, flip)
    assert {ones: p for ones, p in walked.probabilities.items() if p} == {
        o: p for o, p in expected.items() if p
    }


def test_one_vote_is_the_same_law() -> None:
    for truth in (True, False):
        assert walk(lambda bits, t=truth: vote(t, bits)).probabilities == {
            truth: Fraction(3, 4),
            not truth: Fraction(1, 4),
        }


@pytest.mark.parametrize("levels", [3, 4, 10])
def test_values_are_rounded_to_bits_with_their_mean(levels: int) -> None:
    for value in range(levels + 1):
        walked = walk(lambda bits, v=value: bool(round_randomly(np.array([v]), levels, bits)[0]))
        assert walked.probabilities.get(True, Fraction(0)) == Fraction(value, levels)


def law_of_answer(table: list[bool], draws: int, flip: Fraction) -> dict[int, Fraction]:
    """The whole mechanism: the walked law of the drawn rows, then the law of their votes."""
    law: dict[int, Fraction] = {}
    drawn = walk(lambda bits: tuple(with_replacement(len(table), draws, bits)), floor=Fraction(1, 2**40))
    assert drawn.leftover == 0
    for ids, chance in drawn.probabilities.items():
        for ones, p in law_of_ones([table[i] for i in ids], flip).items():  # type: ignore[union-attr]
            law[ones] = law.get(ones, Fraction(0)) + chance * p
    return law


def worst_ratio(rows: int, draws: int, flip: Fraction) -> float:
    """The largest log-likelihood ratio between neighbouring tables, from the exact law of the answer."""
    worst = 0.0
    for ones in range(rows):
        first, second = (
            law_of_answer([True] * (ones + d) + [False] * (rows - ones - d), draws, flip) for d in (1, 0)
        )
        worst = max(worst, *(abs(math.log(first[outcome] / second[outcome])) for outcome in first))
    return worst


@pytest.mark.parametrize(
    ("rows", "draws", "flip"), [(3, 1, FLIP), (5, 1, FLIP), (3, 2, FLIP), (4, 1, Fraction(3, 8))]
)
def test_neighbours_differ_by_exactly_what_is_claimed(rows: int, draws: int, flip: Fraction) -> None:
    claimed = pure(events.Votes(rows, draws, flip)).epsilon
    measured = worst_ratio(rows, draws, flip)
    assert measured <= claimed
    assert measured == pytest.approx(claimed, rel=1e-9)  # attained when all rows say no


def test_half_the_flips_are_caught() -> None:
    """The broken twin flips with probability a/2 and claims a."""
    assert worst_ratio(4, 1, FLIP / 2) > pure(events.Votes(4, 1, FLIP)).epsilon


def test_zcdp_of_a_vote_by_renyi_divergences() -> None:
    for rows in (3, 10, 1000):
        shift, a = 0.5 / rows, 0.25
        claimed = zcdp(events.Votes(rows, 1, FLIP)).rho
        for p in (a, 0.5, 0.75 - shift):
            for alpha in (1.01, 2.0, 10.0, 100.0):
                for x, y in ((p, p + shift), (p + shift, p)):
                    total = x**alpha * y ** (1 - alpha) + (1 - x) ** alpha * (1 - y) ** (1 - alpha)
                    assert math.log(total) / (alpha - 1) <= alpha * claimed * (1 + 1e-9)


def test_the_estimate_is_unbiased_and_binomial() -> None:
    draw = np.random.default_rng(5)
    truths = draw.random(1_000_003) < 0.3
    for flip in FLIPS:
        ones = votes(truths, flip=flip)
        p = float(flip) + (1 - 2 * float(flip)) * truths.mean()
        spread = math.sqrt(float(flip * (1 - flip)) / len(truths))
        assert abs(ones / len(truths) - p) < 6.2 * spread
        assert unbiased(ones, len(truths), flip) == pytest.approx(truths.mean(), abs=20 * spread)


def test_counts_of_ones_have_the_right_spread() -> None:
    truths = np.zeros(20, dtype=bool)
    counts = np.bincount([votes(truths) for _ in range(20_000)], minlength=21)
    right = stats.binom.pmf(range(21), 20, 0.25)
    assert statistics.chi_square(counts, right) > statistics.FALSE_ALARM
    for wrong in (0.225, 0.275):
        assert statistics.chi_square(counts, stats.binom.pmf(range(21), 20, wrong)) < statistics.FALSE_ALARM


@pytest.mark.parametrize("flip", [Fraction(1, 3), Fraction(1, 2), Fraction(0), Fraction(3, 4), 0.25, None])
def test_other_flip_probabilities_are_refused(flip: object) -> None:
    with pytest.raises(InputError):
        votes(np.array([True]), flip=flip)  # type: ignore[arg-type]


def test_no_votes_beyond_the_last_one_are_counted() -> None:
    for count in range(1, 20):
        most = max(votes(np.ones(count, dtype=bool)) for _ in range(200))
        assert most <= count


def test_enumeration_agrees_on_pairs() -> None:
    for truths in itertools.product([False, True], repeat=2):
        law = law_of_ones(list(truths), FLIP)
        assert sum(law.values()) == 1
        mean = sum(ones * p for ones, p in law.items())
        assert mean == sum(Fraction(3, 4) if t else Fraction(1, 4) for t in truths)
