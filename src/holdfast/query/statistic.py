"""What may be asked of a table, with its range and its sensitivity."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from holdfast.query import expression
from holdfast.query.computed_groups import Product
from holdfast.query.derived import derived
from holdfast.query.difference import DifferenceMeasurement
from holdfast.query.distinct import DistinctMeasurement, Values
from holdfast.query.expression import Expression
from holdfast.query.function import FunctionMeasurement, RowFunction
from holdfast.query.grid import LEVELS, Grid, grid_of
from holdfast.query.grouping import Cross, Grouping, Groups
from holdfast.query.joint import Joint
from holdfast.query.measurement import Measurement
from holdfast.query.predicate import Always, Predicate, conjunction
from holdfast.query.presence import known
from holdfast.query.schema import Schema
from holdfast.query.sums import Sums, summed
from holdfast.query.unit_schema import Over, UnitSchema

Kind = Literal[
    "fraction", "count", "sum", "mean", "histogram", "quantile", "difference", "share", "ratio", "variance", "std",
    "covariance", "correlation", "contrast", "regression", "slope", "intercept", "r2", "quantiles", "independence",
    "distinct",
]  # fmt: skip
LINES = ("slope", "intercept", "r2")
"""What is said of the line of one number by another, in each group."""
DERIVED = (
    "share", "ratio", "variance", "std", "covariance", "correlation", "contrast", "regression", *LINES
)  # fmt: skip
"""Those that are read off several totals, told together (`holdfast.query.derived`)."""
Neighbours = Literal["replace-one", "add-remove"]

_TRUTHS = Grid(0, 1, 0, 1, exact=True)
"""What a fraction of events adds up: 1 where the condition holds."""


def digest(text: str) -> str:
    """32 letters that stand for a text; no two texts are known that have the same."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class _Spelt:
    """What a question is called, and the totals that answer it, worked out once and kept with it: a known text has one
    question."""

    __slots__ = ("_key", "_text", "_totals")
    _text: str
    _key: str
    _totals: tuple[Schema, int, tuple[Any, ...]]
    """Of which columns, of how many rows, and the totals: the parts of a `Workload` beside the question. Kept whole, it
    would keep the question that keeps it, and both would stay long after the last answer."""


