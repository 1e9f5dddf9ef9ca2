"""Every question as a value, in the one form that sessions read, clients write to JSON, and gateways parse."""

from __future__ import annotations

import fractions
import json
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal

from holdfast.check import probability, whole
from holdfast.errors import InputError, QueryError
from holdfast.planning.meaning import (
    MOST_FEATURES,
    added_up,
    added_up_by_groups,
    by_condition,
    events_of,
    is_flag,
    is_short,
    number_or_condition,
    ratio_of,
    refuse_no_features,
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
from holdfast.query.across import scope
from holdfast.query.arrangement import Arrangement
from holdfast.query.expression import Expression
from holdfast.query.group_keys import computed_keys, groups_of, key_texts
from holdfast.query.grouping import Groups, grouping
from holdfast.query.parse import parse_predicate
from holdfast.query.predicate import Predicate
from holdfast.query.schema import Schema
from holdfast.query.statistic import Kind, Statistic


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
        if self._is_condition:
            return self._read(by_condition(self.kind, self.where, schema))
        schema = scope(
            schema, [self.where, *self._texts, *computed_keys(self.by)], [*self._names, *key_texts(self.by)]
        )
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
    def _is_condition(self) -> bool:
        """Whether it has a short condition, and nothing else."""
        return False

    @property
    def _texts(self) -> tuple[str, ...]:
        """What else it is about."""
        return ()

    @property
    def _names(self) -> tuple[str, ...]:
        """What else stands for itself, as what it is grouped by does."""
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
    def _is_condition(self) -> bool:
        return self.by is None and self.given is None and is_short(self.where)

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
    """The number of rows which satisfy a condition; `cumulative`, up to each group of the last column."""

    kind: Literal["count"] = "count"
    cumulative: bool = False

    @property
    def _is_condition(self) -> bool:
        return self.by is None and self.cumulative is False and is_short(self.where)

    def _statistic(self, schema: Schema, where: Predicate, by: Groups | None) -> Statistic:
        asked = Grouped._statistic(self, schema, where, by)
        return added_up_by_groups(asked, schema) if is_flag("cumulative", self.cumulative) else asked


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
    cumulative: bool = False

    @property
    def _texts(self) -> tuple[str, ...]:
        return (self.column,)

    def _number(self, schema: Schema) -> Expression:
        return added_up(self.column, schema)

    def _statistic(self, schema: Schema, where: Predicate, by: Groups | None) -> Statistic:
        running = is_flag("cumulative", self.cumulative)
        if self.kind == "sum":
            asked = Grouped._statistic(self, schema, where, by)
            return added_up_by_groups(asked, schema) if running else asked
        if running:
            raise QueryError(
                "a running mean is not told; ask for the cumulative sum and the cumulative count"
            )
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
        is_flag("sample", self.sample)
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
        is_flag("sample", self.sample)
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
    stop: Word | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weigh(OpenWeights):
    """A fraction by open multiplicative weights. Their terms are repeated, to come back to them."""

    kind: Literal["weigh"] = "weigh"  # type: ignore[assignment]
    where: Text
