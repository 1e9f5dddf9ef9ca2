"""How many different values occur: a number that one row moves by at most one, and no sum over the rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError, QueryError
from holdfast.query.computed_groups import ExpressionGroups
from holdfast.query.dictionary import texts_of
from holdfast.query.grouping import Grouping
from holdfast.query.measurement import Block, Measurement
from holdfast.query.schema import Real, Schema, Text

_MARKED = 2**24
"""Up to so many values are ticked off in a table of marks; more of them are sorted."""
_PLACES = 2**62
"""How many pairs of a group and a value can be told apart."""


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """The values of a column: `size` of them are declared; None for texts, of which a dictionary knows the number."""

    column: str
    size: int | None

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def bounds(self) -> tuple[Any, ...]:
        """What tells these values from others."""
        return (self.size,)

    def groups(self, block: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        """The code of each row's value, or -1."""
        codes = np.asarray(block[self.column]).astype(np.int64)
        return np.where(codes < self.among(block), codes, -1)

    def among(self, block: Mapping[str, NDArray[Any]]) -> int:
        """How many codes there are; of texts that is secret."""
        return len(texts_of(block[self.column]).words.texts) if self.size is None else self.size


Values: TypeAlias = ColumnValues | Grouping | ExpressionGroups
"""What is told apart: values of a column, or what is computed from some."""


@dataclass(frozen=True)
class DistinctMeasurement(Measurement):
    """For each group, how many values of `of` the rows that satisfy `where` have; NULL is none.

    Guarantee (docs/theorems.md, Theorem 139): a row moves the number of the group that it leaves, and of the one that
    it enters, by at most one each; without groups it moves the number by at most one. It is no sum over rows, so no
    part of the rows can be counted by itself.
    """

    of: Values | None = None

    @property
    def _grouped(self) -> tuple[Any, ...]:
        assert self.of is not None
        return self.of, *super()._grouped

    def most_values(self, rows: int) -> int:
        """The greatest number that is possible, from public numbers."""
        assert self.of is not None
        return min(rows * self.most, rows * self.most if self.of.size is None else self.of.size)

    def counted(self, blocks: Iterable[Block]) -> NDArray[np.int64]:
        """The numbers, over all blocks of the rows."""
        marks, seen, many = np.zeros(0, np.bool_), np.zeros(0, np.int64), 1
        for rows in map(self.rows, blocks):
            places, many = self._places(rows)
            if self.size * many > _MARKED:
                seen = np.union1d(seen, places)
                continue
            marks = marks if len(marks) else np.zeros(self.size * many, np.bool_)
            marks[places] = True
        seen = np.flatnonzero(marks) if len(marks) else seen
        return np.bincount(seen // max(many, 1), minlength=self.size).astype(np.int64)

    def totals(self, block: Block) -> NDArray[np.int64]:
        raise InputError("expected all blocks of the rows, got one; distinct values of parts do not add up")

    def sql(self, relation: str) -> str:
        raise InputError("expected what an engine adds up, got distinct values; read the rows")

    def _places(self, rows: Block) -> tuple[NDArray[np.int64], int]:
        """The values of the rows that qualify, those of each group by themselves; and how many a group can have."""
        assert self.of is not None
        values = self.of.groups(rows)
        many = self.of.among(rows) if isinstance(self.of, ColumnValues) else self.of.size
        chosen = self._chosen(rows) & (values >= 0)
        if self.by is None:
            return values[chosen], many
        groups = self.by.groups(rows)
        chosen &= groups >= 0
        return groups[chosen] * many + values[chosen], many


def column_values(schema: Schema, column: str, groups: int) -> ColumnValues:
    """The values of a declared column, to be told apart in so many groups."""
    kind = schema[column]
    if isinstance(kind, Real):
        raise QueryError(
            f"{column!r} is a real column, of which nearly every row has a value of its own; count the distinct values "
            f"of floor({column})"
        )
    if isinstance(kind, Text):
        return ColumnValues(column, None)
    if kind.codes * groups >= _PLACES:
        raise QueryError(f"{column!r} has too many values to be told apart; declare a narrower range")
    return ColumnValues(column, kind.codes)
