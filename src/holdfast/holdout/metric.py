"""What is measured on each row: a number from 0 to 1, on a grid of integers."""

from __future__ import annotations

import ast
import inspect
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.check import integer, one_of, positive, refusal, shown
from holdfast.errors import InputError
from holdfast.holdout.table_metric import (
    TABLE_LOOKS,
    AreaUnderCurve,
    BalancedAccuracy,
    CalibrationError,
    MacroF1,
    Table,
    bins_of,
    score_range,
)

GRID = 1 << 17
"""Row values are integers in 0..GRID; single metrics use even ones, so that halves of differences fit."""

ROUNDING = 1.0 / GRID
"""How far rounding to the even steps can move a mean."""

RowValues = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]
"""(predictions, labels) of some rows -> truth values, or numbers in [0,1]; one for each row."""

Wants = Literal["labels", "numbers", "chances", "scores", "rankings", "anything"]
"""What a metric takes for a prediction: what the labels are; a number, beside labels that are numbers; the
chance of label 1, or a chance for each class; the same of any numbers; a score for each document of a query; whatever
its own function takes."""
CLASSES = ("chances", "scores")
"""Who gets the number of a label's class for the label."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A mean over rows: low + (high - low) * mean of `values`.

    `parts` is empty for a plain mean. For a ratio it holds two row values a and b, and the metric is
    E a/(E a + E b): it costs two looks.
    """

    name: str
    values: RowValues | None
    low: float = 0.0
    high: float = 1.0
    greater_is_better: bool = True
    exact: bool = False
    """Row values are 0 or 1, so that nothing is rounded."""
    parts: tuple[RowValues, ...] = ()
    wants: Wants = "anything"
    """With "chances" and "scores" the functions get the number of a label's class for the label."""
    power: float = 1.0
    """The metric is this power of the mean on its scale: 1/2 for a root."""
    table: Table | None = None
    """For a function of a whole table: where the rows fall, and what it says."""
    label: object = None
    """The class that it is about, where it is about one; labels without it are refused."""
    roundings: int = 0
    """How many times row values are rounded to the grid once more: by weights, and over the rows of a unit."""

    @property
    def looks(self) -> int:
        """How many questions to the holdout it takes."""
        return TABLE_LOOKS if self.table is not None else len(self.parts) or 1

    @property
    def plain(self) -> bool:
        """Whether it is a mean over rows and nothing else."""
        return not self.parts and self.table is None and self.power == 1.0

    @property
    def row_values(self) -> tuple[RowValues, ...]:
        """What is asked for on each row: one mean, or the two of a ratio."""
        return self.parts if self.values is None else (self.values,)

    def on_scale(self, mean: float) -> float:
        """A mean in [0,1] on the metric's own scale."""
        part = self.low + (self.high - self.low) * min(1.0, max(0.0, mean))
        return part if self.power == 1.0 else part**self.power

    def as_mean(self, score: float) -> float:
        """The mean in [0,1] that has this score, clipped."""
        part = score if self.power == 1.0 else max(0.0, score) ** (1 / self.power)
        return min(1.0, max(0.0, (part - self.low) / (self.high - self.low)))

    @property
    def worst(self) -> tuple[int, ...]:
        """For each of `row_values`, the value that is worst for the metric: 0 or 1."""
        first = 0 if self.greater_is_better else 1
        return (first, 1 - first)[: len(self.row_values)]

    @property
    def terms(self) -> str:
        """Name, range and direction: scores are comparable only where these agree."""
        better = "greater" if self.greater_is_better else "less"
        return f"{self.name} from {self.low!r} to {self.high!r}, {better} is better"

    @property
    def rounding(self) -> float:
        """What rounding to the grid adds to the half-width of the mean."""
        return ROUNDING * (self.roundings + (not self.exact))


