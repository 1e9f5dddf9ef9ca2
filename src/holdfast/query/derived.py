"""Statistics that are functions of several sums: which totals they need, and how far these move together.

All totals of a question are told as one vector under one charge. What follows from them is in `propagation`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.query import joint
from holdfast.query.expression import Expression
from holdfast.query.grid import Grid, grid_of
from holdfast.query.joint import Joint
from holdfast.query.measurement import Measurement
from holdfast.query.predicate import Always, Never, Predicate, conjunction
from holdfast.query.presence import known
from holdfast.query.schema import Schema

if TYPE_CHECKING:
    from holdfast.query.statistic import Statistic

Parts = tuple[tuple[Measurement, ...], Joint]


def derived(statistic: Statistic, schema: Schema, rows: int, most: int) -> Parts:
    """The totals that a statistic needs, and how far they move together."""
    made, together = _PARTS[statistic.kind](statistic, schema, rows * most)
    return made, together.times(most)


def _groups(statistic: Statistic) -> int:
    return 1 if statistic.by is None else statistic.by.size


def _share(statistic: Statistic, schema: Schema, rows: int) -> Parts:
    return _share_of(statistic, statistic.where, schema), joint.shares(_groups(statistic))


def _share_of(statistic: Statistic, where: Predicate, schema: Schema) -> tuple[Measurement, ...]:
    """The rows on which the condition holds, and the others: those where it is false, or all where it is not true."""
    chosen, against = statistic.chosen, statistic.against
    assert chosen is not None
    first = Measurement(schema, conjunction(where, chosen), by=statistic.by, over=statistic.over)
    if against is None:
        return first, Measurement(schema, where, by=statistic.by, over=statistic.over, without=chosen)
    return first, Measurement(schema, conjunction(where, against), by=statistic.by, over=statistic.over)


def _ratio(statistic: Statistic, schema: Schema, rows: int) -> Parts:
    made = []
    for value in (statistic.value, *statistic.values):
        assert value is not None
        present = _known(statistic.where, schema, value)
        grid = grid_of(value, present, schema, rows, centred=False)
        made.append(Measurement(schema, present, value, grid, statistic.by, over=statistic.over))
    spreads = tuple((m.high - m.low) // m.most for m in made)
    scales = tuple(max(-m.low, m.high, m.most) // m.most for m in made)
    return tuple(made), joint.sums(spreads, scales, _groups(statistic))


def _moments(statistic: Statistic, schema: Schema, rows: int) -> Parts:
    assert statistic.value is not None
    values = (statistic.value, *statistic.values)
    squares, products = statistic.kind != "covariance", len(values) > 1
    made, grids = _moments_of(statistic, statistic.where, values, schema, rows, squares, products)
    reaches = tuple(grid.reach for grid in grids)
    return made, joint.moments(reaches, _groups(statistic), squares=squares, products=products)


def _moments_of(
    statistic: Statistic,
    where: Predicate,
    values: tuple[Expression, ...],
    schema: Schema,
    rows: int,
    squares: bool,
    products: bool,
) -> tuple[tuple[Measurement, ...], tuple[Grid, ...]]:
    """The count of the rows where all are known, their sums, squares and products, in the order of `joint.moments`."""
    present = _known(where, schema, *values)
    power = 2 if squares or products else 1
    grids = tuple(grid_of(value, present, schema, rows, centred=True, power=power) for value in values)
    parts = list(zip(values, grids, strict=True))
    by, over = statistic.by, statistic.over
    made = [Measurement(schema, present, by=by, over=over)]
    made += [Measurement(schema, present, *part, by, over=over) for part in parts]
    if squares:
        made += [Measurement(schema, present, *part, by, over=over, times=part) for part in parts]
    if products:
        made += [
            Measurement(schema, present, *part, by, over=over, times=other)
            for place, part in enumerate(parts)
            for other in parts[place + 1 :]
        ]
    return tuple(made), grids


def _contrast(statistic: Statistic, schema: Schema, rows: int) -> Parts:
    """The mean of a number, or the share of a condition, where one condition holds and where another does."""
    assert statistic.compared is not None
    one, other = statistic.where, statistic.compared
    apart = isinstance(conjunction(one, other), Never)
    if statistic.value is None:
        made = (*_share_of(statistic, one, schema), *_share_of(statistic, other, schema))
        return made, joint.shares(2).apart() if apart else joint.shares(1).twice()
    grid = grid_of(statistic.value, _known(Always(), schema, statistic.value), schema, rows, centred=True)
    parts: tuple[Measurement, ...] = ()
    for where in (one, other):
        present = _known(where, schema, statistic.value)
        parts += (
            Measurement(schema, present, over=statistic.over),
            Measurement(schema, present, statistic.value, grid, over=statistic.over),
        )
    if apart:
        return parts, joint.moments((grid.reach,), 2, squares=False, products=False).apart()
    return parts, joint.moments((grid.reach,), 1, squares=False, products=False).twice()


def _known(where: Predicate, schema: Schema, *values: Expression) -> Predicate:
    """The rows where it holds and every number is known."""
    return conjunction(where, known(*values, schema=schema))


_PARTS: dict[str, Callable[..., Parts]] = {
    "share": _share, "ratio": _ratio, "contrast": _contrast,
    "regression": _moments, "slope": _moments, "intercept": _moments, "r2": _moments,
    "variance": _moments, "std": _moments, "covariance": _moments, "correlation": _moments,
}  # fmt: skip
