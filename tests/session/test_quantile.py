"""The ends of a quantile hold it, also where few rows are selected or little is paid."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from session.numbers import open_rows

from holdfast.session.quantile import select_bins


@pytest.mark.usefixtures("replayed_noise")
@pytest.mark.parametrize("selected", [0, 1, 10, 40, 200])
@pytest.mark.parametrize("rank", [Fraction(1, 2), Fraction(1, 1000), Fraction(99, 100)])
def test_quantile_ends_cover_when_few_rows_are_selected(selected: int, rank: Fraction) -> None:
    """Of 400 choices no more miss than are allowed; `test_without_outer_bins_the_ends_miss` is what they would be."""
    bins, allowed = 1024, 0.05
    epsilon = Fraction(1, 4)
    distance = math.ceil(2 * math.log(2 * (bins + 2) / allowed) / epsilon)
    counts = np.zeros(bins, dtype=np.int64)
    counts[300] = selected
    missed = 0
    for _ in range(400):
        _, first, last = select_bins(counts, rank, epsilon, distance, 10_000)
        missed += selected > 0 and not first <= 300 <= last
    assert missed <= 400 * allowed + 6 * math.sqrt(400 * allowed)


def test_without_outer_bins_the_ends_miss() -> None:
    """The broken twin: no bin scores 0 when the shifted target leaves the range."""
    counts = np.zeros(1024, dtype=np.int64)
    counts[300] = 10
    below = np.concatenate([[0], np.cumsum(counts)]).astype(float)
    epsilon, distance = 0.25, 80
    target = 5 - distance
    scores = -np.maximum(0, np.maximum(below[:-1] - target, target - below[1:]))
    weights = np.exp(epsilon / 2 * (scores - scores.max()))
    missed = weights[301:].sum() / weights.sum()
    assert missed > 0.2


def test_a_tiny_budget_for_a_quantile_is_answered_widely() -> None:
    table = open_rows(np.arange(1000))
    answer = table.session(epsilon=1.0, target="table").quantile("x", 0.123457, epsilon=1e-8)
    assert (answer.low, answer.high) == (0, 1023)
