"""The six published variants: exact verdicts, so that the auditor's can be compared with them."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from oracles.sparse_vector_law import outcomes

from holdfast.noise.bits import ReplayedBits
from mechanisms.svt_variants import log_ratio, run, variant, worst_case

EPSILON, C = Fraction(1), 3


@pytest.mark.parametrize("number", [3, 4, 5, 6])
def test_the_wrong_ones_break_their_promise(number: int) -> None:
    answers, first, second = worst_case(number, C)
    assert max(abs(a - b) for a, b in zip(first, second, strict=True)) <= 1
    assert abs(log_ratio(variant(number, EPSILON, C), answers, first, second)) > EPSILON


@pytest.mark.parametrize("number", [1, 2])
def test_the_right_ones_keep_it_even_there(number: int) -> None:
    v = variant(number, EPSILON, C)
    for other in (4, 6):
        answers, first, second = worst_case(other, C)
        kept = answers[: [i for i, a in enumerate(answers) if a][C - 1] + 1]
        assert abs(log_ratio(v, kept, first, second)) <= EPSILON + 1e-9


@pytest.mark.parametrize("number", [1, 2])
def test_the_right_ones_keep_it_on_all_small_neighbours(number: int) -> None:
    v = variant(number, EPSILON, 1)
    for shift in product((-1, 0, 1), repeat=3):
        for answers in outcomes(3, 1):
            assert abs(log_ratio(v, answers, [0, 0, 0], list(shift))) <= EPSILON + 1e-9


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6])
def test_runs_follow_the_law(number: int) -> None:
    v, bits, values = variant(number, Fraction(4), 1), ReplayedBits(number), [0, 1]
    seen = [run(v, values, bits=bits) for _ in range(3000)]
    never = (False, False)
    rate = np.mean([answers == never for answers in seen])
    # log_ratio against itself is 0 wherever the answers are possible; the rate is compared by its own law.
    assert log_ratio(v, never, values, values) == 0
    from mechanisms.svt_variants import _probability

    expected = _probability(v, never, values)
    assert abs(rate - expected) < 6.2 * np.sqrt(expected * (1 - expected) / len(seen)) + 1e-9
