"""The same questions as a session's, only planned, or only looked up: nothing is read and nothing charged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from holdfast.mechanisms.sparse_vector import SparseVector
from holdfast.mechanisms.votes import FLIP
from holdfast.offered import offered
from holdfast.planning.keys_plan import keys_event
from holdfast.planning.keywords import Choice, Descent, Many, Threshold
from holdfast.planning.plan import Plan
from holdfast.planning.question import Interval, Read
from holdfast.privacy.event import BoundedRange, Event, KeysByGaussian, PureMechanism, Votes
from holdfast.privacy.filter import UNITS
from holdfast.query.calling import fitting
from holdfast.query.parse import parse_predicate
from holdfast.query.schema import Schema
from holdfast.session.above_threshold import check_terms, level_of, settled
from holdfast.session.certain import is_certain
from holdfast.session.keys import shared_keys, text_column
from holdfast.session.price import Price, price, priced
from holdfast.session.private_choice import choice_of, conditions_of, was_chosen
from holdfast.session.questions import Questions, Result
from holdfast.session.standing_answers import question_key, standing_entry

if TYPE_CHECKING:
    from holdfast.optimize import DescentPlan, Loss
    from holdfast.session.session import Session


class Beside(Questions[Result]):
    """Questions beside those that a session is asked."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def schema(self) -> Schema:
        """The columns that may be asked about."""
        return self._session.schema

    def _read(self, asked: Interval) -> Read:
        return self._session._read_by(asked, discover=False)


class Estimate(Beside[Plan]):
    """The same questions, planned only: no data is read and nothing is charged."""

    def put(self, asked: Read) -> list[Plan]:
        moment = self._session._moment()
        return [self._session._planned(each, asked.request, moment)[0] for each in asked.statistics]

    @fitting
    def sample(self, where: str) -> Price:
        """What `Session.sample` would cost."""
        question = f"one vote: {parse_predicate(where, self.schema)}"
        event = Votes(self._session._terms.rows, 1, FLIP)
        return price(self._session, question, "votes", event, "reads one row")

    @fitting
    def keys(self, column: str, *, rho: float | None = None, delta: float | None = None) -> Price:
        """What the discovery of `Session.keys` would cost."""
        column, _ = text_column(self.schema, column)
        words = f"keys of {column}"
        if rho is None and delta is None and shared_keys(self._session, column) is not None:
            return Price(words, "public", 0.0, f"{words}\nthey are public already; it costs nothing.")
        terms = self._session._terms
        event = keys_event(terms, column, rho, delta)
        amount = priced(terms, event, 0, None)[1].session / UNITS
        mechanism = "gaussian" if isinstance(event, KeysByGaussian) else "logistic"
        costs = f"reads all rows; it costs {amount:.4g} ({terms.session.currency})."
        return Price(words, mechanism, amount, f"{words}\n{costs}")

    @fitting
    def select(
        self, candidates: Sequence[str], scores: Sequence[Any] | None = None, **how: Unpack[Choice]
    ) -> Price:
        """What `Session.select` among conditions would cost."""
        epsilon, mechanism = choice_of(self._session.currency, candidates, **how)
        event: Event = BoundedRange(epsilon) if mechanism == "exponential" else PureMechanism(epsilon)
        conditions_of(self.schema, candidates, scores)
        question = f"select among {len(candidates)} candidates"
        return price(self._session, question, mechanism, event, "reads all rows")

    @fitting
    def sparse_vector(self, threshold: float, hits: int, **how: Unpack[Threshold]) -> Price:
        """What opening `Session.sparse_vector` would cost."""
        check_terms("watch", threshold, how)
        level = level_of(threshold, self._session._terms.rows)[1]
        terms = settled(how, self._session._terms.target)
        event = SparseVector(level, sensitivity=1, hits=hits, **terms).event
        words = f"may say 'above' {hits} times; all of it is charged at the opening"
        return price(self._session, f"sparse vector at {threshold:g}", "sparse-vector", event, words)

    @fitting
    def multiplicative_weights(self, columns: Sequence[str], *, queries: int, **how: Unpack[Many]) -> Price:
        """What all updates of `Session.multiplicative_weights` may cost."""
        priced: Price = offered("price_weights")(self._session, columns, queries=queries, **how)
        return priced

    @fitting
    def minimize(self, loss: Loss, **how: Unpack[Descent]) -> DescentPlan:
        """What `Session.minimize` would do: iterations, rows, cost, certified excess."""
        planned: DescentPlan = offered("plan_minimize")(self._session, loss, **how)
        return planned


class Known(Beside[bool]):
    """The same questions: were they asked before, so that the stored answer costs nothing?"""

    def put(self, asked: Read) -> list[bool]:
        request = asked.request
        return [
            is_certain(each)
            or standing_entry(self._session, each, request, question_key(each, request)) is not None
            for each in asked.statistics
        ]

    @fitting
    def select(
        self, candidates: Sequence[str], scores: Sequence[Any] | None = None, **how: Unpack[Choice]
    ) -> bool:
        """Whether `Session.select` among conditions was asked before."""
        return was_chosen(self._session, candidates, scores, **how)
