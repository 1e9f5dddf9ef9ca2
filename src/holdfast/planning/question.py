"""Every question as a value, in the one form that sessions read, clients write to JSON, and gateways parse."""

from __future__ import annotations

import fractions
import json
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal

from holdfast.check import probability, shown, whole
from holdfast.errors import InputError, QueryError
from holdfast.planning.meaning import (
    MOST_FEATURES,
    added_up,
    combined,
    events_of,
    number_or_condition,
    ratio_of,
    refuse_no_features,
    refuse_no_flag,
    refuse_twice,
    varying,
)
from holdfast.planning.question_parts import (
    STRICT,
    Amount,
    Chance,
    Edges,
    Key,
    Keys,
    Limits,
    Many,
    Name,
    Text,
    Width,
    Word,
    named,
    where_of,
)
from holdfast.planning.request import Request
from holdfast.query.across import parse_statement, scope
from holdfast.query.arrangement import Arrangement
from holdfast.query.expression import Column, Expression
from holdfast.query.group_keys import computed_keys, crossed, groups_of, key_texts
from holdfast.query.grouping import Groups, declared_groups, grouping
from holdfast.query.parse import parse_predicate
from holdfast.query.predicate import NotNull, Predicate, conjunction
from holdfast.query.schema import Boolean, Category, Schema
from holdfast.query.schema import Text as TextColumn
from holdfast.query.select import Aggregate
from holdfast.query.statistic import Kind, Statistic
from holdfast.query.unit_schema import UnitSchema

MAX_CELLS = 2**24
"""How many counts a quantile by groups may need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Every question. `confirm` agrees, at a gateway, to a cost above the share that the owner lets pass unasked."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT
    kind: str
    confirm: bool = False

    def to_json(self) -> dict[str, Any]:
        """Its parts as they travel. What was not given is left out."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: part for name, part in parts.items() if part is not None}

    @property
    def identity(self) -> str:
        """Equal for equal questions, confirmed or not."""
        return json.dumps(self.to_json() | {"confirm": False})


