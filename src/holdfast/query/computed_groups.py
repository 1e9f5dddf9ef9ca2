"""Groups that are computed: the values of an expression, and the product of several columns' groups. All are public."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.query.evaluate import compile_expression
from holdfast.query.expression import Expression, columns
from holdfast.query.render import render_expression
from holdfast.query.schema import Schema

if TYPE_CHECKING:
    from holdfast.query.grouping import Groups


@dataclass(frozen=True, slots=True)
class ExpressionGroups:
    """The whole numbers that an expression can be, from `low` on; NULL is in none. `labels` are what they are called.

    Every number in its range is a group, whether or not the data has it.
    """

    schema: Schema
    value: Expression
    low: int
    labels: tuple[str, ...]
    column: str
    """The expression as it is written."""

    @property
    def size(self) -> int:
        return len(self.labels)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.schema.ordered(columns(self.value))

    @property
    def bounds(self) -> tuple[Any, ...]:
        """What tells these groups from others."""
        return str(self.value), self.labels

    def groups(self, block: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        """The group of each row, or -1."""
        values, null = compile_expression(self.value, self.schema)(block)
        places: NDArray[np.int64] = values - self.low
        return places if null is None else np.where(null, -1, places)

    def sql(self) -> str:
        """The group of a row as SQL over codes; NULL where the value is."""
        return f"{render_expression(self.value, self.schema)} - ({self.low})"


@dataclass(frozen=True, slots=True)
class Product:
    """The groups of several columns at once, the last one running fastest. A row without a group in one has none."""

    parts: tuple[Groups, ...]

    @property
    def size(self) -> int:
        return math.prod(part.size for part in self.parts)

    @property
    def column(self) -> str:
        return ", ".join(part.column for part in self.parts)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in part.columns))

    @property
    def bounds(self) -> tuple[Any, ...]:
        """What tells these groups from others."""
        return tuple(part.bounds for part in self.parts)

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """The labels of each group, one for each part."""
        return _keys(tuple(part.labels for part in self.parts))

    @property
    def labels(self) -> tuple[str, ...]:
        return _joined(tuple(part.labels for part in self.parts))

    def groups(self, block: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        """The group of each row, or -1."""
        places = np.zeros((), dtype=np.int64)
        for part in self.parts:
            inner = part.groups(block)
            places = np.where((places >= 0) & (inner >= 0), places * part.size + inner, -1)
        return places

    def sql(self) -> str:
        """The group of a row as SQL over codes; NULL where any part is."""
        first, *rest = self.parts
        text = f"({first.sql()})"
        for part in rest:
            text = f"({text} * {part.size} + ({part.sql()}))"
        return text


@lru_cache(maxsize=64)
def _keys(labels: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(product(*labels))


@lru_cache(maxsize=64)
def _joined(labels: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    return tuple(map(", ".join, _keys(labels)))
