"""The questions as they travel: in the words in which they were put."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NoReturn

from holdfast.errors import MechanismError
from holdfast.query.function import Function
from holdfast.query.statistic import Statistic
from holdfast.session.questions import Questions, Result
from holdfast.session.request import Request


class RemoteQuestions(Questions[Result]):
    """The same questions, sent to a gateway.

    Each is read here first: what is outside the language is refused with the same error as in process, and
    nothing is sent. Then it travels as it was given.
    """

    @abstractmethod
    def _send(self, kind: str, **given: Any) -> list[Result]:
        """What the gateway says to a question."""

    def _put(self, statistics: list[Statistic], request: Request) -> list[Any]:
        """Nothing: the question was read, and may be sent."""
        return [None] * len(statistics)

    def fraction(
        self, where: str, *, by: str | None = None, edges: Sequence[Any] | None = None, **how: Any
    ) -> Result:
        """The fraction of rows which satisfy a condition."""
        super().fraction(where, by=by, edges=edges, **how)
        return self._send("fraction", where=where, by=by, edges=edges, **how)[0]

    def count(
        self,
        where: str | None = None,
        *,
        by: str | None = None,
        edges: Sequence[Any] | None = None,
        **how: Any,
    ) -> Result:
        """The number of rows which satisfy a condition."""
        super().count(where, by=by, edges=edges, **how)
        return self._send("count", where=where, by=by, edges=edges, **how)[0]

    def sum(
        self,
        column: str,
        where: str | None = None,
        *,
        by: str | None = None,
        edges: Sequence[Any] | None = None,
        **how: Any,
    ) -> Result:
        """The sum of a number (a column or an expression) over the rows which satisfy a condition."""
        super().sum(column, where, by=by, edges=edges, **how)
        return self._send("sum", column=column, where=where, by=by, edges=edges, **how)[0]

    def mean(
        self,
        column: str,
        where: str | None = None,
        *,
        by: str | None = None,
        edges: Sequence[Any] | None = None,
        **how: Any,
    ) -> Result:
        """The mean of a number over the rows which satisfy a condition and where it is not NULL."""
        super().mean(column, where, by=by, edges=edges, **how)
        return self._send("mean", column=column, where=where, by=by, edges=edges, **how)[0]

    def histogram(
        self, column: str, edges: Sequence[Any] | None = None, where: str | None = None, **how: Any
    ) -> Result:
        """The number of rows in each declared category, or in each bin between the edges."""
        super().histogram(column, edges, where, **how)
        return self._send("histogram", column=column, edges=edges, where=where, **how)[0]

    def quantile(
        self,
        column: str,
        rank: float = 0.5,
        where: str | None = None,
        *,
        by: str | None = None,
        edges: Sequence[Any] | None = None,
        **how: Any,
    ) -> Result:
        """The value below which a fraction `rank` of the rows lies, chosen among the column's edges."""
        super().quantile(column, rank, where, by=by, edges=edges, **how)
        return self._send("quantile", column=column, rank=rank, where=where, by=by, edges=edges, **how)[0]

    def sql(self, text: str, **how: Any) -> Any:
        """`SELECT [group,] count(*) | sum(x) | avg(x) | median(x) FROM t [WHERE …] [GROUP BY group]`."""
        super().sql(text, **how)
        results = self._send("sql", text=text, **how)
        return results[0] if len(results) == 1 else results

    def statistic(self, function: Function, columns: Sequence[str], **how: Any) -> NoReturn:
        """Refused: a function of your own does not travel."""
        refuse_code("statistic")


def refuse_code(what: str) -> NoReturn:
    """Refuse what would run the analyst's code beside the rows."""
    raise MechanismError(
        f"{what} runs code of your own beside the rows, and no code travels to a gateway; ask in the query "
        "language, or let the owner run it in process"
    )