@dataclass(frozen=True, slots=True)
class Read:
    """A question as it was read. `question` is what it was read from, if that may travel; `table` is a SELECT's."""

    statistics: list[Statistic]
    request: Request
    question: Interval | None = None
    table: str | None = None
    arrangement: Arrangement | None = None
    """What a SELECT does with what was released."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval(Question):
    """Questions with an interval. Give one of `within`, `rho` and `epsilon`, or none."""

    within: Width | None = None
    rho: Amount | None = None
    epsilon: Amount | None = None
    mechanism: Word | None = None
    rows: Many | None = None

    @abstractmethod
    def read(self, schema: Schema) -> Read:
        """What is asked, by these columns; QueryError or InputError for what is not in the language."""

    def _read(
        self, *statistics: Statistic, table: str | None = None, arrangement: Arrangement | None = None
    ) -> Read:
        request = Request(self.within, self.rho, self.epsilon, self.mechanism, self.rows)
        return Read(list(statistics), request, self, table, arrangement)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped(Interval):
    """Statistics that may be taken for each group of a column or of several, or between edges of them."""

    where: Text | None = None
    by: Key | Keys | None = None
    edges: Edges | Mapping[Key, Edges] | None = None

    def read(self, schema: Schema) -> Read:
        if self.edges is not None and self.by is None:
            raise InputError("expected by= with edges=, got none; name the column with by=")
        schema = scope(schema, [self.where, *self._texts, *computed_keys(self.by)], key_texts(self.by))
        by = None if self.by is None else groups_of(schema, self.by, self.edges)
        return self._read(self._statistic(schema, where_of(self.where, schema), by))

    def _statistic(self, schema: Schema, where: Predicate, by: Groups | None) -> Statistic:
        """What is computed on these rows."""
        kind: Kind = self.kind  # type: ignore[assignment]
        asked = Statistic(kind, where, self._number(schema), by, over=events_of(schema))
        if kind == "fraction" and asked.over is not None and by is not None:
            raise QueryError(
                "the fraction of the events in each group is not told; ask for count by the same groups, or for mean"
            )
        return asked

    @property
    def _texts(self) -> tuple[str, ...]:
        """What else it is about."""
        return ()

    def _number(self, schema: Schema) -> Expression | None:
        """What is added up."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fraction(Grouped):
    """The fraction of rows which satisfy a condition: of all, or of those for which another one is given."""

    kind: Literal["fraction"] = "fraction"
    where: Text
    given: Text | None = None

    @property
    def _texts(self) -> tuple[str, ...]:
        return () if self.given is None else (self.given,)

    def read(self, schema: Schema) -> Read:
        if self.where is None:
            raise InputError("expected a condition, got None; the fraction of all rows is 1")
        return Grouped.read(self, schema)

    def _statistic(self, schema: Schema, where: Predicate, by: Groups | None) -> Statistic:
        if self.given is None:
            return Grouped._statistic(self, schema, where, by)
        given = parse_predicate(self.given, schema)
        return Statistic("share", given, None, by, over=events_of(schema), chosen=where)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(Grouped):
    """The number of rows which satisfy a condition."""

    kind: Literal["count"] = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(Interval):
    """The fraction of rows which satisfy a condition, less the fraction which satisfy another; or `of` a number or a
    condition, its mean among the first less its mean among the others."""

    kind: Literal["difference"] = "difference"
    where: Text
    other: Text
    expect: Chance | None = None
    of: Text | None = None

    def read(self, schema: Schema) -> Read:
        if self.where is None or self.other is None:
            raise InputError("expected two conditions, got None; the fraction of all rows is 1")
        if self.of is not None:
            return self._contrast(scope(schema, [self.where, self.other, self.of]))
        expect = None if self.expect is None else fractions.Fraction(probability("expect", self.expect))
        first, second = parse_predicate(self.where, schema), parse_predicate(self.other, schema)
        return self._read(Statistic("difference", first, other=second, expect=expect))

    def _contrast(self, schema: Schema) -> Read:
        if self.expect is not None:
            raise InputError(
                "expected no expect= with of=, got one; it is for two conditions on the same rows"
            )
        assert self.of is not None
        first, second = parse_predicate(self.where, schema), parse_predicate(self.other, schema)
        if first == second:
            raise QueryError("the two conditions are the same, so the difference is 0; give two others")
        value, chosen, against = number_or_condition(self.of, schema)
        asked = Statistic(
            "contrast", first, value, over=events_of(schema), chosen=chosen, against=against, compared=second
        )
        return self._read(asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Total(Grouped):
    """The sum or the mean of a number over the rows which satisfy a condition."""

    kind: Literal["sum", "mean"]
    column: Text

    @property
    def _texts(self) -> tuple[str, ...]:
        return (self.column,)

    def _number(self, schema: Schema) -> Expression:
        return added_up(self.column, schema)

    def _statistic(self, schema: Schema, where: Predicate, by: Groups | None) -> Statistic:
        if self.kind == "sum":
            return Grouped._statistic(self, schema, where, by)
        value, chosen, against = number_or_condition(self.column, schema)
        kind: Kind = "mean" if chosen is None else "share"
        return Statistic(kind, where, value, by, over=events_of(schema), chosen=chosen, against=against)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio(Grouped):
    """The sum of a number over the sum of another."""

    kind: Literal["ratio"] = "ratio"
    column: Text
    divisor: Text

    @property
    def _texts(self) -> tuple[str, ...]:
        return self.column, self.divisor

    def _statistic(self, schema: Schema, where: Predicate, by: Groups | None) -> Statistic:
        value, divisor = added_up(self.column, schema), added_up(self.divisor, schema)
        return ratio_of(value, divisor, schema=schema, where=where, by=by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread(Grouped):
    """The variance or the standard deviation of a number; with `sample` that of a sample (n - 1)."""

    kind: Literal["variance", "std"]
    column: Text
    sample: bool = False

    @property
    def _texts(self) -> tuple[str, ...]:
        return (self.column,)

    def _statistic(self, schema: Schema, where: Predicate, by: Groups | None) -> Statistic:
        refuse_no_flag(self.sample)
        value = varying(self.column, where, schema)
        return Statistic(self.kind, where, value, by, over=events_of(schema), sample=self.sample)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired(Grouped):
    """The covariance or the correlation of two numbers; a covariance with `sample` is that of a sample (n - 1)."""

    kind: Literal["covariance", "correlation"]
    column: Text
    other: Text
    sample: bool = False

    @property
    def _texts(self) -> tuple[str, ...]:
        return self.column, self.other

    def _statistic(self, schema: Schema, where: Predicate, by: Groups | None) -> Statistic:
        refuse_no_flag(self.sample)
        value, other = (varying(text, where, schema) for text in (self.column, self.other))
        refuse_twice(value, other)
        return Statistic(
            self.kind, where, value, by, over=events_of(schema), values=(other,), sample=self.sample
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression(Interval):
    """The least squares coefficients of a number by others."""

    kind: Literal["regression"] = "regression"
    column: Text
    features: Annotated[Sequence[Text], Limits(1, MOST_FEATURES)]
    where: Text | None = None

    def read(self, schema: Schema) -> Read:
        refuse_no_features(self.features)
        schema = scope(schema, [self.where, self.column, *self.features])
        where = where_of(self.where, schema)
        target, *features = (varying(text, where, schema) for text in (self.column, *self.features))
        if len({target, *features}) <= len(features):
            raise QueryError("one number is given twice, which makes the regression singular; leave it out")
        return self._read(
            Statistic("regression", where, target, over=events_of(schema), values=tuple(features))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Top(Interval):
    """The groups that most rows are in, with their numbers."""

    kind: Literal["top"] = "top"
    column: Name
    k: Annotated[int, Limits(1, 10_000)] = 10
    edges: Edges | None = None
    where: Text | None = None

    def read(self, schema: Schema) -> Read:
        (counts,) = Histogram(column=self.column, edges=self.edges, where=self.where).read(schema).statistics
        assert counts.by is not None
        kept = whole("k", self.k, 1, counts.by.size)
        return self._read(counts, arrangement=Arrangement(("count",), ((0, True),), limit=kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram(Interval):
    """The number of rows in each declared category, or between the edges."""

    kind: Literal["histogram"] = "histogram"
    column: Name
    edges: Edges | None = None
    where: Text | None = None

    def read(self, schema: Schema) -> Read:
        schema = scope(schema, [self.where], [self.column])
        by = grouping(schema, named(schema, self.column), self.edges)
        return self._read(
            Statistic("histogram", where_of(self.where, schema), None, by, over=events_of(schema))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile(Grouped):
    """The value below which a fraction `rank` of the rows lies."""

    kind: Literal["quantile"] = "quantile"
    column: Name
    rank: Chance = 0.5

    def read(self, schema: Schema) -> Read:
        if not isinstance(self.column, str):
            raise InputError(f"expected the name of one column, got {shown(self.column)}")
        schema = scope(schema, [self.where, *computed_keys(self.by)], [self.column, *key_texts(self.by)])
        edges: Any = dict(self.edges) if isinstance(self.edges, Mapping) else {self.column: self.edges}
        own = edges.pop(self.column, None)
        by = None if self.by is None else groups_of(schema, self.by, edges)
        where, column = where_of(self.where, schema), named(schema, self.column)
        return self._read(_quantile(schema, column, self.rank, where, by, own))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sql(Interval):
    """A SELECT with aggregates, for all rows or by groups."""

    kind: Literal["sql"] = "sql"
    text: Text

    def read(self, schema: Schema) -> Read:
        several = isinstance(schema, UnitSchema) and not schema.is_lone
        select, schema = parse_statement(self.text, schema)
        by = crossed(schema, select.by) if select.by else None
        statistics = [_aggregate(schema, each, select.where, by) for each in select.aggregates]
        called = None if several else select.table
        return self._read(*statistics, table=called, arrangement=select.arrangement)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample(Question):
    """The sampling counting query: one row, one noisy bit."""

    kind: Literal["sample"] = "sample"
    where: Text

    def read(self, schema: Schema, key: str | None = None) -> Predicate:
        """The condition; refused with a `key` that is no text."""
        if key is not None and not isinstance(key, str):
            raise InputError(f"expected key= as a text, got {type(key).__name__}")
        return parse_predicate(self.where, schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverKeys(Question):
    """The keys of a text column, discovered once for everybody."""

    kind: Literal["keys"] = "keys"
    column: Name
    rho: Amount | None = None
    delta: Chance | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(Question):
    """A private choice among conditions: about the one that most rows satisfy."""

    kind: Literal["select"] = "select"
    candidates: Annotated[Sequence[Text], Limits(1, 1000)]
    epsilon: Amount | None = None
    rho: Amount | None = None
    mechanism: Word | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSparseVector(Question):
    """Open a sparse vector under a name, or come back to it. Charged once, at the opening."""

    kind: Literal["sparse-vector"] = "sparse-vector"
    name: Name = "vector"
    threshold: Annotated[float, Limits(1e-100, 1)]
    hits: Annotated[int, Limits(1, 100_000)]
    epsilon: Amount | None = None
    rho: Amount | None = None
    delta: Annotated[float, Limits(0, math.nextafter(1, 0))] = 0.0
    version: Word | None = None
    questions: Many | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Above(OpenSparseVector):
    """Is a fraction above the threshold of an open sparse vector? Its terms are repeated, to come back to it."""

    kind: Literal["above"] = "above"  # type: ignore[assignment]
    where: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWeights(Question):
    """Open multiplicative weights under a name, or come back to them. Updates are charged as they happen."""

    kind: Literal["multiplicative-weights"] = "multiplicative-weights"
    name: Name = "weights"
    columns: Annotated[Sequence[Name], Limits(1, 64)]
    queries: Annotated[int, Limits(1, 10**6)]
    within: Annotated[float, Limits(1e-6, math.nextafter(1, 0))] | None = None
    rho: Amount | None = None
    epsilon: Amount | None = None
    delta: Chance | None = None
    edges: Mapping[Name, Edges] | None = None
    nulls: Annotated[Sequence[Name], Limits(0, 64)] | None = None
    version: Word | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weigh(OpenWeights):
    """A fraction by open multiplicative weights. Their terms are repeated, to come back to them."""

    kind: Literal["weigh"] = "weigh"  # type: ignore[assignment]
    where: Text


AnyQuestion = (
    Fraction | Count | Difference | Total | Ratio | Spread | Paired | Regression | Top | Histogram | Quantile | Sql
    | DiscoverKeys | Sample | Select | OpenSparseVector | Above | OpenWeights | Weigh
)  # fmt: skip


def _aggregate(schema: Schema, aggregate: Aggregate, where: Predicate, by: Groups | None) -> Statistic:
    value, where = aggregate.expression, conjunction(where, aggregate.where)
    if aggregate.several is not None:
        return combined(schema, aggregate.several, where, by)
    if aggregate.kind == "count":
        present = [NotNull(value.name)] if isinstance(value, Column) else []
        return Statistic("count", conjunction(where, *present), None, by, over=events_of(schema))
    if aggregate.kind == "quantile":
        assert isinstance(value, Column) and aggregate.rank is not None
        return _quantile(schema, value.name, aggregate.rank, where, by, None)
    return Statistic("mean" if aggregate.kind == "avg" else "sum", where, value, by, over=events_of(schema))


def _quantile(
    schema: Schema, column: str, rank: float, where: Predicate, by: Groups | None, edges: Edges | None
) -> Statistic:
    if isinstance(rank, bool) or not isinstance(rank, int | float | fractions.Fraction) or not 0 < rank < 1:
        raise InputError(f"expected a rank strictly between 0 and 1, got {shown(rank)}")
    kind = schema.get(column) if isinstance(column, str) else None
    if isinstance(kind, Category | Boolean | TextColumn):
        raise QueryError(f"column {column!r} has no order, so it has no quantiles; ask for a histogram")
    bins = declared_groups(schema, column, edges)
    if by is not None and by.size * bins.size > MAX_CELLS:
        raise InputError(
            f"expected at most {MAX_CELLS:,} groups times bins, got {by.size * bins.size:,}; give fewer edges"
        )
    exact = fractions.Fraction(rank).limit_denominator(10**6)
    return Statistic("quantile", where, None, by, exact, bins, over=events_of(schema))
