"""The questions as they travel: in the form in which they were put."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn, Unpack

from holdfast.errors import MechanismError
from holdfast.planning.keywords import Accuracy, Descent
from holdfast.query.calling import fitting
from holdfast.query.function import Function
from holdfast.session.questions import Questions, Result

if TYPE_CHECKING:
    from holdfast.optimize import Loss


class RemoteQuestions(Questions[Result]):
    """The same questions, sent to a gateway.

    Each is read here first, as in process: what is outside the language is refused, and nothing is sent. Then it
    travels as it was given.
    """

    @fitting
    def statistic(self, function: Function, columns: Sequence[str], **how: Unpack[Accuracy]) -> NoReturn:
        """Refused: a function of your own does not travel."""
        refuse_code("statistic")

    @fitting
    def minimize(self, loss: Loss, **how: Unpack[Descent]) -> NoReturn:
        """Refused: a loss of your own does not travel."""
        refuse_code("minimize")


def refuse_code(what: str) -> NoReturn:
    """Refuse what would run the analyst's code beside the rows."""
    raise MechanismError(
        f"{what} runs code of your own beside the rows, and no code travels to a gateway; ask in the query "
        "language, or let the owner run it in process"
    )
