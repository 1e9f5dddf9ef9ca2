"""The same questions as a session's, only planned, or only looked up: nothing is read and nothing charged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.query.schema import Schema
from holdfast.query.statistic import Statistic
from holdfast.session import price
from holdfast.session.certain import is_certain
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

    def sample(self, where: str) -> Price:
        """What `Session.sample` would cost."""
        return price.of_sample(self._session, where)

    def select(self, candidates: Sequence[str], **how: Any) -> Price:
        """What `Session.select` among conditions would cost."""
        return price.of_select(self._session, candidates, **how)

    def sparse_vector(self, threshold: float, hits: int, **how: Any) -> Price:
        """What opening `Session.sparse_vector` would cost."""
        return price.of_sparse_vector(self._session, threshold, hits, **how)

    def multiplicative_weights(self, columns: Sequence[str], **how: Any) -> Price:
        """What all updates of `Session.multiplicative_weights` may cost."""
        return price.of_weights(self._session, columns, **how)

    def minimize(self, loss: Loss, **how: Any) -> DescentPlan:
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
            is_certain(statistic)
            or standing_entry(self._session, statistic, request, question_key(statistic, request)) is not None
            for statistic in statistics
        ]

    def select(self, candidates: Sequence[str], **how: Any) -> bool:
        """Whether `Session.select` among conditions was asked before."""
        return was_chosen(self._session, candidates, **how)
