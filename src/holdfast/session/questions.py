"""The questions that may be put, whether to be answered or only to be planned."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar, Unpack

from holdfast.check import shown
from holdfast.errors import InputError, QueryError
from holdfast.planning import question
from holdfast.planning.cell_question import Independence
from holdfast.planning.distinct_question import Distinct
from holdfast.planning.keywords import Accuracy, Grouped
from holdfast.planning.quantile_question import Quantile
from holdfast.planning.question import Read
from holdfast.planning.request import Request
from holdfast.planning.sql_question import Sql
from holdfast.query.calling import fitting
from holdfast.query.extremes import LOWEST
from holdfast.query.function import Function, RowFunction
from holdfast.query.grouping import is_list
from holdfast.query.predicate import Always
from holdfast.query.schema import Schema, Text
from holdfast.query.statistic import Statistic

Result = TypeVar("Result")


class Questions(Protocol[Result]):
    """Each method states a question: a session answers it, and its `estimate` says what that would cost.

    Accuracy is `within=` (half-width of the interval, in the statistic's own scale; for a quantile in rank; a mean
    keeps it where enough rows qualify: `Plan.qualifying` says how many, `Answer.met` whether it was kept),
    or a budget for this answer: `rho=` or `epsilon=`. With none of them the session's budget is divided by
    its `queries`. A `within` as long as the range of the answer is refused, because every answer is that exact.
    `by=` gives one result for each declared group of a column, for one charge; for columns of
    numbers or dates `edges=` cuts the groups.
    """

    @abstractmethod
    def put(self, asked: Read) -> list[Result]:
        """What becomes of a question that was read: one result for each of its aggregates, all charged or none."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The columns that may be asked about."""

    @fitting
    def fraction(self, where: str, *, given: str | None = None, **how: Unpack[Grouped]) -> Result:
        """The fraction of rows which satisfy a condition; with `given`, of those that satisfy this other one.

        With `given` it is a share of secret size: its interval comes from both counts, told together under one
        charge, and is wide where few rows are given (docs/theorems.md, Theorem 76).
        """
        return self._one(question.Fraction(where=where, given=given, **how))

    @fitting
    def count(self, where: str | None = None, *, cumulative: bool = False, **how: Unpack[Grouped]) -> Result:
        """The number of rows which satisfy a condition; `cumulative`, in all groups up to each of a number or a date in
        `by`: rows beyond its `edges` are in none.

        Running totals have noise that is added before they are (docs/theorems.md, Theorem 136): one charge for all of
        them, intervals that hold at once, and hardly more noise after a thousand days than after one.
        """
        return self._one(question.Count(where=where, cumulative=cumulative, **how))

    @fitting
    def difference(
        self,
        where: str,
        other: str,
        *,
        of: str | None = None,
        expect: float | None = None,
        **how: Unpack[Accuracy],
    ) -> Result:
        """The fraction of rows which satisfy `where`, less the fraction which satisfy `other`: from -1 to 1.

        With `of`, a number or a condition: its mean where `where` holds, less its mean where `other` does. The two
        differ where the interval does not hold 0, corrected for everything asked before (`Answer.differs`).

        For the population it is narrow where the conditions seldom disagree, which is told first, with noise of its
        own (`Answer.disagreement`). `expect` is a guess of that share (0.05): it is narrowest and cheapest where the
        guess is near, and true whatever it is; one that is too low tells more, and widens what is told later. `within`
        is met if the noisy share is at most about the guess.
        """
        return self._one(question.Difference(where=where, other=other, of=of, expect=expect, **how))

    @fitting
    def sum(
        self, column: str, where: str | None = None, *, cumulative: bool = False, **how: Unpack[Grouped]
    ) -> Result:
        """The sum of a number (a column or an expression) over the rows which satisfy a condition; `cumulative` as in
        `count`."""
        asked = question.Total(kind="sum", column=column, where=where, cumulative=cumulative, **how)
        return self._one(asked)

    @fitting
    def mean(self, column: str, where: str | None = None, **how: Unpack[Grouped]) -> Result:
        """The mean of a number over the rows which satisfy a condition and where it is not NULL; of a truth value or a
        condition, the share of the rows where it holds among those where it is known.

        It is a ratio of a private sum and a private count; its interval comes from both, and is wide where
        few rows qualify. `within` is met if every row qualifies.
        """
        return self._one(question.Total(kind="mean", column=column, where=where, **how))

    @fitting
    def ratio(self, column: str, divisor: str, where: str | None = None, **how: Unpack[Grouped]) -> Result:
        """The sum of a number over the sum of another, each where it is known: both told together, one charge.

        All numbers are possible where the divisor may be 0. No `within`: how near it is depends on the rows.
        """
        return self._one(question.Ratio(column=column, divisor=divisor, where=where, **how))

    @fitting
    def variance(
        self, column: str, where: str | None = None, *, sample: bool = False, **how: Unpack[Grouped]
    ) -> Result:
        """The variance of a number; with `sample`, n/(n-1) times that of the rows.

        The count, the sum and the sum of squares are told together under one charge; the interval is what they
        leave possible (docs/theorems.md, Theorems 75 and 76). `within` is met if every row qualifies.
        """
        return self._one(question.Spread(kind="variance", column=column, where=where, sample=sample, **how))

    @fitting
    def std(
        self, column: str, where: str | None = None, *, sample: bool = False, **how: Unpack[Grouped]
    ) -> Result:
        """The standard deviation of a number: the root of its `variance`, with the same charge."""
        return self._one(question.Spread(kind="std", column=column, where=where, sample=sample, **how))

    @fitting
    def covariance(
        self,
        column: str,
        other: str,
        where: str | None = None,
        *,
        sample: bool = False,
        **how: Unpack[Grouped],
    ) -> Result:
        """The covariance of two numbers, over the rows where both are known; see `variance`."""
        return self._one(
            question.Paired(kind="covariance", column=column, other=other, where=where, sample=sample, **how)
        )

    @fitting
    def correlation(
        self, column: str, other: str, where: str | None = None, **how: Unpack[Grouped]
    ) -> Result:
        """The correlation of two numbers, from all their moments under one charge; from -1 to 1 where one of them may
        be the same on all rows. No `within`: how near it is depends on the rows."""
        return self._one(question.Paired(kind="correlation", column=column, other=other, where=where, **how))

    @fitting
    def regression(
        self, column: str, features: Sequence[str], where: str | None = None, **how: Unpack[Accuracy]
    ) -> Result:
        """The least squares coefficients of a number by others: the intercept and a slope for each feature.

        All second moments are told together under one charge. Every interval is certified, for the coefficients on the
        table or on the population, and none is asymptotic (docs/theorems.md, Theorem 78); all numbers are possible
        where the features may depend on each other. `holdfast.learn.regress` has a ridge, and asymptotic intervals.
        """
        return self._one(question.Regression(column=column, features=features, where=where, **how))

    @fitting
    def top(
        self,
        column: str,
        k: int = 10,
        edges: Sequence[Any] | None = None,
        where: str | None = None,
        **how: Unpack[Accuracy],
    ) -> Result:
        """The `k` groups that most rows are in, the largest first, each with its number of rows.

        Noise is drawn once for every declared group, and the largest leave: one charge, that of `histogram`, which
        tells the same. All intervals hold at once, so those of the chosen ones do; which are shown goes by the noisy
        numbers, and where intervals overlap the order is not certain.
        """
        return self._one(question.Top(column=column, k=k, edges=edges, where=where, **how))

    @fitting
    def histogram(
        self,
        column: str,
        edges: Sequence[Any] | None = None,
        where: str | None = None,
        **how: Unpack[Accuracy],
    ) -> Result:
        """The number of rows in each declared category, or in each bin between the edges."""
        return self._one(question.Histogram(column=column, edges=edges, where=where, **how))

    @fitting
    def quantile(
        self,
        column: str,
        rank: float | Sequence[float] = 0.5,
        where: str | None = None,
        **how: Unpack[Grouped],
    ) -> Result:
        """The value below which a fraction `rank` of the rows lies, chosen among the column's edges.

        Rows beyond the edges count below or above all the same. With a list of ranks all of them at once, in every
        group: read off running counts that are told once, under one charge that does not grow with their number
        (docs/theorems.md, Theorem 137).
        """
        return self._one(Quantile(column=column, rank=rank, where=where, **how))

    @fitting
    def median(self, column: str, where: str | None = None, **how: Unpack[Grouped]) -> Result:
        """The quantile of rank 1/2."""
        return self._one(Quantile(column=column, rank=0.5, where=where, **how))

    @fitting
    def independence(
        self,
        column: str,
        other: str,
        where: str | None = None,
        *,
        edges: Mapping[str, Sequence[Any]] | None = None,
        **how: Unpack[Accuracy],
    ) -> Result:
        """How far two columns are from independent: half the sum over all pairs of groups of the distance between the
        share of rows in both and the product of the two shares. From 0, if they are independent, to 1.

        Rows in no group of one of the columns (NULL, or beyond its edges) are left out. All cells are told together
        under one charge. They are dependent where the interval does not hold 0 (`Answer.differs`), a test whose level
        holds whatever was asked before (docs/theorems.md, Theorem 138). No `within`: how near it is depends on the
        rows.
        """
        return self._one(Independence(column=column, other=other, where=where, edges=edges, **how))

    @fitting
    def distinct(self, column: str, where: str | None = None, **how: Unpack[Grouped]) -> Result:
        """How many different values a column has, or something computed such as month(visit); NULL is none.

        For the table: a row moves it by at most one (docs/theorems.md, Theorem 139). Refused for the population: the
        values that no row has may be many. It is no sum, so it ends the leave-out theorem on the table.
        """
        return self._one(Distinct(column=column, where=where, **how))

    @fitting
    def min(self, column: str, where: str | None = None, **how: Unpack[Grouped]) -> Result:
        """The quantile of rank 0.001. The least value itself belongs to one row, and is not told."""
        return self._one(Quantile(column=column, rank=float(LOWEST), where=where, **how))

    @fitting
    def max(self, column: str, where: str | None = None, **how: Unpack[Grouped]) -> Result:
        """The quantile of rank 0.999. The greatest value itself belongs to one row, and is not told."""
        return self._one(Quantile(column=column, rank=float(1 - LOWEST), where=where, **how))

    @fitting
    def statistic(self, function: Function, columns: Sequence[str], **how: Unpack[Accuracy]) -> Result:
        """The mean of your own vectorised function into [0,1]; other values are clipped.

        It gets a dict of arrays (numbers, NaN for NULL, categories as their place) and returns one number for
        each row, or NaN: such a row is unknown, and the mean is over the others, as `mean` is where a column is
        NULL. Requires: the number for a row depends on that row alone, which nobody can check; so this is
        for a trusted analyst on the owner's machine. Each call is charged; nothing is remembered.
        """
        if not is_list(columns) or not all(isinstance(name, str) and name in self.schema for name in columns):
            raise QueryError(
                f"expected a list of columns among {', '.join(self.schema)}, got {shown(columns)}"
            )
        if not len(columns):
            raise QueryError("expected at least one column, got none")
        texts = [name for name in columns if isinstance(self.schema[name], Text)]
        if texts:
            raise QueryError(f"expected columns of numbers and categories, got the text column {texts[0]!r}")
        if not callable(function):
            raise InputError(f"expected a function of the rows, got {type(function).__name__}")
        asked = Statistic("mean", Always(), function=RowFunction(function, tuple(columns)))
        return self.put(Read([asked], Request(**how)))[0]

    @fitting
    def sql(self, text: str, **how: Unpack[Accuracy]) -> list[Result]:
        """`SELECT [group,] count(*) | sum(x) | avg(x) | median(x) FROM t [WHERE …] [GROUP BY group]`.

        One result for each aggregate, all charged or none.
        """
        return self.put(self._read(Sql(text=text, **how)))

    @fitting
    def sql_one(self, text: str, **how: Unpack[Accuracy]) -> Result:
        """The result of a SELECT with one aggregate; see `sql`."""
        return self._one(Sql(text=text, **how))

    def _one(self, asked: question.Interval) -> Result:
        read = self._read(asked)
        if len(read.statistics) != 1:
            raise QueryError(
                f"expected a SELECT with one aggregate, got {len(read.statistics)}; ask with sql"
            )
        return self.put(read)[0]

    def _read(self, asked: question.Interval) -> Read:
        """What is asked, by these columns; a session discovers the keys that it needs."""
        return asked.read(self.schema)