def on_grid(values: NDArray[Any], rows: int, worst: int) -> NDArray[Any]:
    """Row values as truth values, or as even integers in 0..GRID.

    Guarantee: total. What is no number counts as `worst`, 0 or 1; the range is clipped, so that no row can
    raise or weigh more than another. Only the shape is refused, and it is public.
    """
    array = np.asarray(values)
    if array.shape != (rows,):
        raise InputError(
            f"expected one number for each of {rows} rows from the metric, got shape {array.shape}"
        )
    if array.dtype == np.bool_:
        return array
    if array.dtype.kind not in "uif":
        raise InputError(f"expected numbers or truth values of the metric, got {array.dtype}")
    floats = np.nan_to_num(array.astype(np.float64), nan=float(worst), posinf=1.0, neginf=0.0)
    return 2 * np.rint(np.clip(floats, 0.0, 1.0) * (GRID // 2)).astype(np.int64)


def _brier(predictions: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """(p - y)^2, and for more classes half the sum over all of them, which is the same for two."""
    if predictions.ndim == 1:
        return np.asarray((np.clip(predictions, 0.0, 1.0) - classes) ** 2)
    chances = _chances(predictions)
    return np.asarray(((chances**2).sum(axis=1) - 2.0 * _of(chances, classes) + 1.0) / 2.0)


def _log_loss(most: float, predictions: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    if predictions.ndim == 1:
        chance = np.where(classes == 1, predictions, 1.0 - predictions)
    else:
        chance = _of(_chances(predictions), classes)
    return np.asarray(-np.log(np.clip(chance, math.exp(-most), 1.0)) / most)


def _chances(predictions: NDArray[Any]) -> NDArray[Any]:
    """A chance for each class, made to sum to 1: chances that are all 1 must not win. No number if all are 0."""
    chances = np.clip(predictions.astype(np.float64), 0.0, 1.0)
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _of(chances: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(chances[np.arange(len(classes)), classes])


def _squared_error(most: float, predictions: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.minimum((predictions - labels) ** 2, most) / most)


def _both(
    label: object, wanted: tuple[bool, bool], predictions: NDArray[Any], labels: NDArray[Any]
) -> NDArray[Any]:
    return np.asarray(((predictions == label) == wanted[0]) & ((labels == label) == wanted[1]))


def _half_where_one(label: object, predictions: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    return np.where((predictions == label) != (labels == label), 0.5, 0.0)


def _absolute_error(most: float, predictions: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.minimum(np.abs(predictions - labels), most) / most)


def _top(count: int, predictions: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """Whether the label's chance is among the `count` largest; ties count against it."""
    if predictions.ndim == 1:
        predictions = np.column_stack([1.0 - predictions, predictions])
    own = _of(predictions, classes)
    return np.asarray((predictions >= own[:, None]).sum(axis=1) <= count)


def _gain(count: int, predictions: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """NDCG at `count` of each query; labels are relevances, below 0 where a query has no such document."""
    exists = labels >= 0
    relevance = np.where(exists, labels, 0.0)
    scores = np.where(exists, np.nan_to_num(predictions, nan=-np.inf), -np.inf)
    first = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    discount = 1.0 / np.log2(np.arange(2, first.shape[1] + 2))
    found = np.take_along_axis(relevance, first, axis=1) @ discount
    best = -np.sort(-relevance, axis=1)[:, :count] @ discount
    return np.where(best > 0, found / np.where(best > 0, best, 1.0), 0.0)


def _given(predictions: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    return predictions


def log_loss(most: float = 5.0) -> Metric:
    """The log-loss of a predicted chance of label 1, or of a chance for each class; each row clipped to at most
    `most` nats."""
    top = positive("most", most)
    return Metric("log-loss", partial(_log_loss, top), high=top, greater_is_better=False, wants="chances")


def squared_error(most: float) -> Metric:
    """The squared error, each row clipped to at most `most`."""
    top = positive("most", most)
    return Metric(
        "squared-error", partial(_squared_error, top), high=top, greater_is_better=False, wants="numbers"
    )


def absolute_error(most: float) -> Metric:
    """The absolute error, each row clipped to at most `most`."""
    top = positive("most", most)
    return Metric(
        "absolute-error", partial(_absolute_error, top), high=top, greater_is_better=False, wants="numbers"
    )


def rmse(most: float) -> Metric:
    """The root of the mean squared error, errors clipped to at most `most`."""
    squared = positive("most", most) ** 2
    return replace(squared_error(squared), name="rmse", power=0.5)


def _of_class(name: str, pos_label: object, parts: Callable[[object], tuple[RowValues, ...]]) -> Metric:
    """A ratio about a class. Those of other classes have other names, so that the repeat of a look's key is never told
    the score of another class."""
    label = pos_label.item() if isinstance(pos_label, np.generic) else pos_label
    if not isinstance(label, str | int | float):
        raise refusal("a class, a word or a number,", "pos_label", label)
    called = name if label == 1 else f"{name}({label!r})"
    return Metric(called, None, exact=True, wants="labels", parts=parts(label), label=label)


def precision(pos_label: object = 1) -> Metric:
    """The share of rows of a class among those predicted as one."""
    both, only = (True, True), (True, False)
    return _of_class(
        "precision", pos_label, lambda one: (partial(_both, one, both), partial(_both, one, only))
    )


def recall(pos_label: object = 1) -> Metric:
    """The share of the rows of a class that are predicted as one."""
    both, only = (True, True), (False, True)
    return _of_class("recall", pos_label, lambda one: (partial(_both, one, both), partial(_both, one, only)))


def f1(pos_label: object = 1) -> Metric:
    """2TP/(2TP + FP + FN) of a class."""
    both = (True, True)
    return _of_class("f1", pos_label, lambda one: (partial(_both, one, both), partial(_half_where_one, one)))


def auc(bins: int = 10, *, low: float = 0.0, high: float = 1.0) -> Metric:
    """The area under the ROC curve of scores declared to be from low to high; four looks, gaussian noise only."""
    table = AreaUnderCurve(bins_of(bins, 1000), *score_range(low, high))
    plain = (table.bins, table.low, table.high) == (10, 0.0, 1.0)
    name = "auc" if plain else f"auc({table.bins}, low={table.low!r}, high={table.high!r})"
    return Metric(name, None, wants="scores", table=table)


def calibration_error(bins: int = 10) -> Metric:
    """The expected calibration error of the chance of label 1; four looks, gaussian noise only."""
    table = CalibrationError(bins_of(bins, 100))
    name = "calibration-error" if table.bins == 10 else f"calibration-error({table.bins})"
    return Metric(name, None, greater_is_better=False, wants="chances", table=table)


def top_k(k: int) -> Metric:
    """The share of rows whose class is among the k with the highest chances; ties count against it."""
    count = integer("k", k)
    return Metric(f"top-{count}", partial(_top, count), exact=True, wants="scores")


def ndcg(k: int = 10) -> Metric:
    """The mean NDCG at k. A row of the labels is a query: relevances, and -1 where it has no further document."""
    return Metric(f"ndcg-{integer('k', k)}", partial(_gain, k), wants="rankings")


def row_loss(function: RowValues, name: str = "loss", *, greater_is_better: bool = False) -> Metric:
    """Any function (predictions, labels) -> one number in [0,1] for each row; clipped to that range."""
    if not callable(function):
        raise InputError(f"expected a function for a row loss, got {type(function).__name__}")
    return Metric(name, function, greater_is_better=greater_is_better)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", operator.eq, exact=True, wants="labels"),
        Metric("error", operator.ne, greater_is_better=False, exact=True, wants="labels"),
        Metric("brier", _brier, greater_is_better=False, wants="chances"),
        log_loss(),
        squared_error(1.0),
        Metric("value", _given, wants="numbers"),
        precision(),
        recall(),
        f1(),
        absolute_error(1.0),
        rmse(1.0),
        auc(),
        calibration_error(),
        Metric("balanced-accuracy", None, wants="labels", table=BalancedAccuracy()),
        Metric("macro-f1", None, wants="labels", table=MacroF1()),
        ndcg(),
    )
}  # fmt: skip


_MAKERS: dict[str, Callable[..., Metric]] = {
    make.__name__: make
    for make in (
        log_loss, squared_error, absolute_error, rmse, precision, recall, f1, auc, calibration_error, top_k, ndcg
    )
}  # fmt: skip
_LONGEST = 200


def metric_named(metric: str | Metric | RowValues) -> Metric:
    """The metric itself, one of METRICS by name, one with its parameters as text ("top_k(3)", "f1('spam')"), or a
    function as a row loss."""
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        name, bracket, rest = metric.partition("(")
        if bracket and len(metric) <= _LONGEST:
            return _made(
                _MAKERS[one_of("metric", name.strip().replace("-", "_"), _MAKERS)], metric, f"f({rest}"
            )
        return METRICS[one_of("metric", metric, METRICS)]
    return row_loss(metric, getattr(metric, "__name__", "loss"))


def known_name(metric: Metric) -> str | None:
    """The name by which `metric_named` finds it again; None of others."""
    return metric.name if METRICS.get(metric.name) == metric else None


def _made(make: Callable[..., Metric], said: str, text: str) -> Metric:
    """A metric by the call in a text, whose arguments are literals; nothing is evaluated."""
    try:
        call = ast.parse(text, mode="eval").body
        assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        given = [ast.literal_eval(each) for each in call.args]
        named = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
        inspect.signature(make).bind(*given, **named)
    except (SyntaxError, ValueError, TypeError, AssertionError, MemoryError, RecursionError):
        example = "give its parameters as numbers or quoted words: top_k(3), f1('spam'), auc(20, low=-1)"
        raise InputError(f"expected a metric with its parameters, got {shown(said)}; {example}") from None
    return make(*given, **named)
