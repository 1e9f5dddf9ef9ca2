"""Rows as learners see them: a matrix of numbers and a label for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import InputError
from holdfast.query.column import Real

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.query.schema import Schema

Matrix = NDArray[np.float64]
Labels = NDArray[np.bool_]


def matrix(rows: ArrayLike) -> Matrix:
    """Rows as a table of floats, one column for each feature; a flat list is one feature. NaN becomes -inf.

    Refuses by shape and type alone, so that no error tells a value.
    """
    array = np.asarray(rows)
    if array.dtype.kind not in "biuf" or array.ndim not in (1, 2) or not array.size:
        raise InputError(
            f"expected a table of numbers with at least one row, got {array.dtype} of shape {array.shape}"
        )
    table = array.astype(np.float64).reshape(array.shape[0], -1)
    table[np.isnan(table)] = -np.inf
    return table


def labels(values: ArrayLike, rows: int) -> Labels:
    """One truth value for each row: booleans, or numbers, where a positive one is true (1/0 and 1/-1)."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" or array.shape != (rows,):
        raise InputError(
            f"expected {rows} labels that are true/false, 1/0 or 1/-1, got {array.dtype} of shape {array.shape}"
        )
    return array if array.dtype == np.bool_ else array > 0


def edges(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Distinct finite numbers in increasing order."""
    array = np.asarray(values)
    if array.dtype.kind not in "iuf" or array.ndim != 1 or not array.size:
        raise InputError(
            f"expected a flat list of numbers for {name}, got {array.dtype} of shape {array.shape}"
        )
    cuts = array.astype(np.float64)
    if not np.isfinite(cuts).all() or not (np.diff(cuts) > 0).all():
        raise InputError(
            f"expected finite numbers in strictly increasing order for {name}, got others; sort them"
        )
    return cuts


def decode(block: Mapping[str, NDArray[Any]], schema: Schema, names: Sequence[str]) -> Matrix:
    """Codes of the named columns as numbers, NULL as NaN. Categories count from 0, dates in days from the first."""
    table = np.empty((len(next(iter(block.values()))), len(names)), dtype=np.float64)
    for place, name in enumerate(names):
        kind, codes = schema[name], block[name]
        if isinstance(kind, Real):
            table[:, place] = codes
        else:
            start = kind.lo if kind.kind == "integer" else 0
            table[:, place] = codes
            table[:, place] += start
            table[codes >= kind.null_code, place] = np.nan
    return table


def known_columns(schema: Schema, names: Sequence[str]) -> tuple[str, ...]:
    """The one name of each, or InputError unless each is a column of the schema, once."""
    if isinstance(names, str) or not names or any(name not in schema for name in names):
        raise InputError(f"expected a list of columns out of {', '.join(list(schema)[:10])}, got {names!r}")
    spelt = tuple(schema.spelling(name) or name for name in names)
    if len(set(spelt)) < len(names):
        raise InputError(f"expected each column once, got {names!r}")
    return spelt
