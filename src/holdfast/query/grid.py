"""Whole steps for numbers that are added up: where a value becomes an integer."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.errors import QueryError
from holdfast.query import expression
from holdfast.query.bounds import bounds
from holdfast.query.expression import Expression
from holdfast.query.predicate import Predicate
from holdfast.query.schema import Real, Schema

LEVELS = 2**20
"""How finely a real number is cut for sums and means, unless its column declares a step."""

_LARGEST_TOTAL = 2**60


@dataclass(frozen=True, slots=True)
class Grid:
    """How a bounded number becomes an integer: floor((v - origin)/step + 1/2), clipped to [low, high].

    The rounding looks at one row alone, so the contribution of a row is an integer in [low, high] whatever
    the rest of the table holds. `exact` says that no value is moved by it (integers on their own grid).
    """

    origin: float
    step: float
    low: int
    high: int
    exact: bool

    @property
    def reach(self) -> int:
        """The greatest contribution, whatever its sign; at least 1."""
        return max(self.high, -self.low, 1)


def grid_of(
    value: Expression, where: Predicate, schema: Schema, rows: int, *, centred: bool, power: int = 1
) -> Grid:
    """Steps for the values that can be on the rows where the condition holds; their `power`s add up in int64."""
    low, high = bounds(value, where, schema)
    if expression.is_integer(value, schema):
        low, high = int(low), int(high)
        origin = (low + high) // 2 if centred else 0
        if max(high - origin, origin - low) ** power * rows < _LARGEST_TOTAL:
            return Grid(origin, 1, low - origin, high - origin, exact=True)
    declared = declared_step(value, schema)
    origin_real = (low + high) / 2 if centred else 0.0
    if centred and declared is not None:  # stay on the owner's grid
        middle = sum(expression.range(value, schema)) / 2
        origin_real = middle + round((origin_real - middle) / declared) * declared
    reach = max(high - origin_real, origin_real - low)
    step = declared or reach / LEVELS
    if not step > 0:
        raise QueryError(f"{expression.text(value)} is always the same number; there is nothing to ask")
    while (reach / step) ** power * rows >= _LARGEST_TOTAL:
        step *= 2
    bottom, top = int((low - origin_real) // step), -int((origin_real - high) // step)
    return Grid(origin_real, step, bottom, top, exact=False)


def declared_step(value: Expression, schema: Schema) -> float | None:
    """The grid that the owner declared for a plain column, if any."""
    column = schema[value.name] if isinstance(value, expression.Column) else None
    return column.grid if isinstance(column, Real) else None
