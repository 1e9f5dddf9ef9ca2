"""The private learner: exact scores, one row's influence, certified errors, and what is charged."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from oracles.statistics import FALSE_ALARM
from scipy import stats

import holdfast as hf
from holdfast import learn
from holdfast.errors import BudgetError, InputError
from holdfast.learn.finite_class import FiniteClass, Listed
from holdfast.noise.bits import ReplayedBits

CLASSES: dict[str, Any] = {
    "thresholds": learn.Thresholds([-1.0, 0.0, 0.5, 2.0], column=1),
    "stumps": learn.Stumps([[0.0, 1.0], [-1.0], [0.25, 0.5, 0.75]]),
    "conjunctions": learn.Conjunctions(3),
    "boxes": learn.Boxes([[-1.0, 0.0, 0.5, 1.0], [-2.0, 0.5, 3.0], [0.0, 1.0]]),
}


def sample(rows: int, seed: int) -> tuple[Any, Any]:
    draw = np.random.default_rng(seed)
    table = np.round(draw.normal(size=(rows, 3)) * 2) / 4  # many values fall on the edges
    table[draw.random((rows, 3)) < 0.05] = np.nan
    return table, draw.random(rows) < 0.5


def by_hand(hypotheses: Any, rows: Any, truth: Any) -> list[int]:
    table = np.where(np.isnan(rows), -np.inf, rows)
    return [int(np.count_nonzero(hypotheses.predict(i, table) != truth)) for i in range(hypotheses.size)]


@pytest.mark.parametrize("name", CLASSES)
def test_scores_are_exact(name: str) -> None:
    rows, truth = sample(200, 1)
    table = np.where(np.isnan(rows), -np.inf, rows)
    assert CLASSES[name].mistakes(table, truth).tolist() == by_hand(CLASSES[name], rows, truth)


def test_scores_that_forget_equality_are_caught() -> None:
    class Careless(learn.Thresholds):
        def predict(self, index: int, rows: Any) -> Any:
            above = rows[:, self.column] > self.values[index // 2]
            return above if index % 2 == 0 else ~above

    careless = Careless([-1.0, 0.0, 0.5, 2.0], column=1)
    rows, truth = sample(200, 1)
    table = np.where(np.isnan(rows), -np.inf, rows)
    assert careless.mistakes(table, truth).tolist() != by_hand(careless, rows, truth)


@pytest.mark.parametrize("name", CLASSES)
def test_descriptions_are_distinct(name: str) -> None:
    hypotheses = CLASSES[name]
    assert len({hypotheses.describe(i) for i in range(hypotheses.size)}) == hypotheses.size


@pytest.mark.parametrize("name", CLASSES)
def test_a_row_moves_every_score_by_at_most_one(name: str) -> None:
    rows, truth = sample(50, 2)
    table = np.where(np.isnan(rows), -np.inf, rows)
    scores = CLASSES[name].mistakes(table, truth)
    moved = 0
    for i in range(50):
        other, label = table.copy(), truth.copy()
        other[i], label[i] = table[(7 * i + 3) % 50], ~truth[i]
        step = np.abs(CLASSES[name].mistakes(other, label) - scores)
        assert step.max() <= 1
        moved = max(moved, int(step.max()))
    assert moved == 1  # a class that never moved would pass without being private


def test_the_choice_follows_the_exponential_law() -> None:
    truth = np.array([True] * 6 + [False] * 4)
    rows = np.zeros((10, 1))
    yes_and_no = FiniteClass([lambda r: np.ones(len(r)), lambda r: np.zeros(len(r))])
    bits = ReplayedBits(seed=3)
    draws = [yes_and_no.learn(rows, truth, epsilon=1.0, bits=bits).index for _ in range(4000)]
    wrong_rates = []
    for factor in (1.0, 0.8, 1.25):  # 4/5 of epsilon chooses; the neighbours must be told apart
        odds = math.exp(factor * 0.8 * (6 - 4) / 2)
        wrong_rates.append(stats.binomtest(draws.count(0), 4000, odds / (1 + odds)).pvalue)
    assert wrong_rates[0] > FALSE_ALARM
    assert max(wrong_rates[1:]) < 1e-3


@pytest.mark.parametrize("rows", [200, 5000])
def test_claims_hold_on_the_population(rows: int) -> None:
    """x uniform, y = [x >= 1/2] flipped with chance 0.1: err_P of [x >= t] is 0.1 + 0.8 |t - 1/2|."""
    cuts = np.arange(1, 64) / 64
    hypotheses = FiniteClass(learn.Thresholds(cuts))
    draw = np.random.default_rng(rows)
    failures = bare = 0
    for _ in range(200):
        x = draw.random(rows)
        y = (x >= 0.5) ^ (draw.random(rows) < 0.1)
        found = hypotheses.learn(x, y, epsilon=1.0, confidence=0.9)
        at = abs(cuts[found.index // 2] - 0.5) * 0.8 + 0.1
        truth = at if found.index % 2 == 0 else 1 - at
        failures += truth > found.error_bound or truth - 0.1 > found.excess
        bare += truth > found.error  # the twin: the measured error as if it were a bound
    assert failures <= stats.binom.ppf(1 - FALSE_ALARM, 200, 0.1)
    assert bare > stats.binom.ppf(1 - FALSE_ALARM, 200, 0.1)


def test_sample_sizes_are_the_corrected_ones() -> None:
    H, alpha, beta, eps = 1000, 0.1, 0.05, 1.0
    expected = max(
        8 * math.log(4 * H / beta) / alpha**2, 4 * (math.log(H) + math.log(2 / beta)) / (alpha * eps)
    )
    assert learn.agnostic_rows(H, within=alpha, epsilon=eps) == math.ceil(expected)
    lecture = 2 * math.log(4 * H / beta) / alpha**2  # slack alpha/2 in place of alpha/4
    assert learn.agnostic_rows(H, within=alpha, epsilon=eps) > 3 * lecture
    assert learn.realisable_rows(H, within=alpha, epsilon=eps) < learn.agnostic_rows(
        H, within=alpha, epsilon=eps
    )


def test_a_realisable_problem_of_that_size_is_learnt() -> None:
    hypotheses = FiniteClass(learn.Thresholds(np.arange(64) / 64))
    rows = learn.realisable_rows(hypotheses.size, within=0.1, epsilon=0.8)
    x = np.random.default_rng(5).random(rows)
    found = hypotheses.learn(x, x >= 0.25, epsilon=1.0, confidence=0.9, realisable=True)
    assert found.error_bound <= 0.1 + 1e-9
    assert abs(hypotheses.hypotheses.values[found.index // 2] - 0.25) <= 0.1  # type: ignore[attr-defined]


def test_a_session_is_charged_before_it_is_read() -> None:
    draw = np.random.default_rng(0)
    age = draw.integers(0, 100, 20_000)
    table = hf.open(
        {"age": age, "sick": (age >= 60) ^ (draw.random(20_000) < 0.05)},
        hf.Schema(age=hf.Integer(0, 99), sick=hf.Boolean()),
    )
    session = table.session(epsilon=1.0, queries=4)
    hypotheses = FiniteClass(learn.Thresholds(np.arange(1, 100)))
    found = hypotheses.learn_in(session, ["age"], "sick = true", epsilon=0.5)
    assert found.description == "x[0] >= 60"
    assert 0.5 - 1e-5 < session.spent <= 0.5
    assert 0.04 < found.error < 0.06 < found.error_bound < 0.2
    assert found.predict([[61], [5]]).tolist() == [True, False]

    def broken(*_: Any) -> Any:
        raise OSError("the disk is gone")

    session._source.scan = broken  # type: ignore[method-assign]
    with pytest.raises(OSError, match="gone"):
        hypotheses.learn_in(session, ["age"], "sick = true", epsilon=0.25)
    assert session.spent > 0.74
    with pytest.raises(BudgetError):
        hypotheses.learn_in(session, ["age"], "sick = true", epsilon=0.1)  # a fifth and a sixth claim


def test_bad_input_is_refused() -> None:
    good = FiniteClass(learn.Thresholds([0.0]))
    for epsilon in (0, -1.0, math.nan, True, "1"):
        with pytest.raises(InputError):
            good.learn([[1.0]], [1], epsilon=epsilon)  # type: ignore[arg-type]
    for rows, truth in (([], []), ([["a"]], [1]), ([[1.0]], [1, 0]), ([[1.0]], ["yes"])):
        with pytest.raises(InputError):
            good.learn(rows, truth, epsilon=1.0)  # type: ignore[arg-type]
    for make in (
        lambda: FiniteClass([]),
        lambda: learn.Thresholds([1.0, 0.0]),
        lambda: learn.Thresholds([math.nan]),
        lambda: learn.Conjunctions(True),
        lambda: learn.Boxes([[1.0]]),
        lambda: learn.Stumps([]),
    ):
        with pytest.raises(InputError):
            make()


def test_a_million_thresholds_are_one_pass() -> None:
    """Counted in work, not in seconds: no more than a few arrays of the size of the class are made."""
    import tracemalloc

    x = np.random.default_rng(1).random(10_000)
    hypotheses = FiniteClass(learn.Thresholds(np.linspace(0, 1, 500_000)))
    tracemalloc.start()
    found = hypotheses.learn(x, x >= 0.5, epsilon=1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert hypotheses.size == 1_000_000
    assert peak < 20 * 8 * hypotheses.size
    assert abs(hypotheses.hypotheses.values[found.index // 2] - 0.5) < 0.02  # type: ignore[attr-defined]


def test_functions_have_names() -> None:
    def always(rows: Any) -> Any:
        return np.ones(len(rows))

    assert Listed((always,)).describe(0) == "always"
