"""A finite universe: the cells of chosen columns with public bins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.check import shown
from holdfast.errors import InputError, QueryError
from holdfast.query.column import ColumnType, Real
from holdfast.query.grouping import Grouping, declared_groups, is_list
from holdfast.query.predicate import IsNull
from holdfast.query.ranges import before, domain
from holdfast.query.render import render_predicate
from holdfast.query.schema import Schema

MAX_CELLS = 2**26
"""What one float64 array of half a gigabyte holds; a GPU may be given more."""

WIDE = 2**32
"""More cells than this are never listed, on no device."""

REAL_BINS = 32
"""How many bins a Real has without edges: every further column multiplies the cells."""


@dataclass(frozen=True, slots=True)
class Universe:
    """The product of the groups of several columns, in C order: the last axis runs fastest.

    A column among `nulls` has one more group, its last, for NULL: no value is there, so a condition on a value is
    false there, and IS NULL is true. A row lies in one cell; or in none, if it has a value outside the declared
    edges, or a NULL in a column that is not among `nulls`: it is `outside`, and satisfies no question. Nothing is
    learnt from the rows.
    """

    schema: Schema
    axes: tuple[Grouping, ...]
    nulls: frozenset[str] = frozenset()

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of groups of each column."""
        return tuple(axis.size + (axis.column in self.nulls) for axis in self.axes)

    @property
    def size(self) -> int:
        """The number of cells, without the outside."""
        return math.prod(self.shape)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(axis.column for axis in self.axes)

    @property
    def is_complete(self) -> bool:
        """Whether every row lies in a cell, whatever the rows are."""
        return all(
            axis.column in self.nulls and _covers(axis, self.schema[axis.column]) for axis in self.axes
        )

    @property
    def points(self) -> int:
        """The number of places where a row can be: the cells, and the outside unless none lies there."""
        return self.size + (not self.is_complete)

    def axis(self, column: str) -> int:
        """The position of a column, however it is written."""
        if column not in self.columns:
            column = self.schema.spelling(column) or column
        if column not in self.columns:
            raise QueryError(
                f"column {column!r} is not in this universe, which has {', '.join(self.columns)}; "
                "open one that includes it"
            )
        return self.columns.index(column)

    def groups(self, block: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        """The cell of each row, or -1."""
        cells = np.zeros((), dtype=np.int64)
        for place, size in enumerate(self.shape):
            inner = self.own_groups(place, block)
            cells = np.where((cells >= 0) & (inner >= 0), cells * size + inner, -1)
        return cells

    def own_groups(self, place: int, block: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        """The group of each row in one column, or -1."""
        axis = self.axes[place]
        inner = axis.groups(block)
        if axis.column in self.nulls:
            codes, kind = block[axis.column], self.schema[axis.column]
            null = np.isnan(codes) if isinstance(kind, Real) else codes == kind.null_code
            inner = np.where(null, axis.size, inner)
        return inner

    def sql(self) -> str:
        """The cell of a row as SQL over codes; NULL where it has none."""
        text = ""
        for axis, size in zip(self.axes, self.shape, strict=True):
            inner = f"({axis.sql()})"
            if axis.column in self.nulls:
                null = render_predicate(IsNull(axis.column), self.schema)
                inner = f"(CASE WHEN {null} THEN {axis.size} ELSE {inner} END)"
            text = f"({text} * {size} + {inner})" if text else inner
        return text

    def identity(self) -> list[Any]:
        """What tells two universes apart, as JSON."""
        return [[axis.column, list(axis.bounds), axis.column in self.nulls] for axis in self.axes]


def _covers(axis: Grouping, kind: ColumnType) -> bool:
    """Whether every value of a column is in one of the groups."""
    low, high = domain(kind)
    return axis.bounds[0] <= low and high <= before(axis.bounds[-1])


def universe(
    schema: Schema,
    columns: Sequence[str],
    edges: Mapping[str, Sequence[Any]] | None = None,
    *,
    nulls: Sequence[str] | None = None,
    most: int = MAX_CELLS,
) -> Universe:
    """The universe of some columns; `edges` gives the bins of those that should not have their default ones.

    `nulls` are the columns with a group for NULL: without it all of them, because whatever cannot be read is NULL.
    Where others are known to have none, naming the rest saves cells: 26 truth values are 2^26 cells without NULL.
    Requires: distinct declared columns, at most `most` cells. Nearby questions are quickest where the columns
    that are most often fixed come first and long, rarely fixed ones last.
    """
    _refuse_no_columns(columns)
    given = _edges_by_column(edges, columns)
    nullable = columns if nulls is None else nulls
    if not is_list(nullable) or not all(isinstance(name, str) and name in columns for name in nullable):
        raise InputError(f"expected nulls= as a list of some of the columns, got {shown(nullable)}")
    spelt = {column: schema.spelling(column) or column for column in columns}
    _refuse_no_columns(list(spelt.values()))
    axes = tuple(_axis(schema, name, given.get(column)) for column, name in spelt.items())
    made = Universe(schema, axes, frozenset(spelt[column] for column in nullable))
    if made.size > most:
        raise InputError(
            f"expected at most {most:,} cells, got {made.size:,} ({' x '.join(map(str, made.shape))}); choose fewer "
            "columns, give coarser edges, or name in nulls= the columns that may be NULL (each has a group for it)"
        )
    return made


def _refuse_no_columns(columns: Sequence[str]) -> None:
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise InputError(f"expected a list of column names, got {shown(columns)}")
    if not all(isinstance(column, str) for column in columns) or len(set(columns)) != len(columns):
        raise InputError(f"expected distinct column names, got {shown(columns)}")


def _edges_by_column(
    edges: Mapping[str, Sequence[Any]] | None, columns: Sequence[str]
) -> dict[str, Sequence[Any]]:
    if edges is not None and not isinstance(edges, Mapping):
        raise InputError(f"expected edges= as a dict from columns to their edges, got {shown(edges)}")
    unknown = [name for name in edges or {} if name not in columns]
    if unknown:
        raise InputError(f"expected edges of some of the columns, got them for {unknown}")
    return dict(edges or {})


def _axis(schema: Schema, column: str, edges: Sequence[Any] | None) -> Grouping:
    kind = schema.get(column)
    if edges is None and isinstance(kind, Real):
        edges = np.linspace(kind.lo, kind.hi, REAL_BINS + 1).tolist()
    return declared_groups(schema, column, edges)
