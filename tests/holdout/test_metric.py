"""Row values: on the grid, total, and on the scale that people expect."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from holdfast.errors import InputError
from holdfast.holdout import ReusableHoldout
from holdfast.holdout.fingerprint import fingerprint, labels_array
from holdfast.holdout.labels import Labels
from holdfast.holdout.metric import (
    GRID,
    METRICS,
    Metric,
    auc,
    calibration_error,
    f1,
    log_loss,
    metric_named,
    ndcg,
    on_grid,
    precision,
    recall,
    rmse,
    squared_error,
    top_k,
)
from holdfast.holdout.predictions import row_values

LABELS = np.array([1, 0, 1, 1, 0])


def mean(metric: Metric, predictions: list[float]) -> float:
    values = on_grid(metric.row_values[0](np.array(predictions), LABELS), 5, metric.worst[0])
    raw = float(np.mean(values)) if values.dtype == np.bool_ else float(np.mean(values)) / GRID
    return metric.low + (metric.high - metric.low) * raw


def test_metrics_are_what_they_are_called() -> None:
    chances = [0.9, 0.2, 0.6, 0.4, 0.5]
    assert mean(METRICS["accuracy"], [1, 0, 0, 1, 1]) == pytest.approx(3 / 5)
    assert mean(METRICS["error"], [1, 0, 0, 1, 1]) == pytest.approx(2 / 5)
    brier = np.mean((np.array(chances) - LABELS) ** 2)
    assert mean(METRICS["brier"], chances) == pytest.approx(brier, abs=1e-5)
    exact = -np.mean(np.log(np.where(LABELS == 1, chances, 1 - np.array(chances))))
    assert mean(log_loss(), chances) == pytest.approx(exact, abs=5e-5)
    assert mean(squared_error(4.0), [1, 2, 1, 4, 0]) == pytest.approx((0 + 4 + 0 + 4 + 0) / 5)


def test_log_loss_is_clipped_where_it_would_be_infinite() -> None:
    assert mean(log_loss(3.0), [0, 1, 0, 0, 1]) == pytest.approx(3.0, abs=1e-4)


@given(arrays(np.float64, 6, elements=st.floats(allow_nan=True, allow_infinity=True)))
def test_any_number_becomes_an_even_step_of_the_grid(values: np.ndarray) -> None:
    steps = on_grid(values, 6, 1)
    assert steps.dtype == np.int64
    assert ((steps >= 0) & (steps <= GRID) & (steps % 2 == 0)).all()
    inside = np.isfinite(values) & (values >= 0) & (values <= 1)
    assert (np.abs(steps[inside] / GRID - values[inside]) <= 1 / GRID).all()
    assert (steps[np.isnan(values)] == GRID).all()
    assert (on_grid(values, 6, 0)[np.isnan(values)] == 0).all()


@pytest.mark.parametrize("name", ["brier", "log-loss", "squared-error", "value", "accuracy", "precision"])
@given(predictions=arrays(np.float64, 5, elements=st.floats(allow_nan=True, allow_infinity=True)))
def test_no_prediction_raises(name: str, predictions: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        for values, worst in zip(METRICS[name].row_values, METRICS[name].worst, strict=True):
            assert on_grid(values(predictions, LABELS), 5, worst).shape == (5,)


def test_unknown_metrics_and_wrong_shapes_are_refused() -> None:
    for wrong in ("acuracy", 3):
        with pytest.raises(InputError):
            metric_named(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one number for each"):
        on_grid(np.zeros((5, 2)), 5, 1)
    for wrong_bound in (0.0, -1.0, math.nan, True):
        with pytest.raises(InputError):
            log_loss(wrong_bound)


def test_a_fingerprint_follows_the_labels_and_nothing_else() -> None:
    labels = np.array([0, 1, 1, 0])
    mark = fingerprint(labels_array(labels))
    assert mark == fingerprint(labels_array(labels.astype(np.int8))) == fingerprint(labels_array(labels == 1))
    others = ([0, 1, 1, 1], [1, 1, 0, 0], [0.0, 1.0, 1.0, 0.0], ["0", "1", "1", "0"], [0, 1, 1])
    assert len({mark, *(fingerprint(labels_array(other)) for other in others)}) == 6
    assert fingerprint(labels_array(["a", "bc"])) != fingerprint(labels_array(["ab", "c"]))


@pytest.mark.parametrize("wrong", [[], [["a", "b"]], [[[1]]], [1.0, math.nan], [1 + 2j], 3])
def test_labels_of_the_wrong_kind_are_refused(wrong: object) -> None:
    with pytest.raises(InputError):
        labels_array(wrong)  # type: ignore[arg-type]


def worst_end(metric: Metric, worst: tuple[int, ...]) -> bool:
    """Whether predictions that are no numbers get the worst score there is."""
    parts = [
        on_grid(np.full(5, np.nan), 5, side).mean() / GRID
        for _, side in zip(metric.row_values, worst, strict=True)
    ]
    score = parts[0] if len(parts) == 1 else parts[0] / (parts[0] + parts[1])
    return bool(score == (0.0 if metric.greater_is_better else 1.0))


def none_after_two(rows: int) -> Any:
    """A function that says 1 of the rows that it is tried on, and nothing of the others."""
    return lambda ids: np.where(ids < 2, 1.0, np.nan)


ROW_WISE = [metric for metric in METRICS.values() if metric.row_values and metric.wants != "rankings"]


@pytest.mark.parametrize("metric", ROW_WISE, ids=lambda metric: metric.name)
def test_no_number_is_the_worst_whatever_the_direction(metric: Metric) -> None:
    assert worst_end(metric, metric.worst)
    with pytest.raises(InputError, match="finite"):
        row_values([np.nan] * 5, Labels(LABELS), metric)
    said = row_values(none_after_two(5), Labels(LABELS), metric)[0](None)[2:]
    if not metric.parts:
        assert (said / (1 if said.dtype == np.bool_ else GRID) == metric.worst[0]).all()


def test_no_number_as_one_would_be_caught() -> None:
    """The broken twin counts it as 1 always, the best where greater is better."""
    assert not worst_end(METRICS["value"], (1,))


def test_a_submission_of_no_numbers_does_not_lead() -> None:
    labels = np.zeros(20_000, dtype=int)
    with ReusableHoldout(labels, metric="value", queries=5) as holdout:
        assert holdout.score(none_after_two(20_000)).value < 0.2


@pytest.mark.parametrize(
    ("said", "metric"),
    [
        ("top_k(3)", top_k(3)), ("f1('spam')", f1("spam")), ('recall("no")', recall("no")), ("f1(pos_label=2)", f1(2)),
        ("auc(20, low=-1, high=1)", auc(20, low=-1, high=1)), ("rmse(10.0)", rmse(10)), ("log-loss(2)", log_loss(2)),
        ("calibration_error(5)", calibration_error(5)), ("ndcg(5)", ndcg(5)),
    ],
)  # fmt: skip
def test_parameters_are_given_as_text(said: str, metric: Metric) -> None:
    named = metric_named(said)
    assert (named.terms, named.table, named.label, named.wants) == (
        metric.terms, metric.table, metric.label, metric.wants
    )  # fmt: skip
    said_again = metric_named(named.name) if "(" in named.name else named
    assert said_again.terms == named.terms


@pytest.mark.parametrize(
    "said",
    [
        "top_k()", "top_k(3", "top_k(__import__('os').getpid())", "f1(spam)", "f1('a')('b')", "rmse(x=1)",
        "rmse(1); 1", "top_k(1, 2)", "eval('1')", "f1(*'a')", "f1(**{})",
        "f1([1, 2, 3])", "f1((1,))", "f1(None)", "recall({})", "precision(b'a')", "rmse(-1)", "top_k(0)",
        "rmse(" + "(" * 500,
    ],
)  # fmt: skip
def test_what_is_no_metric_with_parameters_is_refused(said: str) -> None:
    with pytest.raises(InputError, match="expected"):
        metric_named(said)


def test_a_class_is_the_same_as_a_number_of_numpy() -> None:
    assert (f1(np.int64(2)).terms, f1(np.str_("a")).label) == (f1(2).terms, "a")
    with pytest.raises(InputError, match="pos_label"):
        f1(np.array([1, 2]))


def test_metrics_of_other_parameters_have_other_terms() -> None:
    """Else a look that repeats a key would be told of another class."""
    different = [
        f1(),
        f1("a"),
        f1("b"),
        precision("a"),
        recall("a"),
        auc(),
        auc(20),
        auc(low=-1.0),
        rmse(1),
        rmse(2),
    ]
    assert len({metric.terms for metric in different}) == len(different)


def test_a_holdout_comes_back_to_a_metric_with_parameters(tmp_path: Path) -> None:
    labels = np.arange(60) % 3
    chances = np.full((60, 3), 0.1) + np.eye(3)[labels]
    for wanted in ({"metric": "top_k(2)", "queries": 5}, {}):
        with ReusableHoldout(labels, ledger=tmp_path / "looks", **wanted) as holdout:
            assert holdout.score(chances).question.startswith("top-2")
