"""What is added up over the rows: exact integer totals, one for each group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.query import expression, predicate
from holdfast.query.evaluate import compile_expression, compile_predicate, compiled
from holdfast.query.expression import Expression
from holdfast.query.grid import Grid
from holdfast.query.grouping import Cross, Groups
from holdfast.query.predicate import Predicate
from holdfast.query.render import render_expression, render_predicate
from holdfast.query.schema import Schema
from holdfast.query.unit_schema import Over, RowSchema, by_unit, event_rows

Block = Mapping[str, NDArray[Any]]

_EXACT = 2**53
"""Below it float64 adds whole numbers exactly, in whatever order."""


@dataclass(frozen=True)
class Measurement:
    """For each group, the sum over the rows that satisfy `where` of an integer contribution.

    With `value` None each such row contributes `weight`; otherwise it contributes its value on the grid
    (0 where the value is NULL); with `times`, the product of both numbers on their grids. On the rows where `without`
    is true it contributes nothing. Totals are int64 and exact.

    With `over` these rows are the events of units, at most `over.most` of each, and a contribution is that of a unit:
    the sum over its events. Guarantee (docs/theorems.md, Theorem 46): it lies in `over.most` times the convex hull of
    0 and what one row can contribute.
    """

    schema: Schema
    where: Predicate
    value: Expression | None = None
    grid: Grid | None = None
    by: Groups | Cross | None = None
    weight: int = 1
    over: Over | None = None
    times: tuple[Expression, Grid] | None = None
    without: Predicate | None = None

    @property
    def size(self) -> int:
        """The number of totals."""
        return 1 if self.by is None else self.by.size

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that are needed, in the schema's order."""
        if self.value is None and self.without is None and not self._grouped and self.over is None:
            return self.schema.ordered(predicate.columns(self.where))
        needed = set(predicate.columns(self.where))
        if self.value is not None:
            needed |= expression.columns(self.value)
        if self.times is not None:
            needed |= expression.columns(self.times[0])
        if self.without is not None:
            needed |= predicate.columns(self.without)
        for groups in self._grouped:
            needed.update(groups.columns)
        ordered = self.schema.ordered(needed)
        return ordered if self.over is None else (*ordered, self.over.table)

    @cached_property
    def _test(self) -> Callable[[Block], NDArray[np.bool_]]:
        """Which rows satisfy the condition."""
        return compiled(self.where, self.schema)  # a measurement is kept with its question

    def ready(self) -> Measurement:
        """The same, with all worked out that its first block would ask for."""
        _ = self.columns, self._test
        return self

    @property
    def _grouped(self) -> tuple[Any, ...]:
        """What tells rows apart."""
        return () if self.by is None else (self.by,)

    @property
    def low(self) -> int:
        """The least contribution of a row, or of all rows of a unit; 0 is always possible."""
        return 0 if self.grid is None else min(self._ends[0], 0) * self.most

    @property
    def high(self) -> int:
        """The greatest contribution of a row, or of all rows of a unit."""
        return (self.weight if self.grid is None else max(self._ends[1], 0)) * self.most

    @cached_property
    def _ends(self) -> tuple[int, int]:
        """The least and the greatest number that is added up."""
        assert self.grid is not None
        low, high = self.grid.low, self.grid.high
        if self.times is None:
            return low, high
        if self.times == (self.value, self.grid):
            return 0, max(low**2, high**2)
        other = self.times[1]
        corners = [a * b for a in (low, high) for b in (other.low, other.high)]
        return min(corners), max(corners)

    @property
    def most(self) -> int:
        """How many rows of a unit are added up."""
        return 1 if self.over is None else self.over.most

    def totals(self, block: Block) -> NDArray[np.int64]:
        """The totals over a block of rows (codes by column), or over the events of a block of units."""
        if self.value is None and self.by is None:
            return self._number_of(self._chosen(self.rows(block)))
        return self.added(Shared(self.rows(block)))

    def added(self, rows: Shared) -> NDArray[np.int64]:
        """The same over rows, some of which may have been worked out for another measurement."""
        chosen = rows.once(("where", self.where, self.without), lambda: self._chosen(rows.block))
        if self.value is None and self.by is None:
            return self._number_of(chosen)
        units = None if self.value is None else self._counted(rows, chosen, self.value, self.grid)
        if self.by is None:
            assert units is not None
            total = units.sum() if self.times is None else units @ self._counted(rows, chosen, *self.times)
            return np.array([total], dtype=np.int64)
        groups = rows.once(("groups", self.where, self.without), lambda: self._groups(rows.block, chosen))
        if units is None:
            return np.bincount(groups, minlength=self.size + 1)[: self.size].astype(np.int64) * self.weight
        if self.times is not None:
            units = units * self._counted(rows, chosen, *self.times)
        return _exact_bincount(groups, units, self.size + 1, max(-self.low, self.high))[: self.size]

    def _number_of(self, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.array([np.count_nonzero(chosen) * self.weight], dtype=np.int64)

    def _counted(
        self, rows: Shared, chosen: NDArray[np.bool_], value: Expression, grid: Grid | None
    ) -> NDArray[np.int64]:
        """A number of each row in steps; 0 where it does not count."""
        assert grid is not None

        def found() -> NDArray[np.int64]:
            units = _on_grid(value, grid, self.schema, rows.block)
            np.copyto(units, 0, where=~chosen)
            return units

        return rows.once((value, grid, self.where, self.without), found)

    def _groups(self, block: Block, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The group of each row; one more for those that are in none."""
        assert self.by is not None
        groups = self.by.groups(block)
        return np.where(chosen & (groups >= 0), groups, self.size)

    def contributions(self, block: Block) -> NDArray[Any]:
        """What each row or unit contributes, without groups: truth values if all it can be is 0 or 1."""
        if self.over is not None:
            return by_unit(self._contributions(self.rows(block)), block[self.over.table])
        return self._contributions(block)

    def rows(self, block: Block) -> Block:
        """What is added up: the rows, or the events of a block of units."""
        if self.over is None:
            return block
        assert isinstance(self.schema, RowSchema)
        return event_rows(block, self.schema)

    def _chosen(self, block: Block) -> NDArray[np.bool_]:
        chosen: NDArray[np.bool_] = self._test(block)
        return (
            chosen if self.without is None else chosen & ~compile_predicate(self.without, self.schema)(block)
        )

    def _contributions(self, block: Block) -> NDArray[Any]:
        chosen = self._chosen(block)
        units = self._units(block)
        if units is None:
            return chosen if self.weight == 1 else chosen * np.int64(self.weight)
        return np.where(chosen, units, 0)

    def _units(self, block: Block) -> NDArray[np.int64] | None:
        if self.value is None or self.grid is None:
            return None
        units = _on_grid(self.value, self.grid, self.schema, block)
        return units if self.times is None else units * _on_grid(*self.times, self.schema, block)

    def sql(self, relation: str) -> str:
        """A query for (group, total) over a relation that holds the same codes; absent groups are 0."""
        return (
            f"SELECT g, CAST(SUM(v) AS BIGINT) FROM (SELECT {self.group_sql()} AS g, {self._value_sql()} AS v "
            f"FROM {relation} WHERE {self._where_sql()}) AS t WHERE g IS NOT NULL GROUP BY g"
        )

    def group_sql(self) -> str:
        """The group of a row as SQL; NULL where it is in none."""
        assert self.over is None, "events of units are not in one relation"
        return "0" if self.by is None else self.by.sql()

    def contribution_sql(self) -> str:
        """What each row contributes, as SQL: 0 where it does not qualify."""
        return f"CASE WHEN {self._where_sql()} THEN {self._value_sql()} ELSE 0 END"

    def _where_sql(self) -> str:
        where = render_predicate(self.where, self.schema)
        if self.without is None:
            return where
        without = render_predicate(self.without, self.schema)
        return f"({where}) AND CASE WHEN {without} THEN FALSE ELSE TRUE END"

    def _value_sql(self) -> str:
        if self.value is None or self.grid is None:
            return str(self.weight)
        units = _grid_sql(self.value, self.grid, self.schema)
        return units if self.times is None else f"({units}) * ({_grid_sql(*self.times, self.schema)})"


class Shared:
    """A block of rows, and what several measurements have of it in common: each part is worked out once."""

    __slots__ = ("_found", "block")

    def __init__(self, block: Block) -> None:
        self.block = block
        self._found: dict[Any, NDArray[Any]] = {}

    def once(self, part: Any, found: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """A part of it; nobody may write to it."""
        if part not in self._found:
            self._found[part] = found()
        return self._found[part]


def _on_grid(value: Expression, grid: Grid, schema: Schema, block: Block) -> NDArray[np.int64]:
    """A number of each row in steps, in an array of its own; 0 where it is NULL."""
    values, null = compile_expression(value, schema)(block)
    if grid.exact:
        units: NDArray[np.int64] = np.subtract(values, int(grid.origin), dtype=np.int64, casting="unsafe")
        np.clip(units, grid.low, grid.high, out=units)
    else:
        scaled: NDArray[np.float64] = np.subtract(values, grid.origin, dtype=np.float64)
        scaled /= grid.step
        scaled += 0.5
        np.floor(scaled, out=scaled)
        # NaN marks NULL; it is replaced before the cast, whose result on NaN is undefined.
        np.copyto(scaled, 0.0, where=np.isnan(scaled))
        units = np.clip(scaled, grid.low, grid.high, out=scaled).astype(np.int64)
    if null is not None:
        np.copyto(units, 0, where=null)
    return units


def _grid_sql(value: Expression, grid: Grid, schema: Schema) -> str:
    """The same in SQL."""
    text = render_expression(value, schema)
    if grid.exact:
        units = f"{text} - ({int(grid.origin)})"
    else:
        units = (
            f"FLOOR((CAST({text} AS DOUBLE) - ({_double(grid.origin)})) / {_double(grid.step)}"
            " + CAST(0.5 AS DOUBLE))"
        )
    clipped = f"GREATEST(LEAST({units}, {grid.high}), {grid.low})"
    return f"COALESCE(CAST(CASE WHEN ({text}) IS NULL THEN 0 ELSE {clipped} END AS BIGINT), 0)"


def _double(number: float) -> str:
    return f"CAST('{number!r}' AS DOUBLE)"


def _exact_bincount(
    groups: NDArray[np.int64], values: NDArray[np.int64], size: int, largest: int
) -> NDArray[np.int64]:
    """Integer sums by group. `bincount` adds in float64, exactly below 2^53; halves keep each part there."""
    if len(values) == 0:
        return np.zeros(size, dtype=np.int64)
    if largest * len(values) < _EXACT:
        return np.bincount(groups, weights=values, minlength=size).astype(np.int64)
    high, low = values >> 31, values & (2**31 - 1)
    sums = [np.bincount(groups, weights=part, minlength=size).astype(np.int64) for part in (high, low)]
    total: NDArray[np.int64] = (sums[0] << 31) + sums[1]
    return total
