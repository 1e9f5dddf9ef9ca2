"""Checks of what an oracle is given, before anything happens."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.check import exact_positive, probability, refusal, written
from holdfast.errors import InputError
from holdfast.privacy.rounding import float_down

LEAST_EPSILON, MOST_EPSILON = 2.0**-20, 32.0


def read_epsilon(epsilon: object) -> float:
    """A loss from 2^-20 (below it no number of users is enough) to 32 (above it nothing is hidden)."""
    value = float_down(exact_positive("epsilon", epsilon))
    if not LEAST_EPSILON <= value <= MOST_EPSILON:
        raise refusal("a number from 2^-20 to 32", "epsilon", epsilon, "1.0 is usual")
    return value


def read_probability(name: str, value: object) -> Fraction:
    """A probability strictly between 0 and 1, as the person wrote it: 0.55 is 11/20."""
    probability(name, value)
    return written(name, value)


def read_values(values: ArrayLike, domain: int) -> NDArray[np.int64]:
    """One value of 0..domain-1 per user. Others are clamped: an error would tell that they are there."""
    array = np.asarray(values)
    if array.dtype.kind not in "iub" or array.ndim > 1:
        raise InputError(
            f"expected a list of integers, one per user, got {array.dtype} of {array.ndim} dimensions; "
            "number the categories from 0 first"
        )
    if array.dtype.kind == "u":
        array = np.minimum(array, domain - 1)
    return np.clip(np.atleast_1d(array).astype(np.int64), 0, domain - 1)


def read_items(items: ArrayLike | None, domain: int) -> NDArray[np.int64]:
    """The items to estimate: distinct numbers of 0..domain-1, or all of them."""
    if items is None:
        return np.arange(domain, dtype=np.int64)
    array = np.atleast_1d(np.asarray(items))
    if array.dtype.kind not in "iu" or array.ndim != 1 or not array.size:
        raise InputError(
            "expected a list of integers for items, got another; number the categories from 0 first"
        )
    if int(array.min()) < 0 or int(array.max()) >= domain:
        raise InputError(f"expected items between 0 and {domain - 1}, got others; leave them out")
    if np.unique(array).size != array.size:
        raise InputError("expected each item once, got repetitions; leave them out")
    return array.astype(np.int64)


def read_reports(reports: ArrayLike, dtype: np.dtype[Any], columns: int | None = None) -> NDArray[Any]:
    """The reports as they were made: at least one, of the right type and shape."""
    array = read_array(reports, dtype, columns)
    if not len(array):
        raise InputError("expected at least one report, got none; ask some users first")
    return array


def read_array(array: ArrayLike, dtype: np.dtype[Any], columns: int | None = None) -> NDArray[Any]:
    """Rows which this oracle made, by their type and shape; perhaps none."""
    rows = np.asarray(array)
    if (
        rows.dtype != dtype
        or rows.ndim != (1 if columns is None else 2)
        or rows.shape[1:] != (columns,)[: rows.ndim - 1]
    ):
        raise InputError(
            f"expected an array of {dtype}{'' if columns is None else f' with {columns} columns'}, "
            f"got {rows.dtype} of shape {rows.shape}; pass on what this oracle returned"
        )
    return rows


def require_below(reports: NDArray[Any], limit: int) -> None:
    """Refuses reports which no client of this oracle can have sent."""
    if reports.size and int(reports.max()) >= limit:
        raise InputError(
            f"expected reports below {limit}, got a larger one; it was made by another oracle or forged"
        )


def smallest_uint(limit: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds 0..limit-1."""
    return np.min_scalar_type(limit - 1)
