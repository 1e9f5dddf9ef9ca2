"""How much more often one condition holds than another, on the same rows; and how often exactly one of them does."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.query import predicate
from holdfast.query.evaluate import compile_predicate
from holdfast.query.grid import Grid
from holdfast.query.measurement import Block
from holdfast.query.predicate import Predicate
from holdfast.query.render import render_predicate
from holdfast.query.schema import Schema


@dataclass(frozen=True)
class DifferenceMeasurement:
    """The sum over the rows of f = [first holds] - [second holds], or (`disagreement`) of |f|.

    A row adds -1, 0 or 1. As everywhere a condition holds where SQL's WHERE is true, so what is unknown does not.
    """

    schema: Schema
    first: Predicate
    second: Predicate
    disagreement: bool = False
    by: None = None
    weight: int = 1
    size: int = 1

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that are needed, in the schema's order."""
        needed = predicate.columns(self.first) | predicate.columns(self.second)
        return self.schema.ordered(needed)

    @property
    def grid(self) -> Grid:
        """f is a number on its own grid: a row that changes moves its sum by `high` - `low`."""
        return Grid(0, 1, self.low, self.high, exact=True)

    @property
    def low(self) -> int:
        return 0 if self.disagreement or self.first == self.second else -1

    @property
    def high(self) -> int:
        return 0 if self.first == self.second else 1

    def contributions(self, block: Block) -> NDArray[Any]:
        """What each row adds."""
        first, second = (
            compile_predicate(part, self.schema)(block).astype(np.int64) for part in (self.first, self.second)
        )
        found: NDArray[np.int64] = first - second
        return np.abs(found) if self.disagreement else found

    def totals(self, block: Block) -> NDArray[np.int64]:
        """The sum over a block of rows (codes by column)."""
        return np.array([self.contributions(block).sum(dtype=np.int64)], dtype=np.int64)

    def sql(self, relation: str) -> str:
        """A query for (0, total) over a relation that holds the same codes."""
        first, second = (
            f"CASE WHEN {render_predicate(part, self.schema)} THEN 1 ELSE 0 END"
            for part in (self.first, self.second)
        )
        one = f"{first} - {second}"
        value = f"ABS({one})" if self.disagreement else one
        return f"SELECT 0, CAST(COALESCE(SUM({value}), 0) AS BIGINT) FROM {relation}"
