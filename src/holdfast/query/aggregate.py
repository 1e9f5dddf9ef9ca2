"""What the events of a unit say of it, as a column of the unit with a declared range."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import QueryError
from holdfast.query import expression, predicate
from holdfast.query.column import INTEGER_LIMIT, Boolean, ColumnType, Integer, Real
from holdfast.query.evaluate import compile_expression, compile_predicate
from holdfast.query.expression import Column, Expression
from holdfast.query.grid import declared_step
from holdfast.query.predicate import Always, Predicate
from holdfast.query.unit_schema import RowSchema, by_unit, counted, event_rows
from holdfast.query.wording import Spelt

Kind = Literal["count", "exists", "sum", "avg", "min", "max", "first", "last"]
KINDS: tuple[Kind, ...] = ("count", "exists", "sum", "avg", "min", "max", "first", "last")
_ADDED = ("sum", "avg")


@dataclass(frozen=True)
class Aggregate:
    """A number, a truth value, a date or a text for each unit, from those of its events that satisfy `where`.

    It is total: every unit has one, NULL where there is no such event to take it from. Real numbers are put on their
    grid one by one and added as whole numbers, so that a sum does not depend on the order of the events.
    Guarantee: what it is for a unit depends on the events of that unit alone.
    """

    schema: RowSchema
    kind: Kind
    value: Expression | None
    where: Predicate

    def __post_init__(self) -> None:
        if self.kind in ("first", "last") and self.schema.of.events[self.schema.table].order is None:
            raise QueryError(
                f"{self.kind} needs an order of the rows of {self.schema.table}, and none was declared; the owner says "
                f'order={{"{self.schema.table}": column}} at the opening'
            )
        if self.value is None or self.kind in _ADDED:
            return
        if not isinstance(self.value, Column) or self.value.name not in self.schema.own:
            raise QueryError(f"{self.kind} takes a column of events, not arithmetic; name one")

    @property
    def name(self) -> Spelt:
        """The name of the column, which is the way it is written."""
        what = self.schema.table if self.value is None else str(self.value)
        return Spelt(
            f"{self.kind}({what})" if isinstance(self.where, Always) else f"{self.kind}({what}, {self.where})"
        )

    @cached_property
    def type(self) -> ColumnType:
        """The declared type and range, from the schema and the bound on the events of a unit."""
        most = self.schema.over.most
        if self.kind == "exists":
            return Boolean()
        if self.value is None:
            return Integer(0, most)
        if self.kind not in _ADDED:
            assert isinstance(self.value, Column)
            return self.schema[self.value.name]
        low, high = expression.range(self.value, self.schema)
        if self.kind == "avg":
            return Real(float(low), float(high))
        low, high = most * min(low, 0), most * max(high, 0)
        if max(-low, high) >= INTEGER_LIMIT // 2:
            raise QueryError(
                f"{self.name} may leave ±2^61, where integers are no longer exact; scale it down"
            )
        if expression.is_integer(self.value, self.schema):
            return Integer(int(low), int(high))
        return Real(float(low), float(high))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """What has to be read of the unit and its events, and the table's name: how many there are."""
        needed = set(predicate.columns(self.where))
        if self.value is not None:
            needed |= expression.columns(self.value)
        if self.kind in ("first", "last"):
            needed.add(self._order)
        return (*self.schema.ordered(needed), self.schema.table)

    @property
    def _order(self) -> str:
        order = self.schema.of.events[self.schema.table].order
        found = None if order is None else self.schema.spelling(f"{self.schema.table}.{order}")
        assert found is not None
        return found

    def codes(self, block: dict[str, NDArray[Any]]) -> NDArray[Any]:
        """The codes of the column, one for each unit of the block."""
        lengths = block[self.schema.table]
        if self.value is None and isinstance(self.where, Always):
            return self._told(lengths)
        rows = event_rows(block, self.schema, owners=self.value is not None and self.kind not in _ADDED)
        chosen = counted(compile_predicate(self.where, self.schema)(rows), lengths)
        if self.value is None:
            return self._told(by_unit(chosen, lengths))
        if self.kind in _ADDED:
            return self._added(rows, chosen, lengths)
        assert isinstance(self.value, Column)
        return self._picked(rows, self.value.name, chosen, len(lengths))

    def _told(self, counts: NDArray[np.int64]) -> NDArray[Any]:
        found = counts > 0 if self.kind == "exists" else counts
        return found.view(np.ndarray).astype(self.type.dtype)

    def _added(
        self, rows: dict[str, NDArray[Any]], chosen: NDArray[np.bool_], lengths: NDArray[np.int64]
    ) -> NDArray[Any]:
        assert self.value is not None
        values, null = compile_expression(self.value, self.schema)(rows)
        chosen = chosen if null is None else chosen & ~null
        kind, step = self.type, 1.0
        if not expression.is_integer(self.value, self.schema):
            low, high = expression.range(self.value, self.schema)
            step = declared_step(self.value, self.schema) or (high - low) / 2**20
            while max(-low, high) / step * self.schema.over.most >= INTEGER_LIMIT // 2:
                step *= 2
            values = np.floor(np.nan_to_num(values) / step + 0.5)
        sums = by_unit(np.where(chosen, values, 0).astype(np.int64), lengths)
        if isinstance(kind, Integer):
            return (sums - kind.lo).astype(kind.dtype)
        assert isinstance(kind, Real)
        if self.kind == "sum":
            clipped: NDArray[Any] = np.clip(sums * step, kind.lo, kind.hi) + 0.0
            return clipped
        counts = by_unit(chosen, lengths)
        means = np.clip(sums * step / np.maximum(counts, 1), kind.lo, kind.hi) + 0.0
        return np.where(counts > 0, means, np.nan)

    def _picked(
        self, rows: dict[str, NDArray[Any]], name: str, chosen: NDArray[np.bool_], units: int
    ) -> NDArray[Any]:
        """The code of one event of each unit; NULL where there is none."""
        key = self._order if self.kind in ("first", "last") else name
        codes, column = rows[key], self.schema[key]
        known = ~np.isnan(codes) if isinstance(column, Real) else codes < column.null_code
        places = np.flatnonzero(chosen & known)
        owners, keys = rows[self.schema.table][places], codes[places]
        # Among equals the one that is kept first (or last) is taken: the order within a unit is its own.
        order = np.lexsort((np.arange(len(places)), keys, owners))
        owners, places = owners[order], places[order]
        edge = np.ones(len(owners), dtype=np.bool_)
        change = owners[1:] != owners[:-1]
        if self.kind in ("min", "first"):
            edge[1:] = change
        else:
            edge[:-1] = change
        kind = self.type
        result = np.full(units, kind.null_code, dtype=kind.dtype)
        result[owners[edge]] = rows[name][places[edge]]
        return result
