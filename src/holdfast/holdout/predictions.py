"""What a model says of the rows: an array, or a function that is asked only about the rows that are read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import InputError
from holdfast.holdout.label_release import Cells, Rows, whole_steps
from holdfast.holdout.labels import Labels
from holdfast.holdout.metric import CLASSES, GRID, Metric, RowValues, on_grid
from holdfast.holdout.table_metric import refuse_classes

Predictions = ArrayLike | Callable[[NDArray[np.int64]], ArrayLike]
"""One prediction for each row of the holdout, or a function from row numbers to their predictions."""

_SLACK = 1e-4
"""How far chances may be from summing to 1, for each class: those of single precision are."""
_MOST_CLASSES = 1000
_LOOKED_AT = 1 << 18

Said = Callable[[NDArray[np.int64] | None], NDArray[Any]]


def row_values(predictions: Predictions, labels: Labels, metric: Metric) -> list[Rows]:
    """The metric's row values as functions of row numbers; an array is indexed only at the rows read.

    A value that is no number counts as the worst. InputError comes now, before anything is charged, for labels
    or predictions that the metric cannot take. A function of row numbers is asked about two rows for that, and
    an own metric is tried on the predictions for them, with made-up labels.
    """
    refuse_labels(metric, labels)
    said = checked(predictions, labels, metric)
    if metric.wants == "anything":
        few = np.arange(min(2, len(labels)))
        for values, worst in zip(metric.row_values, metric.worst, strict=True):
            _measured(values, worst, said(few), _made_up(labels, len(few)), metric.name)

    def rows(values: RowValues, worst: int, ids: NDArray[np.int64] | None) -> NDArray[Any]:
        held = labels.take(ids)
        given = said(ids)
        if metric.wants in CLASSES:
            held = np.searchsorted(labels.classes, held)
        return _measured(values, worst, given, held, metric.name)

    return [partial(rows, *part) for part in zip(metric.row_values, metric.worst, strict=True)]


def weighted(values: Rows, weights: ArrayLike, most: float, rows: int) -> list[Rows]:
    """The row values a and b of a weighted mean a/(a+b): with weight times value, and with weight times what is left.

    InputError for weights that are not one number from 0 to `most` for each row.
    """
    array = _array(weights)
    if array.shape != (rows,) or array.dtype.kind not in "buif":
        raise InputError(
            f"expected one weight for each of {rows} rows, got {array.dtype} of shape {array.shape}"
        )
    if not ((array >= 0) & (array <= most)).all():
        raise InputError(
            f"expected weights from 0 to {most:g}, got others; declare their range with most_weight="
        )
    scaled = array / most

    def part(rest: bool, ids: NDArray[np.int64] | None) -> NDArray[Any]:
        own = whole_steps(values(ids)) / GRID
        share = scaled if ids is None else scaled[ids]
        return on_grid(share * (1.0 - own if rest else own), len(own), int(rest))

    return [partial(part, False), partial(part, True)]


def refuse_labels(metric: Metric, labels: Labels) -> None:
    """InputError for labels that the metric makes no sense of. Public: it depends on their kind and classes only."""
    name = metric.name.partition("(")[0]
    if metric.wants == "numbers" and labels.text:
        raise InputError(f"expected labels that are numbers for {name}, got text; use accuracy or error")
    if metric.wants == "rankings" and not labels.columns:
        raise InputError(
            f"expected a column of labels for each document of a query for {name}, got one column; a row is a query"
        )
    if labels.columns and (metric.wants in CLASSES or metric.table is not None or metric.parts):
        raise InputError(
            f"expected labels in one column for {name}, got {labels.columns[0]}; score each output by itself"
        )
    if metric.label is not None and not (labels.present == metric.label).any():
        raise InputError(
            f"expected pos_label= among the classes of the labels for {name}, got another; name it"
        )
    if metric.table is not None:
        refuse_classes(name, metric.table, len(labels.present), labels.two)


def known_disagreement(
    first: Predictions, second: Predictions, labels: Labels, metric: Metric
) -> float | None:
    """How large the mean of |first - second| can be whatever the labels are, for arrays; None where nobody can know.

    Public: whoever sends two arrays knows it. The classes are public too, and a row's values are tried on each.
    """
    if callable(first) or callable(second) or metric.wants not in ("labels", *CLASSES):
        return None
    sides = [checked(side, labels, metric)(None) for side in (first, second)]
    if metric.wants == "labels":
        differ = sides[0] != sides[1]
        return _mean_size(GRID * (differ.any(axis=1) if differ.ndim > 1 else differ).astype(np.int64), labels)
    (values,), (worst,) = metric.row_values, metric.worst
    largest = np.zeros(len(labels), dtype=np.int64)
    for number in range(len(labels.classes)):
        held = np.full(len(labels), number)
        one, other = (whole_steps(_measured(values, worst, side, held, metric.name)) for side in sides)
        np.maximum(largest, np.abs(one - other), out=largest)
    return _mean_size(largest, labels)


def _mean_size(steps: NDArray[np.int64], labels: Labels) -> float:
    """The mean of sizes in steps of the grid, as a share."""
    if labels.units is not None:
        return min(1.0, labels.units.mean(steps) / GRID)
    return float(steps.sum(dtype=np.int64)) / (GRID * len(labels))


def cells_of(predictions: Predictions, labels: Labels, metric: Metric) -> Cells:
    """Row numbers (None for all) -> the cell of each row in the metric's table, and its value in steps of the grid."""
    table = metric.table
    assert table is not None
    refuse_labels(metric, labels)
    said, classes = checked(predictions, labels, metric), len(labels.classes)

    def cells(ids: NDArray[np.int64] | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        held, given = labels.numbers(labels.take(ids)), said(ids)
        if metric.wants == "labels":
            given = labels.numbers(given)
        places, values = table.fall(given, held, classes)
        return places, np.rint(np.clip(values, -1.0, 1.0) * GRID).astype(np.int64)

    return cells


def half_difference(first: Rows, second: Rows) -> Rows:
    """(1 + first - second)/2 on the grid. Exact, because single values are even."""

    def rows(ids: NDArray[np.int64] | None) -> NDArray[Any]:
        left, right = (whole_steps(side(ids)) for side in (first, second))
        values: NDArray[Any] = (GRID + left - right) // 2
        return values

    return rows


def checked(predictions: Predictions, labels: Labels, metric: Metric) -> Said:
    """Row numbers (None for all) -> what is said of them, in a form that the metric takes; InputError for others.

    Of an array the first quarter of a million rows are looked at, so that a look by votes stays as quick as it is; a
    function of row numbers is asked about two. What is said of other rows that is no number counts as the worst.
    """
    rows = len(labels)
    if callable(predictions):
        few = np.arange(min(2, rows))
        _refuse_values(_taken(_array(predictions(few)), labels, metric, len(few)), labels, metric)

        def said(ids: NDArray[np.int64] | None) -> NDArray[Any]:
            asked = np.arange(rows) if ids is None else ids
            return _taken(_array(predictions(asked)), labels, metric, len(asked))

        return said
    array = _array(predictions)
    if array.shape[:1] != (rows,):
        raise InputError(f"expected one prediction for each of {rows} rows, got shape {array.shape}")
    whole = _taken(array, labels, metric, rows)
    _refuse_values(whole[:_LOOKED_AT], labels, metric)
    return lambda ids: whole if ids is None else whole.take(ids, axis=0, mode="clip")


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
    columns = len(labels.classes) if metric.wants in CLASSES else 0
    single = metric.wants not in CLASSES or labels.two
    wanted = [labels.columns] * single + [(columns,)] * bool(columns)
    if metric.wants != "anything" and said.shape[1:] not in wanted:
        words = [f"one for each of {columns} classes"] * bool(columns)
        one = f"{labels.columns[0]} numbers" if labels.columns else "one number"
        raise InputError(
            f"expected {', or '.join([f'{one} for each row'] * single + words)} as predictions for {metric.name}, "
            f"got shape {said.shape[1:]} a row"
        )
    if text:
        return said.astype(np.str_)
    return said.astype(np.int64) if said.dtype == np.bool_ else said


def _refuse_values(said: NDArray[Any], labels: Labels, metric: Metric) -> None:
    """InputError for predictions that cannot be meant: no numbers, no chances, no class of the labels."""
    if metric.wants == "anything":
        return
    if said.dtype.kind == "f" and not np.isfinite(said).all():
        raise InputError(f"expected finite predictions for {metric.name}, got NaN or infinity; fill them in")
    if metric.wants == "chances":
        slack = _SLACK * (1 if said.ndim == 1 else said.shape[1])
        sums = said.sum(axis=1) if said.ndim == 2 else np.ones(1)
        if not ((said >= -slack) & (said <= 1 + slack)).all() or not (np.abs(sums - 1.0) <= slack).all():
            raise InputError(
                f"expected chances from 0 to 1 for {metric.name}, summing to 1 over the classes, got others; "
                "normalise each row"
            )
    known = labels.values.dtype.kind != "f" and len(labels.present) <= _MOST_CLASSES
    if metric.wants == "labels" and known and (labels.numbers(said) == len(labels.classes)).any():
        raise InputError(
            f"expected predictions that are classes of the labels for {metric.name}, got others; "
            "map them to one of the classes first"
        )


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
            found = np.asarray(values(said, held))
        except Exception as error:
            raise InputError(
                f"expected a metric that takes any prediction and any label, "
                f"got {type(error).__name__} from {name}; mend it"
            ) from None
        # Several outputs count alike.
        outputs = found.ndim == 2 and found.shape == held.shape
        return on_grid(found.mean(axis=1) if outputs else found, len(held), worst)
