"""What is measured on each row: a number from 0 to 1, on a grid of integers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.check import one_of, positive
from holdfast.errors import InputError

GRID = 1 << 17
"""Row values are integers in 0..GRID; single metrics use even ones, so that halves of differences fit."""

ROUNDING = 1.0 / GRID
"""How far rounding to the even steps can move a mean."""

RowValues = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]
"""(predictions, labels) of some rows -> truth values, or numbers in [0,1]; one for each row."""

Wants = Literal["labels", "numbers", "chances", "anything"]
"""What a metric takes for a prediction: what the labels are; a number, beside labels that are numbers; the
chance of label 1, or a chance for each class; whatever its own function takes."""


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
    """With "chances" the functions get the number of a label's class for the label."""

    @property
    def looks(self) -> int:
        """How many questions to the holdout it takes."""
        return len(self.parts) or 1

    @property
    def row_values(self) -> tuple[RowValues, ...]:
        """What is asked for on each row: one mean, or the two of a ratio."""
        return self.parts if self.values is None else (self.values,)

    @property
    def worst(self) -> tuple[int, ...]:
        """For each of `row_values`, the value that is worst for the metric: 0 or 1."""
        first = 0 if self.greater_is_better else 1
        return (first, 1 - first)[: self.looks]

    @property
    def terms(self) -> str:
        """Name, range and direction: scores are comparable only where these agree."""
        better = "greater" if self.greater_is_better else "less"
        return f"{self.name} from {self.low!r} to {self.high!r}, {better} is better"

    @property
    def rounding(self) -> float:
        """What rounding to the grid adds to the half-width of the mean."""
        return 0.0 if self.exact else ROUNDING


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


def _both(wanted: tuple[bool, bool], predictions: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(((predictions == 1) == wanted[0]) & ((labels == 1) == wanted[1]))


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
        Metric(
            "precision", None, exact=True, wants="numbers",
            parts=(partial(_both, (True, True)), partial(_both, (True, False))),
        ),
        Metric(
            "recall", None, exact=True, wants="numbers",
            parts=(partial(_both, (True, True)), partial(_both, (False, True))),
        ),
    )
}  # fmt: skip


def metric_named(metric: str | Metric | RowValues) -> Metric:
    """The metric itself, one of METRICS by name, or a function as a row loss."""
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        return METRICS[one_of("metric", metric, METRICS)]
    return row_loss(metric, getattr(metric, "__name__", "loss"))
