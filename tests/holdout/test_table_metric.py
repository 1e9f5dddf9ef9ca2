"""Metrics of a whole table: against the textbook on exact tables, and bounded whatever the noise did."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as textbook

from holdfast.errors import BudgetError, InputError
from holdfast.holdout import ReusableHoldout
from holdfast.holdout.metric import METRICS, Metric, auc, calibration_error, f1, ndcg, rmse, top_k
from holdfast.holdout.table_metric import AreaUnderCurve, MacroF1, share_between
from holdout.climbing import METRICS as METERED
from holdout.climbing import climb

pytestmark = pytest.mark.usefixtures("replayed_noise")
DRAW = np.random.default_rng(6)
ROWS = 30_000
TWO = (DRAW.random(ROWS) < 0.4).astype(np.int64)
SCORES = np.clip(0.3 * TWO + 0.7 * DRAW.random(ROWS), 0.0, 1.0)
FIVE = DRAW.integers(0, 5, ROWS)
SAID = np.where(DRAW.random(ROWS) < 0.7, FIVE, DRAW.integers(0, 5, ROWS))
NAMES = np.array(["ape", "bee", "cat", "dog", "elk"])


def exact(metric: Metric, labels: np.ndarray, said: np.ndarray) -> tuple[float, float, float]:
    """What the metric says of the table without noise."""
    table, numbers = metric.table, np.searchsorted(np.unique(labels), labels)
    assert table is not None
    classes = len(np.unique(labels))
    places, values = table.fall(said, numbers, classes)
    held = np.bincount(places, weights=values, minlength=table.cells(classes)) / len(labels)
    return table.read(held, lambda norm: 0.0)


def test_exact_tables_say_what_the_textbook_says() -> None:
    value, low, high = exact(auc(1000), TWO, SCORES)
    truth = textbook.roc_auc_score(TWO, SCORES)
    assert low <= truth <= high
    assert value == pytest.approx(truth, abs=1e-3)
    assert high - low < 0.003
    for name, said in (("balanced-accuracy", textbook.balanced_accuracy_score(FIVE, SAID)),
                       ("macro-f1", textbook.f1_score(FIVE, SAID, average="macro"))):  # fmt: skip
        value, low, high = exact(METRICS[name], FIVE, SAID)
        assert value == pytest.approx(low) == pytest.approx(high) == pytest.approx(said)
    bins = np.minimum((SCORES * 10).astype(int), 9)
    truth = sum(abs(np.sum((TWO - SCORES)[bins == b])) for b in range(10)) / ROWS
    assert exact(calibration_error(10), TWO, SCORES)[0] == pytest.approx(truth)


@pytest.mark.parametrize(
    ("metric", "labels", "said", "truth"),
    [
        (auc(10), TWO, SCORES, textbook.roc_auc_score(TWO, SCORES)),
        (auc(8), TWO, np.column_stack([1 - SCORES, SCORES]), textbook.roc_auc_score(TWO, SCORES)),
        (METRICS["calibration-error"], TWO, SCORES, exact(calibration_error(10), TWO, SCORES)[0]),
        (METRICS["balanced-accuracy"], NAMES[FIVE], NAMES[SAID], textbook.balanced_accuracy_score(FIVE, SAID)),
        (METRICS["macro-f1"], FIVE, SAID, textbook.f1_score(FIVE, SAID, average="macro")),
        (f1("cat"), NAMES[FIVE], NAMES[SAID], textbook.f1_score(FIVE == 2, SAID == 2)),
        (METRICS["f1"], TWO, (SCORES > 0.5).astype(int), textbook.f1_score(TWO, SCORES > 0.5)),
        (rmse(1.0), TWO, SCORES, math.sqrt(np.mean((TWO - SCORES) ** 2))),
        (METRICS["absolute-error"], TWO, SCORES, np.mean(np.abs(TWO - SCORES))),
        (top_k(2), FIVE, np.eye(5)[SAID] + 0.1 * np.eye(5)[FIVE], 1.0),
    ],
)  # fmt: skip
def test_an_interval_holds_the_score_of_the_rows_themselves(
    metric: Metric, labels: Any, said: Any, truth: float
) -> None:
    """The rows' own score is within the sampling error of the population's, far inside these widths."""
    with ReusableHoldout(labels, queries=60, mode="gaussian") as guarded:
        for _ in range(3):
            answer = guarded.score(said, metric=metric)
            assert answer.low <= truth <= answer.high
            assert answer.high - answer.low < 0.75
            assert answer.low <= answer.value <= answer.high
        assert guarded.looks_used == 3 * metric.looks


def noisy_reads(metric: Metric, labels: np.ndarray, said: np.ndarray, shrink: float) -> int:
    """How often in 300 draws of Gaussian noise on the cells the interval misses, with reach `shrink` times 4 sigma."""
    table, missed, draw = metric.table, 0, np.random.default_rng(3)
    assert table is not None
    truth, _, _ = exact(metric, labels, said)
    classes = len(np.unique(labels))
    places, values = table.fall(said, np.searchsorted(np.unique(labels), labels), classes)
    held = np.bincount(places, weights=values, minlength=table.cells(classes)) / len(labels)
    for _ in range(300):
        noisy = held + draw.normal(0, 0.004, len(held))
        _, low, high = table.read(noisy, lambda norm: shrink * 4 * norm * 0.004)
        missed += not low - 1e-9 <= truth <= high + 1e-9
    return missed


@pytest.mark.parametrize("name", ["calibration-error", "balanced-accuracy", "macro-f1"])
def test_bounds_hold_while_every_sum_is_within_its_reach(name: str) -> None:
    """And fail (the broken twin) with a tenth of the reach."""
    labels, said = (TWO, SCORES) if name == "calibration-error" else (FIVE, SAID)
    assert noisy_reads(METRICS[name], labels, said, 1.0) == 0
    assert noisy_reads(METRICS[name], labels, said, 0.02) > 30


def test_the_area_is_bracketed_by_the_bands_and_its_twin_is_not() -> None:
    """The exact area of a table with many bins lies inside the interval of the same rows in few noisy bins."""
    truth, draw = textbook.roc_auc_score(TWO, SCORES), np.random.default_rng(2)
    table = AreaUnderCurve(60, 0.0, 1.0)
    places, values = table.fall(SCORES, TWO, 2)
    held = np.bincount(places, weights=values, minlength=120) / ROWS
    inside = [0, 0]
    for _ in range(60):
        noisy = held + draw.normal(0, 0.002, 120)
        for twin, shrink in enumerate((1.0, 0.0)):
            value, low, high = table.read(noisy, lambda norm, shrink=shrink: shrink * 4 * norm * 0.002)  # type: ignore[misc]
            inside[twin] += low <= truth <= high
            assert 0 <= low <= 1
            assert 0 <= high <= 1
            assert abs(value - truth) < 0.1
    assert inside[0] == 60
    assert inside[1] < 50


def test_a_share_of_next_to_nothing_is_anything() -> None:
    assert share_between(0.01, 0.02, 0.03) == (0.0, 1.0)
    assert share_between(0.3, -0.1, 0.03) == (0.0, 1.0)
    low, high = share_between(0.3, 0.6, 0.03)
    assert (low, high) == pytest.approx((0.45, 0.55))


def test_an_empty_class_says_nothing_about_itself() -> None:
    """A class without rows in the population has no recall: its part of the mean is [0,1]."""
    cells = np.zeros(3 * 4)
    cells[0] = 1.0
    value, low, high = MacroF1().read(cells, lambda norm: 0.001)
    assert low <= value <= high
    assert high - low > 0.6


def test_several_outputs_and_rankings_and_weights() -> None:
    outputs = DRAW.random((ROWS, 3))
    said = np.clip(outputs + DRAW.normal(0, 0.3, outputs.shape), 0, 1)
    with ReusableHoldout(outputs, metric="squared-error", queries=20) as guarded:
        answer = guarded.score(said)
        assert answer.low <= np.mean((outputs - said) ** 2) <= answer.high
        for wrong in (said[:, 0], said[:, :2], said[:-1]):
            with pytest.raises(InputError, match="prediction"):
                guarded.score(wrong)
        with pytest.raises(InputError, match="one column"):
            guarded.score(said, metric="auc")
        assert guarded.looks_used == 1
    relevance = DRAW.integers(0, 4, (5000, 8))
    relevance[DRAW.random(relevance.shape) < 0.2] = -1
    scores = relevance + DRAW.normal(0, 1, relevance.shape)
    truth = textbook.ndcg_score(np.maximum(relevance, 0), np.where(relevance < 0, -99.0, scores), k=5)
    with ReusableHoldout(relevance, metric=ndcg(5), queries=20) as guarded:
        answer = guarded.score(scores)
        assert answer.low <= truth <= answer.high
        assert abs(answer.value - truth) < 0.05
    weights = DRAW.random(ROWS) * 5
    with ReusableHoldout(FIVE, queries=20) as guarded:
        answer = guarded.score(SAID, sample_weight=weights, most_weight=5.0)
        assert answer.low <= np.average(SAID == FIVE, weights=weights) <= answer.high
        assert guarded.looks_used == 2


BAD: list[tuple[str, Any, Any, dict[str, Any]]] = [
    ("length", TWO, SCORES[:-1], {"metric": "auc"}),
    ("shape", TWO, SCORES[:, None].repeat(3, 1), {"metric": "auc"}),
    ("type", TWO, np.array(["a"] * ROWS), {"metric": "auc"}),
    ("NaN", TWO, np.where(np.arange(ROWS) == 7, np.nan, SCORES), {"metric": "brier"}),
    ("class", FIVE, np.where(np.arange(ROWS) == 7, 9, SAID), {"metric": "accuracy"}),
    ("class", NAMES[FIVE], np.where(np.arange(ROWS) == 7, "fox", NAMES[SAID]), {"metric": "macro-f1"}),
    ("sum", FIVE, np.full((ROWS, 5), 0.3), {"metric": "log-loss"}),
    ("chance", TWO, SCORES + 0.5, {"metric": "brier"}),
    ("weights", TWO, TWO, {"sample_weight": np.full(ROWS, 2.0)}),
    ("weights", TWO, TWO, {"sample_weight": np.full(ROWS, np.nan)}),
    ("weights", TWO, TWO, {"sample_weight": np.ones(5)}),
    ("fit", FIVE, SCORES, {"metric": "auc"}),
    ("fit", TWO, SCORES, {"metric": "ndcg-10"}),
    ("empty class", np.zeros(ROWS, dtype=int), SCORES, {"metric": "auc"}),
    ("empty class", NAMES[FIVE], NAMES[SAID], {"metric": f1("fox")}),
]


@pytest.mark.parametrize(
    ("labels", "said", "asked"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_what_does_not_fit_is_refused_before_a_look(labels: Any, said: Any, asked: dict[str, Any]) -> None:
    with ReusableHoldout(labels, queries=20, mode="gaussian") as guarded:
        with pytest.raises(InputError) as refused:
            guarded.score(said, **asked)
        assert guarded.looks_used == 0
        assert "fox" not in str(refused.value)


@pytest.mark.parametrize("wrong", [lambda: auc(1), lambda: auc(10, low=1, high=0), lambda: calibration_error(1.5),
                                   lambda: top_k(0), lambda: rmse(-1.0), lambda: ndcg(0)])  # type: ignore[arg-type]  # fmt: skip
def test_a_declaration_that_makes_no_sense_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError):
        wrong()


def test_tables_take_gaussian_noise_and_four_looks() -> None:
    with ReusableHoldout(TWO, queries=6, mode="votes") as by_votes:
        with pytest.raises(InputError, match="mode='gaussian'"):
            by_votes.score(SCORES, metric="auc")
        assert by_votes.looks_used == 0
    with ReusableHoldout(TWO, queries=6, mode="gaussian") as guarded:
        guarded.score(SCORES, metric="auc")
        assert guarded.looks_left == 2
        with pytest.raises(BudgetError):
            guarded.score(SCORES, metric="auc")
        with pytest.raises(InputError, match="a mean over rows"):
            guarded.check(0.8, SCORES, metric="auc")
        guarded.score((SCORES > 0.5).astype(int))
        assert guarded.looks_used == 5


@pytest.mark.parametrize("name", METERED)
def test_scores_hold_where_answers_chose_the_model(name: str) -> None:
    """Ten analysts who put together the models that scored well, on labels that nothing predicts; `evidence/metrics.py`
    plays two hundred. A quarter of the width is too little (the twin), unless the metric is a function of a table."""
    case = METERED[name]
    found = [climb(case, np.random.default_rng([7, run]), looks=13) for run in range(10)]
    assert not sum(one.false for one in found)
    if case.kind.table is None and "guesses" not in name:
        assert sum(one.narrow for one in found) > 2


def test_an_ordinary_holdout_is_fooled() -> None:
    found = [climb(METERED["accuracy"], np.random.default_rng([7, run]), looks=81) for run in range(3)]
    assert sum(one.ordinary for one in found) == 3
