"""A session's questions, answered in steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.desk import Steps
from holdfast.ledger import Charge, Moment
from holdfast.planning.request import Request
from holdfast.query.schema import Schema
from holdfast.query.statistic import Statistic
from holdfast.session.answer import Answer
from holdfast.session.questions import Questions

if TYPE_CHECKING:
    from holdfast.session.session import Session

Agree = Callable[[Charge, Moment], int | None]
"""Raises if a question shall not be charged, before it is; or says how many answers the session may have at most."""


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
