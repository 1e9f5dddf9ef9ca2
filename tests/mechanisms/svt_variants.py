"""Six published sparse vectors, of which four are wrong: positive controls for auditors.

After Lyu, Su and Li, Understanding the sparse vector technique (2017), Algorithms 1 to 6, on the integers
with sensitivity 1. `run` is a mechanism: values in, a hashable sequence of answers out. `log_ratio` is the
exact log-ratio of one sequence of answers between two inputs.

    1  correct                                     4  question noise without the factor c
    2  correct, wasteful (Dwork and Roth)          5  no question noise, no cutoff
    3  tells the noisy value used in the test      6  no cutoff, question noise without c
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from oracles.sparse_vector_law import laplace, nothing, probability

from holdfast.noise.bits import Bits
from holdfast.noise.laplace import laplace as draw

Answers = tuple[bool | int, ...]


@dataclass(frozen=True)
class Variant:
    """Scales of the noises for (epsilon, c); None means that there is none."""

    number: int
    private: bool
    threshold: Fraction
    question: Fraction | None
    hits: int | None
    redraw: bool = False
    tells_value: bool = False


def variant(number: int, epsilon: Fraction, c: int) -> Variant:
    """One of the six, for this epsilon and this number of hits."""
    half = epsilon / 2
    match number:
        case 1:
            return Variant(1, True, 1 / half, 2 * c / half, c)
        case 2:
            return Variant(2, True, c / half, 2 * c / half, c, redraw=True)
        case 3:
            return Variant(3, False, 1 / half, c / half, c, tells_value=True)
        case 4:
            return Variant(4, False, 1 / (epsilon / 4), 1 / (3 * epsilon / 4), c)
        case 5:
            return Variant(5, False, 1 / half, None, None)
        case 6:
            return Variant(6, False, 1 / half, 1 / half, None)
    raise ValueError(number)


def run(v: Variant, values: Sequence[int], threshold: int = 0, bits: Bits | None = None) -> Answers:
    """The answers of the variant."""
    noisy, answers, hits = threshold + draw(v.threshold, bits), [], 0
    for value in values:
        tested = value + (0 if v.question is None else draw(v.question, bits))
        if tested < noisy:
            answers.append(False)
            continue
        answers.append(tested if v.tells_value else True)
        hits += 1
        if hits == v.hits:
            break
        if v.redraw:
            noisy = threshold + draw(v.threshold, bits)
    return tuple(answers)


def log_ratio(v: Variant, answers: Answers, first: Sequence[int], second: Sequence[int]) -> float:
    """ln(Pr[answers | first]/Pr[answers | second]), exact up to float sums; the threshold is 0."""
    p, q = (_probability(v, answers, values) for values in (first, second))
    if p == q == 0:
        return -math.inf
    return math.inf if q == 0 else math.log(p / q) if p else -math.inf


def worst_case(number: int, c: int) -> tuple[Answers, list[int], list[int]]:
    """A sequence of answers and two neighbouring inputs on which a wrong variant gives itself away."""
    match number:
        case 3:
            return (*[False] * 25, 0), [0] * 26, [1] * 25 + [0]
        case 5:
            return (False, True), [0, 1], [1, 0]
        case 6:
            return (*[False] * 12, *[True] * 12), [0] * 12 + [1] * 12, [1] * 12 + [0] * 12
    return (*[False] * (10 * c), *[True] * c), [0] * (10 * c) + [1] * c, [1] * (10 * c) + [0] * c


def _probability(v: Variant, answers: Answers, values: Sequence[int]) -> float:
    rho = laplace(v.threshold)
    nu = nothing() if v.question is None else laplace(v.question)
    if not v.tells_value:
        return probability(tuple(bool(a) for a in answers), values, 0, rho, nu, redraw=v.redraw)
    given = rho.mass.copy()
    for answer, value in zip(answers, values, strict=False):
        if answer is False:
            given *= 1 - nu.at_least(rho.support - value)
        else:
            exact = nu.mass[nu.support == answer - value]
            given *= np.where(rho.support <= answer, exact, 0.0)
    return float(given.sum())
