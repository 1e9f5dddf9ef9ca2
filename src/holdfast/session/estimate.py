"""The same questions as a session's, only planned, or only looked up: nothing is read and nothing charged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from holdfast.query.calling import fitting
from holdfast.query.schema import Schema
from holdfast.query.statistic import Statistic
from holdfast.session import price
from holdfast.session.keywords import Choice, Descent, Many, Threshold
from holdfast.session.plan import Plan
from holdfast.session.price import Price
from holdfast.session.questions import Questions
from holdfast.session.request import Request
from holdfast.session.selection import was_chosen
from holdfast.session.standing import question_key, standing_entry

if TYPE_CHECKING:
    from holdfast.session.minimize import DescentPlan, Loss
    from holdfast.session.session import Session


class Estimate(Questions[Plan]):
    """The same questions, planned only: no data is read and nothing is charged."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def _schema(self) -> Schema:
        return self._session._schema

    def _put(self, statistics: list[Statistic], request: Request) -> list[Plan]:
        moment = self._session._moment()
        return [self._session._planned(statistic, request, moment)[0] for statistic in statistics]

    @fitting
    def sample(self, where: str) -> Price:
        """What `Session.sample` would cost."""
        return price.of_sample(self._session, where)

    @fitting
    def select(self, candidates: Sequence[str], **how: Unpack[Choice]) -> Price:
        """What `Session.select` among conditions would cost."""
        return price.of_select(self._session, candidates, **how)

    @fitting
    def sparse_vector(self, threshold: float, hits: int, **how: Unpack[Threshold]) -> Price:
        """What opening `Session.sparse_vector` would cost."""
        return price.of_sparse_vector(self._session, threshold, hits, **how)

    @fitting
    def multiplicative_weights(self, columns: Sequence[str], *, queries: int, **how: Unpack[Many]) -> Price:
        """What all updates of `Session.multiplicative_weights` may cost."""
        return price.of_weights(self._session, columns, queries=queries, **how)

    @fitting
    def minimize(self, loss: Loss, **how: Unpack[Descent]) -> DescentPlan:
        """What `Session.minimize` would do: iterations, rows, cost, certified excess."""
        from holdfast.session.minimize import plan_minimize

        return plan_minimize(self._session, loss, **how)


class Known(Questions[bool]):
    """The same questions: were they asked before, so that the stored answer costs nothing?"""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def _schema(self) -> Schema:
        return self._session._schema

    def _put(self, statistics: list[Statistic], request: Request) -> list[bool]:
        return [
            standing_entry(self._session, statistic, request, question_key(statistic, request)) is not None
            for statistic in statistics
        ]

    @fitting
    def select(self, candidates: Sequence[str], **how: Unpack[Choice]) -> bool:
        """Whether `Session.select` among conditions was asked before."""
        return was_chosen(self._session, candidates, **how)
