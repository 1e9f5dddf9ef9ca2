"""An answer in steps. Whoever takes them says when and where each is done: at once, or beside an event loop."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.ledger import Charge, Ledger, Moment, Operation, Reserve
from holdfast.query.schema import Schema
from holdfast.query.statistic import Statistic
from holdfast.session.answer import Answer
from holdfast.session.questions import Questions
from holdfast.session.request import Request

if TYPE_CHECKING:
    from holdfast.session.session import Session

Result = TypeVar("Result")

Steps = Generator[Operation, Any, Result]
"""Yields what the ledger has to commit before the next step, and gets what the ledger says to it."""

Agree = Callable[[Charge, Moment], None]
"""Raises if a question shall not be charged, before it is."""


def performed(steps: Steps[Result], ledger: Ledger) -> Result:
    """Take all steps, one after the other, in this thread."""
    try:
        wish = next(steps)
        while True:
            try:
                outcome = (
                    ledger.reserve(wish.session, wish.key, wish.plan, wish.event, wish.charge, wish.holds)
                    if isinstance(wish, Reserve)
                    else ledger.record(wish.entry, wish.answer, secret=wish.secret)
                )
            except Exception as error:
                wish = steps.throw(error)
            else:
                wish = steps.send(outcome)
    except StopIteration as done:
        result: Result = done.value
        return result


class Asking(Questions[Steps[Answer]]):
    """The same questions as a session's, each answered in steps: the charge first, then the rows, then the record.

    Several aggregates at once are a list of answers, each charged for itself.
    """

    def __init__(self, session: Session, agree: Agree) -> None:
        self._session, self._agree = session, agree

    @property
    def _schema(self) -> Schema:
        return self._session._schema

    def _put(self, statistics: list[Statistic], request: Request) -> list[Steps[Answer]]:
        return [self._session._steps(statistic, request, self._agree) for statistic in statistics]
