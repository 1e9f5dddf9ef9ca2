"""The mean of a Python function of a row: for a trusted analyst on the owner's own machine."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import DataError
from holdfast.query.grid import Grid
from holdfast.query.measurement import Block
from holdfast.query.schema import Boolean, Category, Real, Schema

LEVELS = 2**20
HALF = LEVELS // 2

Function = Callable[[Mapping[str, NDArray[Any]]], NDArray[Any]]
"""Arrays by column in, one number in [0,1] for each row out; NaN where nothing is known."""


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
    """One of the two exact integer totals that make the mean of a function: of its values (less 1/2), clipped to
    [0,1] and on a grid of 2^-20; or (`presence`) of the rows where it is a number, each weighing 2^19.

    Where the function is NaN the row is unknown and adds 0 to both, as a NULL does to a mean. So a row's pair is
    (0, 0), or (u, 2^19) with |u| <= 2^19: whatever comes of the function, two rows are at most 2^20 apart in L1
    and in L2.
    Requires: the value for a row depends on that row alone. Nothing can check that of Python code, which is
    why this is for local use and never offered to remote analysts.
    """

    schema: Schema
    source: RowFunction
    presence: bool = False
    by: None = None
    weight: int = HALF

    @property
    def columns(self) -> tuple[str, ...]:
        return self.source.columns

    @property
    def size(self) -> int:
        return 1

    @property
    def low(self) -> int:
        return 0 if self.presence else -HALF

    @property
    def high(self) -> int:
        return HALF

    @property
    def grid(self) -> Grid | None:
        return None if self.presence else Grid(0.5, 1 / LEVELS, -HALF, HALF, exact=False)

    def values(self, block: Block) -> NDArray[np.float64]:
        """What the function says of each row; NaN where it says nothing."""
        given = {name: readable(name, block[name], self.schema) for name in self.columns}
        length = len(next(iter(given.values())))
        try:
            found: NDArray[np.float64] | None = np.asarray(self.source.function(given), dtype=np.float64)
        except Exception:
            found = None
        # Fixed words: the function has seen the rows, so its error, its shape and its name may speak of them.
        if found is None or found.shape != (length,):
            raise DataError(
                "expected one number for each row from the function, got something else; try it on rows of your own"
            )
        return found

    def units(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """What each row adds, an integer from `low` to `high`, given the function's values."""
        known = ~np.isnan(values)
        if self.presence:
            return known * np.int64(HALF)
        steps = np.floor(np.clip(np.where(known, values, 0.5), 0.0, 1.0) * LEVELS + 0.5)
        return steps.astype(np.int64) - HALF

    def contributions(self, block: Block) -> NDArray[np.int64]:
        return self.units(self.values(block))

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
