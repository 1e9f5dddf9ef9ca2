"""An answer in steps. Whoever takes them says when and where each is done: at once, or beside an event loop."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from holdfast.ledger import Charge, Ledger, Moment, Outcome, Wish, outcome
from holdfast.query.schema import Schema
from holdfast.query.statistic import Statistic
from holdfast.session.answer import Answer
from holdfast.session.questions import Questions
from holdfast.session.request import Request

if TYPE_CHECKING:
    from holdfast.session.session import Session

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Next:
    """What the next step will take, a public number: the rows of the table times the length of the question, as far
    as it reads; infinity if it may have to wait for somebody else."""

    work: float


Steps = Generator[Wish | Next, Any, Result]
"""Yields what the ledger has to commit before the next step, and gets what the ledger says to it; before a long step
it says so."""

Agree = Callable[[Charge, Moment], int | None]
"""Raises if a question shall not be charged, before it is; or says how many answers the session may have at most."""


def performed(steps: Steps[Result], ledger: Ledger) -> Result:
    """Take all steps, one after the other, in this thread."""
    step = taken(steps, None)
    while not isinstance(step, Done):
        step = taken(steps, None if isinstance(step, Next) else outcome(step, ledger))
    return step.result


@dataclass(frozen=True, slots=True)
class Done(Generic[Result]):
    """All steps are taken."""

    result: Result


def taken(steps: Steps[Result], said: Outcome | None) -> Wish | Next | Done[Result]:
    """Take one step, with what the ledger said to the wish before it."""
    try:
        return steps.throw(said) if isinstance(said, Exception) else steps.send(said)
    except StopIteration as done:
        return Done(done.value)


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