@dataclass(frozen=True, slots=True)
class Statistic(_Spelt):
    """A public question: what is computed, over which rows, for which groups.

    Equal questions are equal values. `value` is the number that is added up (sum, mean) or whose quantile is
    wanted; `by` gives one result for each declared group; a quantile has a `rank` and the `bins` among which
    its value is chosen.
    """

    kind: Kind
    where: Predicate
    value: Expression | None = None
    by: Groups | None = None
    rank: Fraction | None = None
    bins: Grouping | None = None
    function: RowFunction | None = None
    over: Over | None = None
    """The events that it is about; None if it is about rows, or about units."""
    other: Predicate | None = None
    """Of a difference, the condition that is taken away."""
    expect: Fraction | None = None
    """Of a difference, on which share of the rows the conditions are guessed to disagree."""
    values: tuple[Expression, ...] = ()
    """The other numbers of a ratio (the divisor), a covariance, a correlation or a regression (the features)."""
    chosen: Predicate | None = None
    """Of a share, the condition whose share is wanted; of a contrast, that whose shares are compared."""
    against: Predicate | None = None
    """Where that condition counts as false; None is wherever it is not true."""
    compared: Predicate | None = None
    """Of a contrast, the rows that `where`'s are compared with."""
    sample: bool = False
    """Whether a variance or covariance is that of a sample: n/(n-1) times as much."""
    ranks: tuple[Fraction, ...] = ()
    """Of several quantiles, the rank of each."""
    running: bool = False
    """Whether the groups of the last column are added up one after another."""
    cells: Product | None = None
    """Of two columns whose independence is asked about, the groups of both."""
    distinct: Values | None = None
    """Of what the different values are counted."""
    brought: str = ""
    """What tells the contents of the public tables that the question brings, and are no table's."""

    def __str__(self) -> str:
        try:
            return self._text
        except AttributeError:
            object.__setattr__(self, "_text", self._written())
            return self._text

    def _written(self) -> str:
        if self.kind in DERIVED:
            return self._derived_text()
        if self.other is not None:
            return f"difference of (where {self.where}) and (where {self.other})"
        if self.function is not None:
            return f"mean of {self.function}"
        subject = "" if self.value is None else expression.text(self.value)
        if self.bins is not None:
            subject = ", ".join([self.bins.column, *map(str, self.ranks or (self.rank,))])
        if self.cells is not None:
            subject = self.cells.column
        if self.distinct is not None:
            subject = self.distinct.column
        kind = f"running {self.kind}" if self.running else self.kind
        parts = [f"{kind}({subject})" if subject else kind]
        if not isinstance(self.where, Always):
            parts.append(f"where {self.where}")
        if self.by is not None:
            parts.append(f"by {self.by.column}")
        if self.over is not None:
            parts.append(str(self.over))
        return " ".join(parts)

    def _derived_text(self) -> str:
        parts = [expression.text(value) for value in (self.value, *self.values) if value is not None]
        if self.chosen is not None:
            parts = [str(self.chosen) if self.against is None else f"known: {self.chosen}"]
        text = f"{'sample ' if self.sample else ''}{self.kind}({', '.join(parts)})"
        if self.compared is not None:
            return f"{text} between (where {self.where}) and (where {self.compared})" + self._about()
        return text + ("" if isinstance(self.where, Always) else f" where {self.where}") + self._about()

    def _about(self) -> str:
        by = "" if self.by is None else f" by {self.by.column}"
        return by if self.over is None else f"{by} {self.over}"

    @property
    def labels(self) -> tuple[str, ...] | None:
        """What the numbers of an answer are of, where it has several."""
        if self.kind == "regression":
            return ("intercept", *map(expression.text, self.values))
        if self.ranks and self.by is not None:
            return tuple(f"{group}, {rank}" for group in self.by.labels for rank in self._rank_labels)
        return self._rank_labels or None if self.by is None else self.by.labels

    @property
    def _rank_labels(self) -> tuple[str, ...]:
        return tuple(f"{float(rank):g}" for rank in self.ranks)

    @property
    def keys(self) -> tuple[tuple[str, ...], ...] | None:
        """With groups of several columns, the label of each group in each of them."""
        of_groups = self.by.keys if isinstance(self.by, Product) else None
        if not self.ranks or self.by is None:
            return of_groups
        return tuple(
            (*key, rank)
            for key in of_groups or zip(self.by.labels, strict=True)
            for rank in self._rank_labels
        )

    @property
    def key_names(self) -> tuple[str, ...] | None:
        """What these columns are called."""
        several = self.by.parts if isinstance(self.by, Product) else None
        if not self.ranks or self.by is None:
            return None if several is None else tuple(part.column for part in several)
        return (*(part.column for part in several or (self.by,)), "rank")

    @property
    def key(self) -> str:
        """A short digest of `identity`."""
        try:
            return self._key
        except AttributeError:
            object.__setattr__(self, "_key", digest(self.identity))
            return self._key

    @property
    def identity(self) -> str:
        """A text that is equal exactly when the questions are."""
        token = "" if self.function is None else self.function.token
        token += "" if self.expect is None else f"expect {self.expect}"
        token += f" with {self.brought}" if self.brought else ""
        groups = (self.by, self.bins, self.cells, *(() if self.distinct is None else (self.distinct,)))
        return f"{self} {token} {[None if each is None else each.bounds for each in groups]}"


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far the whole vector of integer totals can move when one row does; of `joint` totals in their scales."""

    l1: int | Fraction
    l2_squared: int | Fraction


@dataclass(frozen=True, slots=True)
class Workload:
    """The integer totals that answer a statistic, and what one unit of a total is worth.

    A total of u units stands for u*unit in the statistic's own scale; `rounding` bounds how far putting every
    row on the grid can have moved the result.
    """

    statistic: Statistic
    measurements: tuple[Measurement | FunctionMeasurement | DifferenceMeasurement, ...]
    unit: float
    rounding: float
    joint: Joint | None = None
    """How far the totals of a derived statistic move together, and in which scales they get their noise."""
    sums: Sums | None = None
    """What is read off sums of them, where it is."""

    @property
    def size(self) -> int:
        """The number of totals, over all measurements."""
        return sum(measurement.size for measurement in self.measurements)

    @property
    def most(self) -> int:
        """How many rows of a unit are added up; 1 where the rows are the units."""
        return 1 if self.statistic.over is None else self.statistic.over.most

    @property
    def shape(self) -> tuple[object, ...]:
        """What a plan depends on: all of the question but which rows it chooses, with the ranges of the totals as they
        are measured. These follow from the condition, the numbers and where they are known, so no part of it may be
        guessed from the question alone: a plan for narrow totals has too little noise for wider ones."""
        asked = self.statistic
        totals = tuple((type(m), m.low, m.high, m.weight, m.grid, m.size) for m in self.measurements)
        compared = (asked.other is not None, asked.other == asked.where, asked.compared is not None)
        question = (asked.kind, asked.value, asked.values, asked.by, asked.rank, asked.bins, asked.function)
        rest = (asked.over, asked.expect, asked.sample, self.unit, self.rounding, self.joint)
        summed = (asked.ranks, asked.running, asked.cells, asked.distinct)
        return question + compared + rest + summed + totals

    @property
    def is_ratio(self) -> bool:
        """Whether it is a sum over a count of rows, both secret."""
        return len(self.measurements) == 2 and self.joint is None

    @property
    def depends(self) -> bool:
        """Whether its width depends on how many rows qualify, which is secret."""
        return self.is_ratio or (self.joint is not None and self.sums is None)

    @property
    def scales(self) -> tuple[int, ...]:
        """By how much the noise of each measurement is multiplied."""
        return (1,) * len(self.measurements) if self.joint is None else self.joint.scales

    def sensitivity(self, neighbours: Neighbours = "replace-one") -> Sensitivity:
        """How far all totals together can move.

        Guarantee: under replace-one a row leaves one group and enters another (both at full contribution),
        or changes its value within one group, or appears or disappears from the selection; the largest of
        these. Under add/remove it appears or disappears. A unit of `most` rows does so `most` times as far
        (docs/theorems.md, Theorem 46).
        """
        if self.joint is not None:
            return Sensitivity(self.joint.l1, self.joint.l2_squared)
        largest = [max(-m.low, m.high) for m in self.measurements]
        one_l1, one_l2 = sum(largest), sum(size * size for size in largest)
        if neighbours == "add-remove":
            return Sensitivity(one_l1, one_l2)
        spreads = [0 if m.grid is None else m.high - m.low for m in self.measurements]
        moves = 2 if self.measurements[0].size > 1 else 1
        return Sensitivity(
            max(moves * one_l1, sum(spreads)), max(moves * one_l2, sum(spread**2 for spread in spreads))
        )


def _columns(statistic: Statistic, schema: Schema) -> Schema:
    """The columns that a question may use: of rows, of units, or of events."""
    if statistic.over is None:
        return schema
    assert isinstance(schema, UnitSchema)
    return schema.of_rows(statistic.over.table)


def workload(statistic: Statistic, schema: Schema, rows: int) -> Workload:
    """The totals that answer a statistic; a quantile selects among bins by theirs.

    Those of the last table that a question was put to are kept with it.
    """
    kept = getattr(statistic, "_totals", None)
    if kept is None or kept[0] is not schema or kept[1] != rows:
        kept = schema, rows, _parts(statistic, schema, rows)
        object.__setattr__(statistic, "_totals", kept)
    return Workload(statistic, *kept[2])


def _parts(statistic: Statistic, schema: Schema, rows: int) -> tuple[Any, ...]:
    """A workload beside its question: measurements, unit, rounding, and what else it may have."""
    if statistic.function is not None:
        parts = (FunctionMeasurement(schema, statistic.function, presence) for presence in (False, True))
        return tuple(parts), 1 / LEVELS, 0.5 / LEVELS
    over, most = statistic.over, 1 if statistic.over is None else statistic.over.most
    schema = _columns(statistic, schema)
    if statistic.kind in DERIVED:
        parts_told, together = derived(statistic, schema, rows, most)
        return parts_told, 1.0, 0.0, together
    if (told := summed(statistic, schema, rows, most)) is not None:
        measurement, moved, sums, unit, rounding = told
        return (measurement,), unit, rounding, moved, sums
    if statistic.distinct is not None:
        apart = DistinctMeasurement(
            schema, statistic.where, by=statistic.by, over=over, of=statistic.distinct
        )
        return (apart,), 1.0, 0.0
    count = Measurement(schema, statistic.where, by=statistic.by, over=over)
    if statistic.other is not None:
        difference = DifferenceMeasurement(schema, statistic.where, statistic.other)
        return (difference,), 1 / rows, 0.0
    if statistic.kind == "fraction" and over is not None:
        chosen = Measurement(schema, statistic.where, grid=_TRUTHS, by=statistic.by, over=over)
        return (chosen, Measurement(schema, Always(), by=statistic.by, over=over)), 1.0, 0.0
    if statistic.kind == "fraction":
        return (count.ready(),), 1 / rows, 0.0
    if statistic.bins is not None:
        by = statistic.bins if statistic.by is None else Cross(statistic.by, statistic.bins)
        return (Measurement(schema, statistic.where, by=by, over=over),), 1.0, 0.0
    if statistic.kind in ("count", "histogram"):
        return (count.ready(),), 1.0, 0.0
    value = statistic.value
    assert value is not None
    present = conjunction(statistic.where, known(value, schema=schema))
    if statistic.kind == "sum":
        grid = grid_of(value, present, schema, rows * most, centred=False)
        total = Measurement(schema, present, value, grid, statistic.by, over=over)
        return (total,), grid.step, 0.0 if grid.exact else rows * most * grid.step / 2
    grid = grid_of(value, present, schema, rows * most, centred=True)
    total = Measurement(schema, present, value, grid, statistic.by, over=over)
    # Weighing a row's presence like the largest value costs nothing: changing a value from one end of its
    # range to the other already moves the totals at least as far.
    weight = max(grid.high, -grid.low, 1)
    counted = Measurement(schema, present, by=statistic.by, weight=weight, over=over)
    return (total, counted), grid.step, 0.0 if grid.exact else grid.step / 2
