"""The mean of a Python function of a row: for a trusted analyst on the owner's own machine."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import DataError
from holdfast.query.measurement import Block, Grid
from holdfast.query.schema import Boolean, Category, Real, Schema

LEVELS = 2**20

Function = Callable[[Mapping[str, NDArray[Any]]], NDArray[Any]]
"""Arrays by column in, one number in [0,1] for each row out."""


@dataclass(frozen=True)
class RowFunction:
    """A vectorised function of some columns. Each is a question of its own: Python functions have no
    canonical form, so nothing is remembered of them."""

    function: Function = field(compare=False)
    columns: tuple[str, ...]
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __str__(self) -> str:
        return f"{getattr(self.function, '__name__', 'function')}({', '.join(self.columns)})"


@dataclass(frozen=True)
class FunctionMeasurement:
    """The exact integer total of a function, its values clipped to [0,1] and put on a grid of 2^-20.

    Requires: the value for a row depends on that row alone. Nothing can check that of Python code, which is
    why this is for local use and never offered to remote analysts.
    """

    schema: Schema
    source: RowFunction
    by: None = None
    weight: int = 1

    @property
    def columns(self) -> tuple[str, ...]:
        return self.source.columns

    @property
    def size(self) -> int:
        return 1

    @property
    def low(self) -> int:
        return 0

    @property
    def high(self) -> int:
        return LEVELS

    @property
    def grid(self) -> Grid:
        return Grid(0.0, 1 / LEVELS, 0, LEVELS, exact=False)

    def contributions(self, block: Block) -> NDArray[np.int64]:
        """One integer in 0..2^20 for each row; what is no number counts as 0."""
        values = {name: readable(name, block[name], self.schema) for name in self.columns}
        length = len(next(iter(values.values())))
        try:
            found: NDArray[np.float64] | None = np.asarray(self.source.function(values), dtype=np.float64)
        except Exception:
            found = None
        # Fixed words: the function has seen the rows, so its error, its shape and its name may speak of them.
        if found is None or found.shape != (length,):
            raise DataError(
                "expected one number for each row from the function, got something else; try it on rows of your own"
            )
        units = np.floor(np.clip(np.nan_to_num(found, nan=0.0), 0.0, 1.0) * LEVELS + 0.5)
        return units.astype(np.int64)

    def totals(self, block: Block) -> NDArray[np.int64]:
        return np.array([self.contributions(block).sum(dtype=np.int64)], dtype=np.int64)


def readable(name: str, codes: NDArray[Any], schema: Schema) -> NDArray[Any]:
    """Codes as numbers: floats with NaN for NULL; categories and truth values as their place."""
    kind = schema[name]
    if isinstance(kind, Real):
        return codes
    offset = 0 if isinstance(kind, Category | Boolean) else kind.lo
    numbers = codes.astype(np.float64) + offset
    numbers[codes == kind.null_code] = np.nan
    return numbers
