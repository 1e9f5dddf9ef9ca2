"""What a model says of the rows: an array, or a function that is asked only about the rows that are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import InputError
from holdfast.holdout.metric import GRID, RowValues, on_grid
from holdfast.holdout.release import Rows

Predictions = ArrayLike | Callable[[NDArray[np.int64]], ArrayLike]
"""One prediction for each row of the holdout, or a function from row numbers to their predictions."""


def row_values(predictions: Predictions, labels: NDArray[Any], values: RowValues, worst: int) -> Rows:
    """The metric's row values as a function of row numbers; an array is indexed only at the rows read.

    A value that is no number counts as `worst`. InputError comes now for a wrong shape or kind of array,
    before anything is charged.
    """
    array = None if callable(predictions) else _checked(np.asarray(predictions), labels)

    def rows(ids: NDArray[np.int64] | None) -> NDArray[Any]:
        held = labels if ids is None else labels.take(ids, mode="clip")
        if held.dtype.kind == "i":
            held = held.astype(np.int64)  # small types would overflow in a metric's arithmetic
        if callable(predictions):
            given = np.asarray(predictions(np.arange(len(labels)) if ids is None else ids))
        else:
            assert array is not None
            given = array if ids is None else array.take(ids, axis=0, mode="clip")
        # A warning would tell about values; what is no number counts as the worst.
        with np.errstate(all="ignore"):
            return on_grid(values(_comparable(given, held), held), len(held), worst)

    return rows


def half_difference(first: Rows, second: Rows) -> Rows:
    """(1 + first - second)/2 on the grid. Exact, because single values are even."""

    def rows(ids: NDArray[np.int64] | None) -> NDArray[Any]:
        left, right = (_whole(side(ids)) for side in (first, second))
        values: NDArray[Any] = (GRID + left - right) // 2
        return values

    return rows


def _checked(array: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    if array.shape[:1] != labels.shape:
        raise InputError(
            f"predictions must have one entry for each of {len(labels)} rows, got shape {array.shape}"
        )
    _refuse_kind(array, labels)
    return array


def _comparable(said: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Predictions in a form that compares with the labels."""
    _refuse_kind(said, labels)
    if labels.dtype.kind == "U":
        return said.astype(np.str_)
    return said.astype(np.int64) if said.dtype == np.bool_ else said


def _refuse_kind(said: NDArray[Any], labels: NDArray[Any]) -> None:
    allowed = "OUS" if labels.dtype.kind == "U" else "buif"
    if said.dtype.kind not in allowed:
        kind = "text" if allowed == "OUS" else "numbers"
        raise InputError(f"predictions must be {kind} like the labels, got {said.dtype}")


def _whole(values: NDArray[Any]) -> NDArray[np.int64]:
    return values.astype(np.int64) * GRID if values.dtype == np.bool_ else values
