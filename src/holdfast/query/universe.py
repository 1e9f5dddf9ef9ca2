"""A finite universe: the cells of chosen columns with public bins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError, QueryError
from holdfast.query.grouping import Grouping, grouping
from holdfast.query.schema import Schema

MAX_CELLS = 2**26
"""What one float64 array of half a gigabyte holds; a GPU may be given more."""


@dataclass(frozen=True, slots=True)
class Universe:
    """The product of the groups of several columns, in C order: the last axis runs fastest.

    A row whose columns are all known lies in one cell. A row with a NULL (or outside the declared edges) in
    any of them lies in none: it is `outside`, and satisfies no question. Nothing is learnt from the rows.
    """

    schema: Schema
    axes: tuple[Grouping, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of groups of each column."""
        return tuple(axis.size for axis in self.axes)

    @property
    def size(self) -> int:
        """The number of cells, without the outside."""
        return math.prod(self.shape)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(axis.column for axis in self.axes)

    def axis(self, column: str) -> int:
        """The position of a column."""
        if column not in self.columns:
            raise QueryError(
                f"column {column!r} is not in this universe, which has {', '.join(self.columns)}; "
                "open one that includes it"
            )
        return self.columns.index(column)

    def groups(self, block: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        """The cell of each row, or -1."""
        cells = self.axes[0].groups(block)
        for axis in self.axes[1:]:
            inner = axis.groups(block)
            cells = np.where((cells >= 0) & (inner >= 0), cells * axis.size + inner, -1)
        return cells

    def sql(self) -> str:
        """The cell of a row as SQL over codes; NULL where any column has no group."""
        text = f"({self.axes[0].sql()})"
        for axis in self.axes[1:]:
            text = f"({text} * {axis.size} + ({axis.sql()}))"
        return text

    def identity(self) -> list[Any]:
        """What tells two universes apart, as JSON."""
        return [[axis.column, list(axis.bounds)] for axis in self.axes]


def universe(
    schema: Schema,
    columns: Sequence[str],
    edges: Mapping[str, Sequence[Any]] | None = None,
    *,
    most: int = MAX_CELLS,
) -> Universe:
    """The universe of some columns; `edges` gives the bins of those that should not have their default ones.

    Requires: distinct declared columns, at most `most` cells. Nearby questions are quickest where the columns
    that are most often fixed come first and long, rarely fixed ones last.
    """
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise InputError(f"expected a list of column names, got {columns!r}")
    given = dict(edges or {})
    if len(set(columns)) != len(columns):
        raise InputError(f"expected distinct columns, got {', '.join(map(repr, columns))}")
    unknown = set(given) - set(columns)
    if unknown:
        raise InputError(f"edges are given for {sorted(unknown)}, which are not among the columns")
    made = Universe(schema, tuple(grouping(schema, column, given.get(column)) for column in columns))
    if made.size > most:
        raise InputError(
            f"expected at most {most:,} cells, got {made.size:,} ({' x '.join(map(str, made.shape))}); "
            "choose fewer columns or give coarser edges"
        )
    return made
