"""Public groups of a column: declared categories, or bins between declared edges."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.check import LARGEST, between, shown, whole
from holdfast.errors import InputError, QueryError, UndiscoveredError
from holdfast.query.computed_groups import ExpressionGroups, Product
from holdfast.query.dictionary import texts_of
from holdfast.query.schema import Boolean, Category, Integer, Real, Schema, Temporal, Text
from holdfast.query.unit_schema import no_column

MAX_GROUPS = 65_536
_UNIT_BINS = 4096
_REAL_BINS = 1024


@dataclass(frozen=True, slots=True)
class Grouping:
    """Group i holds the codes c with bounds[i] <= c < bounds[i+1]; NULL and what lies outside is in none.

    Nothing is learnt from the rows: every declared group is present, whether or not the data has it.
    """

    column: str
    bounds: tuple[float, ...]
    labels: tuple[str, ...]
    starts: tuple[Any, ...]
    ends: tuple[Any, ...]
    """The least and the largest value of each group, as the user would write them."""
    together: int = 1
    """How many values of the column are in a group because nobody said `edges` and it has more than are told apart."""

    @property
    def size(self) -> int:
        return len(self.labels)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def groups(self, block: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        """The group of each row, or -1."""
        codes = block[self.column]
        if codes.dtype.kind != "f":
            codes = codes.astype(np.int64)  # codes are below 2^62; unlike unsigned ones they compare exactly
        bounds = np.asarray(self.bounds, dtype=codes.dtype)
        if bounds.dtype.kind == "i" and bounds[0] == 0 and bounds[-1] == self.size:
            groups = codes
        else:
            groups = np.searchsorted(bounds, codes, side="right") - 1
        return np.where(groups < self.size, groups, -1)

    def sql(self) -> str:
        """The group of a row as SQL over codes: nested CASEs that halve the bounds at each step."""
        name = '"' + self.column.replace('"', '""') + '"'
        real = any(isinstance(bound, float) for bound in self.bounds)

        def literal(bound: float) -> str:
            return f"CAST('{bound!r}' AS DOUBLE)" if real else str(bound)

        def search(low: int, high: int) -> str:
            if high - low == 1:
                return str(low)
            middle = (low + high) // 2
            return (
                f"CASE WHEN {name} < {literal(self.bounds[middle])} THEN {search(low, middle)} "
                f"ELSE {search(middle, high)} END"
            )

        inside = f"{name} >= {literal(self.bounds[0])} AND {name} < {literal(self.bounds[-1])}"
        return f"CASE WHEN {inside} THEN {search(0, self.size)} ELSE NULL END"


@dataclass(frozen=True, slots=True)
class KeyGroups:
    """The groups of a text column: one for each discovered key; NULL and every other text is in none."""

    column: str
    labels: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.labels)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def bounds(self) -> tuple[str, ...]:
        """What tells these groups from others."""
        return self.labels

    def groups(self, block: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        """The group of each row, or -1."""
        return texts_of(block[self.column]).places(self.labels)

    def sql(self) -> str:
        raise InputError("expected groups that an engine can tell, got those of texts; read the rows")


Groups: TypeAlias = Grouping | KeyGroups | ExpressionGroups | Product


@dataclass(frozen=True, slots=True)
class Cross:
    """The groups of two columns at once, the inner one running fastest."""

    outer: Groups
    inner: Grouping

    @property
    def size(self) -> int:
        return self.outer.size * self.inner.size

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.outer.columns, self.inner.column)

    def groups(self, block: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        """The group of each row, or -1."""
        outer, inner = self.outer.groups(block), self.inner.groups(block)
        return np.where((outer >= 0) & (inner >= 0), outer * self.inner.size + inner, -1)

    def sql(self) -> str:
        """NULL where either column has no group."""
        return f"({self.outer.sql()}) * {self.inner.size} + ({self.inner.sql()})"


def grouping(schema: Schema, column: str, edges: Sequence[Any] | None = None) -> Groups:
    """The groups of a column: those that its declaration gives (`declared_groups`), or its discovered keys.

    UndiscoveredError for a text column whose keys nobody knows.
    """
    kind = schema.get(column) if isinstance(column, str) else None
    if not isinstance(kind, Text):
        return declared_groups(schema, column, edges)
    if edges is not None:
        raise InputError(f"expected no edges for {column!r}, got some; its groups are its keys")
    if not kind.keys:
        raise UndiscoveredError(column, kind.keys is not None)
    return KeyGroups(column, kind.keys)


def declared_groups(schema: Schema, column: str, edges: Sequence[Any] | None = None) -> Grouping:
    """The groups of a column that is no text.

    Without `edges`: each category, each truth value, each integer or day of a small range, or equal bins; a plan says
    of bins how wide they are.
    With `edges` (sorted): the bins [e0, e1), [e1, e2), ...; the last one includes its upper edge.
    """
    if not isinstance(column, str):
        raise InputError(f"expected the name of one column, got {shown(column)}; a list goes with by=")
    if edges is not None and not is_list(edges):
        raise InputError(f"expected edges= of {column!r} as a list, got {shown(edges)}")
    if column not in schema:
        raise QueryError(no_column(schema, column))
    kind = schema[column]
    if isinstance(kind, Text):
        raise QueryError(f"{column!r} is a text column, which has no bins; declare it as a Category")
    if isinstance(kind, Category | Boolean):
        if edges is not None:
            raise InputError(f"expected no edges for {column!r}, got some; it has declared categories")
        labels = kind.labels if isinstance(kind, Category) else ("false", "true")
        return Grouping(column, tuple(range(len(labels) + 1)), tuple(labels), tuple(labels), tuple(labels))
    if isinstance(kind, Real):
        return _real(column, kind, edges)
    return _whole(column, kind, edges)


def wide_bins(groups: Groups | None) -> str:
    """Which columns were cut into bins of several values because nobody said `edges`, and how wide these are, in a
    sentence; empty if there are none."""
    parts = groups.parts if isinstance(groups, Product) else () if groups is None else (groups,)
    wide = [each for each in parts if isinstance(each, Grouping) and each.together > 1]
    said = "; ".join(f"{each.column} by {each.together:,} values each" for each in wide)
    most = f"more than {_UNIT_BINS:,} values are not told apart by themselves"
    return f"Grouped {said}: {most}. Give edges= for other groups." if said else ""


def is_list(value: object) -> bool:
    """A list, a tuple, a range or an array of one dimension; no text."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def bins_of_all(schema: Schema, column: str, edges: Sequence[Any] | None = None) -> Grouping:
    """As `declared_groups`, with a bin more at an end that the `edges` leave out: every value of a column of numbers or
    moments is in one of them."""
    made, kind = declared_groups(schema, column, edges), schema[column]
    if isinstance(kind, Real):
        low, high = made.bounds[0], made.ends[-1]
        beyond = [kind.lo] if low > kind.lo else [], [kind.hi] if high < kind.hi else []
        return _real_bins(column, (*beyond[0], *made.starts, high, *beyond[1])) if any(beyond) else made
    assert isinstance(kind, Integer | Temporal)
    bounds = dict.fromkeys((0, *map(int, made.bounds), kind.codes))
    return _whole_bins(column, kind, tuple(bounds))


