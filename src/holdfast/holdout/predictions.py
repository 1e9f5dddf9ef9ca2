"""What a model says of the rows: an array, or a function that is asked only about the rows that are read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import InputError
from holdfast.holdout.label_release import Rows
from holdfast.holdout.labels import Labels
from holdfast.holdout.metric import GRID, Metric, RowValues, on_grid

Predictions = ArrayLike | Callable[[NDArray[np.int64]], ArrayLike]
"""One prediction for each row of the holdout, or a function from row numbers to their predictions."""

Said = Callable[[NDArray[np.int64] | None], NDArray[Any]]


def row_values(predictions: Predictions, labels: Labels, metric: Metric) -> list[Rows]:
    """The metric's row values as functions of row numbers; an array is indexed only at the rows read.

    A value that is no number counts as the worst. InputError comes now, before anything is charged, for labels
    or predictions that the metric cannot take. A function of row numbers is asked about two rows for that, and
    an own metric is tried on the predictions for them, with made-up labels.
    """
    refuse_labels(metric, labels)
    said = _said(predictions, len(labels))
    few = np.arange(min(2, len(labels)))
    shown = _taken(said(few), labels, metric, len(few))
    if metric.wants == "anything":
        for values, worst in zip(metric.row_values, metric.worst, strict=True):
            _measured(values, worst, shown, _made_up(labels, len(few)), metric.name)

    def rows(values: RowValues, worst: int, ids: NDArray[np.int64] | None) -> NDArray[Any]:
        held = labels.take(ids)
        given = _taken(said(ids), labels, metric, len(held))
        if metric.wants == "chances":
            held = np.searchsorted(labels.classes, held)
        return _measured(values, worst, given, held, metric.name)

    return [partial(rows, *part) for part in zip(metric.row_values, metric.worst, strict=True)]


def refuse_labels(metric: Metric, labels: Labels) -> None:
    """InputError for labels that the metric makes no sense of. Public: it depends on their kind only."""
    if metric.wants == "numbers" and labels.text:
        raise InputError(
            f"expected labels that are numbers for {metric.name}, got text; use accuracy or error"
        )


def half_difference(first: Rows, second: Rows) -> Rows:
    """(1 + first - second)/2 on the grid. Exact, because single values are even."""

    def rows(ids: NDArray[np.int64] | None) -> NDArray[Any]:
        left, right = (_whole(side(ids)) for side in (first, second))
        values: NDArray[Any] = (GRID + left - right) // 2
        return values

    return rows


def _said(predictions: Predictions, rows: int) -> Said:
    """Row numbers (None for all) -> what is said of them."""
    if callable(predictions):
        return lambda ids: _array(predictions(np.arange(rows) if ids is None else ids))
    array = _array(predictions)
    if array.shape[:1] != (rows,):
        raise InputError(f"expected one prediction for each of {rows} rows, got shape {array.shape}")
    return lambda ids: array if ids is None else array.take(ids, axis=0, mode="clip")


def _array(predictions: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(predictions)
    except ValueError:
        raise InputError("expected an array for predictions, got entries of several shapes") from None


def _taken(said: NDArray[Any], labels: Labels, metric: Metric, rows: int) -> NDArray[Any]:
    """Predictions of some rows in a form that the metric takes; InputError for others."""
    text = labels.text and metric.wants in ("labels", "anything")
    if said.dtype.kind not in ("OUS" if text else "buif"):
        kind = "text like the labels" if text else "numbers"
        raise InputError(f"expected {kind} as predictions for {metric.name}, got {said.dtype}")
    if said.shape[:1] != (rows,):
        raise InputError(f"expected predictions for {rows} rows, got shape {said.shape}")
    columns = len(labels.classes) if metric.wants == "chances" else 0
    single = metric.wants != "chances" or labels.two
    if metric.wants != "anything" and said.shape[1:] not in [()] * single + [(columns,)] * bool(columns):
        wanted = ["one number for each row"] * single + [f"one for each of {columns} classes"] * bool(columns)
        raise InputError(
            f"expected {', or '.join(wanted)} as predictions for {metric.name}, got shape {said.shape[1:]} a row"
        )
    if text:
        return said.astype(np.str_)
    return said.astype(np.int64) if said.dtype == np.bool_ else said


def _made_up(labels: Labels, rows: int) -> NDArray[Any]:
    """Labels to try an own metric on: the first class of all, which is public, or zeros."""
    if labels.values.dtype.kind == "f":
        return np.zeros(rows)
    made: NDArray[Any] = labels.classes[np.zeros(rows, dtype=np.int64)]
    return made if labels.text else made.astype(np.int64)


def _measured(
    values: RowValues, worst: int, said: NDArray[Any], held: NDArray[Any], name: str
) -> NDArray[Any]:
    """Row values on the grid. What an own metric raises may quote a label, so its words are not passed on."""
    # A warning would tell about values; what is no number counts as the worst.
    with np.errstate(all="ignore"):
        try:
            found = values(said, held)
        except Exception as error:
            raise InputError(
                f"expected a metric that takes any prediction and any label, "
                f"got {type(error).__name__} from {name}; mend it"
            ) from None
        return on_grid(found, len(held), worst)


def _whole(values: NDArray[Any]) -> NDArray[np.int64]:
    return values.astype(np.int64) * GRID if values.dtype == np.bool_ else values
