"""The questions that may be put, whether to be answered or only to be planned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Generic, TypeVar, Unpack, cast

from holdfast.check import shown
from holdfast.errors import InputError, QueryError
from holdfast.planning.keywords import Accuracy, Grouped
from holdfast.planning.request import Request
from holdfast.query.calling import fitting
from holdfast.query.expression import Column, Expression
from holdfast.query.function import Function, RowFunction
from holdfast.query.grouping import Grouping, grouping, is_list
from holdfast.query.parse import parse_expression, parse_predicate
from holdfast.query.predicate import Always, NotNull, Predicate, conjunction
from holdfast.query.schema import Boolean, Category, Date, Schema
from holdfast.query.select import Aggregate, parse_select
from holdfast.query.statistic import Kind, Statistic

Result = TypeVar("Result")

MAX_CELLS = 2**24
"""How many counts a quantile by groups may need."""


class Questions(ABC, Generic[Result]):
    """Each method states a question; what becomes of it (an answer or a plan) is up to `_put`.

    Accuracy is `within=` (half-width of the interval, in the statistic's own scale; for a quantile in rank; a mean
    keeps it where enough rows qualify: `Plan.qualifying` says how many, `Answer.met` whether it was kept),
    or a budget for this answer: `rho=` or `epsilon=`. With none of them the session's budget is divided by
    its `queries`. A `within` as long as the range of the answer is refused, because every answer is that exact.
    `by=` gives one result for each declared group of a column, for one charge; for columns of
    numbers or dates `edges=` cuts the groups.
    """

    @abstractmethod
    def _put(self, statistics: list[Statistic], request: Request) -> list[Result]:
        """What becomes of the questions."""

    @property
    @abstractmethod
    def _schema(self) -> Schema:
        """The columns that may be asked about."""

    @fitting
    def fraction(self, where: str, **how: Unpack[Grouped]) -> Result:
        """The fraction of rows which satisfy a condition."""
        if where is None:
            raise InputError("expected a condition, got None; the fraction of all rows is 1")
        return self._one("fraction", where, None, how)

    @fitting
    def count(self, where: str | None = None, **how: Unpack[Grouped]) -> Result:
        """The number of rows which satisfy a condition."""
        return self._one("count", where, None, how)

    @fitting
    def sum(self, column: str, where: str | None = None, **how: Unpack[Grouped]) -> Result:
        """The sum of a number (a column or an expression) over the rows which satisfy a condition."""
        return self._one("sum", where, self._number(column), how)

    @fitting
    def mean(self, column: str, where: str | None = None, **how: Unpack[Grouped]) -> Result:
        """The mean of a number over the rows which satisfy a condition and where it is not NULL.

        It is a ratio of a private sum and a private count; its interval comes from both, and is wide where
        few rows qualify. `within` is met if every row qualifies.
        """
        return self._one("mean", where, self._number(column), how)

    @fitting
    def histogram(
        self,
        column: str,
        edges: Sequence[Any] | None = None,
        where: str | None = None,
        **how: Unpack[Accuracy],
    ) -> Result:
        """The number of rows in each declared category, or in each bin between the edges."""
        return self._one("histogram", where, None, {"by": column, "edges": edges, **how})

    @fitting
    def quantile(
        self, column: str, rank: float = 0.5, where: str | None = None, **how: Unpack[Grouped]
    ) -> Result:
        """The value below which a fraction `rank` of the rows lies, chosen among the column's edges."""
        by, edges, request = _parts(how)
        groups = None if by is None else grouping(self._schema, by)
        return self._put([self._quantile(column, rank, self._where(where), groups, edges)], request)[0]

    @fitting
    def statistic(self, function: Function, columns: Sequence[str], **how: Unpack[Accuracy]) -> Result:
        """The mean of your own vectorised function into [0,1]; other values are clipped.

        It gets a dict of arrays (numbers, NaN for NULL, categories as their place) and returns one number for
        each row, or NaN: such a row is unknown, and the mean is over the others, as `mean` is where a column is
        NULL. Requires: the number for a row depends on that row alone, which nobody can check; so this is
        for a trusted analyst on the owner's machine. Each call is charged; nothing is remembered.
        """
        if not is_list(columns) or not all(
            isinstance(name, str) and name in self._schema for name in columns
        ):
            raise QueryError(
                f"expected a list of columns among {', '.join(self._schema)}, got {shown(columns)}"
            )
        if not len(columns):
            raise QueryError("expected at least one column, got none")
        if not callable(function):
            raise InputError(f"expected a function of the rows, got {type(function).__name__}")
        asked = Statistic("mean", Always(), function=RowFunction(function, tuple(columns)))
        return self._put([asked], Request(**how))[0]

    @fitting
    def sql(self, text: str, **how: Unpack[Accuracy]) -> list[Result]:
        """`SELECT [group,] count(*) | sum(x) | avg(x) | median(x) FROM t [WHERE …] [GROUP BY group]`.

        One result for each aggregate, all charged or none.
        """
        select = parse_select(text, self._schema)
        by = None if select.by is None else grouping(self._schema, select.by)
        statistics = [self._aggregate(aggregate, select.where, by) for aggregate in select.aggregates]
        return self._put(statistics, Request(**how))

    @fitting
    def sql_one(self, text: str, **how: Unpack[Accuracy]) -> Result:
        """The result of a SELECT with one aggregate; see `sql`."""
        aggregates = len(parse_select(text, self._schema).aggregates)
        if aggregates != 1:
            raise QueryError(f"expected a SELECT with one aggregate, got {aggregates}; ask with sql")
        return self.sql(text, **how)[0]

    def _one(self, kind: Kind, where: str | None, value: Expression | None, how: Grouped) -> Result:
        by, edges, request = _parts(how)
        if edges is not None and by is None:
            raise InputError("expected by= with edges=, got none; name the column with by=")
        groups = None if by is None else grouping(self._schema, by, edges)
        return self._put([Statistic(kind, self._where(where), value, groups)], request)[0]

    def _where(self, where: str | None) -> Predicate:
        return Always() if where is None else parse_predicate(where, self._schema)

    def _number(self, text: str) -> Expression:
        value = parse_expression(text, self._schema)
        if isinstance(value, Column) and isinstance(self._schema[value.name], Date):
            raise QueryError(f"dates are not added up; ask for a quantile or a histogram of {value.name!r}")
        return value

    def _aggregate(self, aggregate: Aggregate, where: Predicate, by: Grouping | None) -> Statistic:
        value = aggregate.expression
        if aggregate.kind == "count":
            present = [NotNull(value.name)] if isinstance(value, Column) else []
            return Statistic("count", conjunction(where, *present), None, by)
        if aggregate.kind == "quantile":
            assert isinstance(value, Column) and aggregate.rank is not None
            return self._quantile(value.name, aggregate.rank, where, by, None)
        return Statistic("mean" if aggregate.kind == "avg" else "sum", where, value, by)

    def _quantile(
        self, column: str, rank: float, where: Predicate, by: Grouping | None, edges: Sequence[Any] | None
    ) -> Statistic:
        if isinstance(rank, bool) or not isinstance(rank, int | float | Fraction) or not 0 < rank < 1:
            raise InputError(f"expected a rank strictly between 0 and 1, got {shown(rank)}")
        bins = grouping(self._schema, column, edges)
        if isinstance(self._schema[column], Category | Boolean):
            raise QueryError(f"column {column!r} has no order, so it has no quantiles; ask for a histogram")
        if by is not None and by.size * bins.size > MAX_CELLS:
            raise InputError(
                f"expected at most {MAX_CELLS:,} groups times bins, got {by.size * bins.size:,}; give fewer edges"
            )
        return Statistic("quantile", where, None, by, Fraction(rank).limit_denominator(10**6), bins)


def _parts(how: Grouped) -> tuple[str | None, Sequence[Any] | None, Request]:
    """Which groups, cut where, and how exactly."""
    by, edges = how.pop("by", None), how.pop("edges", None)
    return by, edges, Request(**cast(Accuracy, how))