def _real(column: str, kind: Real, edges: Sequence[Any] | None) -> Grouping:
    if edges is None:
        edges = np.linspace(kind.lo, kind.hi, _REAL_BINS + 1).tolist()
    return _real_bins(column, _increasing([_number(column, edge) for edge in edges]))


def _real_bins(column: str, bounds: tuple[Any, ...]) -> Grouping:
    labels = tuple(f"{low:g} to {high:g}" for low, high in itertools.pairwise(bounds))
    closed = (*bounds[:-1], float(np.nextafter(bounds[-1], np.inf)))
    return Grouping(column, closed, labels, bounds[:-1], bounds[1:])


def _whole(column: str, kind: Integer | Temporal, edges: Sequence[Any] | None) -> Grouping:
    if edges is None:
        stride = -(-kind.codes // _UNIT_BINS)
        return _whole_bins(column, kind, (*range(0, kind.codes, stride), kind.codes), stride)
    values = list(_increasing([_code(column, kind, edge) for edge in edges]))
    values[-1] += 1
    if values[0] < 0 or values[-1] > kind.codes:
        raise InputError(f"expected edges of {column!r} inside its declared range, got others")
    return _whole_bins(column, kind, tuple(values))


def _whole_bins(
    column: str, kind: Integer | Temporal, bounds: tuple[int, ...], together: int = 1
) -> Grouping:
    starts = tuple(kind.value(code) for code in bounds[:-1])
    ends = tuple(kind.value(code - 1) for code in bounds[1:])
    labels = tuple(f"{a}" if a == b else f"{a} to {b}" for a, b in zip(starts, ends, strict=True))
    return Grouping(column, bounds, labels, starts, ends, together)


def _number(column: str, edge: Any) -> float:
    return between(f"the edges of {column!r}", edge)


def _code(column: str, kind: Integer | Temporal, edge: Any) -> int:
    if isinstance(kind, Temporal):
        found = kind.microseconds(edge)
        if found is None:
            raise InputError(f"expected {kind.kind}s for the edges of {column!r}, got {shown(edge)}")
        return found // kind.unit - kind.lo
    return whole(f"the edges of {column!r}", edge, -LARGEST) - kind.lo


def _increasing(values: list[Any]) -> tuple[Any, ...]:
    if len(values) < 2 or any(low >= high for low, high in itertools.pairwise(values)):
        raise InputError("expected at least two edges in increasing order, got others")
    if len(values) - 1 > MAX_GROUPS:
        raise InputError(f"expected at most {MAX_GROUPS} bins, got {len(values) - 1}")
    return tuple(values)
