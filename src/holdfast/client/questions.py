"""The questions as they travel: in the words in which they were put."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from typing import Any, NoReturn, Unpack

from holdfast.errors import MechanismError
from holdfast.planning.keywords import Accuracy
from holdfast.planning.request import Request
from holdfast.query.calling import fitting
from holdfast.query.function import Function
from holdfast.query.statistic import Statistic
from holdfast.session.questions import Questions, Result


def _sent(kind: str) -> Callable[..., Any]:
    """A question of `Questions`, with its signature and words: read as there, then sent as it was given."""
    read = getattr(Questions, kind)
    parameters = signature(read)

    @wraps(read)
    def put(self: RemoteQuestions[Any], *given: Any, **how: Any) -> Any:
        read(self, *given, **how)
        _, *words = parameters.bind(self, *given, **how).arguments.items()
        results = self._send(kind, **dict(words))
        return results if kind == "sql" else results[0]

    return put


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

    @fitting
    def statistic(self, function: Function, columns: Sequence[str], **how: Unpack[Accuracy]) -> NoReturn:
        """Refused: a function of your own does not travel."""
        refuse_code("statistic")


for _kind in ("fraction", "count", "sum", "mean", "histogram", "quantile", "sql"):
    setattr(RemoteQuestions, _kind, _sent(_kind))  # a type checker sees those of `Questions`


def refuse_code(what: str) -> NoReturn:
    """Refuse what would run the analyst's code beside the rows."""
    raise MechanismError(
        f"{what} runs code of your own beside the rows, and no code travels to a gateway; ask in the query "
        "language, or let the owner run it in process"
    )
