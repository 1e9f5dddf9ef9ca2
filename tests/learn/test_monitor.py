"""From sample to population: widths against simulation; the monitor on mechanisms that overfit or do not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from oracles.statistics import FALSE_ALARM
from scipy import stats

from holdfast import learn
from holdfast.errors import InputError
from holdfast.mechanisms import exponential


def test_one_query_and_a_family() -> None:
    assert learn.estimation_width(1000) == pytest.approx(math.sqrt(math.log(40) / 2000))
    draw = np.random.default_rng(0)
    n, k = 200, 50
    means = draw.binomial(n, 0.5, (2000, k)) / n
    worst = np.abs(means - 0.5).max(axis=1)
    assert np.mean(worst > learn.family_width(n, k)) <= 0.05
    assert np.mean(worst > learn.estimation_width(n)) > 0.05  # the twin forgets the union


def test_a_memoriser_is_perfect_and_worthless() -> None:
    draw = np.random.default_rng(1)
    sample, fresh = draw.random(100), draw.random(100)
    h = learn.Memoriser(sample)
    assert h(sample).mean() == 1.0
    assert h(fresh).mean() == 0.0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_expected_gap_is_attained_by_subset_selection(epsilon: float) -> None:
    """One row, uniform over N cells; the mechanism tells a set of k cells, e^epsilon times likelier with the row
    inside, and h is that set: h(P) = k/N, and Pr[row inside] = k e^epsilon/(k e^epsilon + N - k)."""
    N, r = 5000, math.exp(epsilon)
    best = max(k * r / (k * r + N - k) - k / N for k in range(1, N))
    assert best <= learn.expected_gap(epsilon) + 1e-12
    assert best == pytest.approx(learn.expected_gap(epsilon), rel=1e-3)
    assert learn.expected_gap(epsilon) < math.exp(epsilon) - 1  # the lecture's form


def most_frequent(rows: Any, epsilon: float) -> Any:
    """The exponential mechanism over 32 cells: the fullest one, as a query."""
    counts = np.bincount((rows * 32).astype(int), minlength=32)
    cell = exponential(counts, sensitivity=1, epsilon=epsilon)
    return lambda x: ((np.asarray(x) * 32).astype(int) == cell).astype(float)


def test_likely_gap_covers() -> None:
    draw = np.random.default_rng(2)
    gaps = []
    for _ in range(300):
        rows = draw.random(200)
        h = most_frequent(rows, 0.2)
        gaps.append(abs(float(h(rows).mean()) - 1 / 32))
    bound = learn.likely_gap(200, 0.2, confidence=0.9)
    assert sum(gap > bound for gap in gaps) <= stats.binom.ppf(1 - FALSE_ALARM, 300, 0.1)
    assert bound < 1
    wide = learn.likely_gap(10_000, 0.05, 1e-9)
    assert learn.expected_gap(0.05) < wide < 0.1
    assert learn.likely_gap(10_000, 0.1, 1e-9) > wide


def test_the_monitor_exposes_the_overfitting_one_only() -> None:
    draw = np.random.default_rng(3)
    grid = (np.arange(3200) + 0.5) / 3200
    monitor = learn.Monitor(draw.random, lambda h: float(np.mean(h(grid))), rows=400, runs=12, repetitions=30)
    honest = monitor.run(lambda rows: most_frequent(rows, 0.1), epsilon=0.1)
    cheat = monitor.run(lambda rows: learn.Memoriser(rows), epsilon=0.1)
    assert not honest.exposed
    assert cheat.exposed
    assert cheat.worst == pytest.approx(1.0)
    assert "EXPOSED" in str(cheat)
    assert "as a private one would" in str(honest)
    assert honest.allowed == pytest.approx(math.tanh((0.1 + 0.1) / 4))


def test_the_monitor_finds_what_the_mean_hides() -> None:
    """Overfits in one run of eight: invisible on average at this margin, plain once the worst is chosen."""
    draw = np.random.default_rng(4)

    def sometimes(rows: Any) -> Any:
        return learn.Memoriser(rows) if draw.random() < 1 / 8 else lambda x: np.full(len(x), 0.5)

    def mean(h: Any) -> float:
        return 0.0 if isinstance(h, learn.Memoriser) else 0.5

    alone = learn.Monitor(draw.random, mean, rows=2000, runs=1, repetitions=40)
    many = learn.Monitor(draw.random, mean, rows=2000, runs=40, repetitions=40)
    assert not alone.run(sometimes, epsilon=0.1).exposed
    assert many.run(sometimes, epsilon=0.1).exposed
    assert many.selection_loss() < 0.1


def test_bad_input_is_refused() -> None:
    for bad in (0, -1.0, math.nan, True):
        with pytest.raises(InputError):
            learn.expected_gap(bad)
    with pytest.raises(InputError):
        learn.likely_gap(10, 1.0, delta=1.0)
    with pytest.raises(InputError):
        learn.family_width(0, 1)
    with pytest.raises(InputError):
        learn.Monitor(lambda n: np.zeros(n), lambda h: 0.0, rows=0)
    monitor = learn.Monitor(lambda n: np.zeros(n), lambda h: 0.0, rows=5, runs=1, repetitions=1)
    with pytest.raises(InputError, match="one number for each row"):
        monitor.run(lambda rows: lambda x: np.zeros(3), epsilon=1.0)
