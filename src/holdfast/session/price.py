"""What a release other than a statistic would cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from holdfast.mechanisms.sparse_vector import SparseVector
from holdfast.mechanisms.votes import FLIP
from holdfast.privacy.event import BoundedRange, Event, Group, PureMechanism, Votes
from holdfast.privacy.filter import UNITS
from holdfast.query.calling import fitting
from holdfast.query.parse import parse_predicate
from holdfast.query.universe import universe
from holdfast.session.keywords import Choice, Threshold
from holdfast.session.request import printable, whole
from holdfast.session.selection import choice_of
from holdfast.session.watch import check_terms, level_of
from holdfast.session.weights_plan import plan_weights

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.session.session import Session


@dataclass(frozen=True, slots=True)
class Price:
    """The most that a release can cost, in the session's currency. Known without a row."""

    question: str
    mechanism: str
    cost: float
    explanation: str
    answers: int = 0
    """How many of the session's promised answers it uses up."""

    def explain(self) -> str:
        """What it would be, in plain words."""
        return self.explanation

    def __str__(self) -> str:
        return self.explanation


def of_sample(session: Session, where: str) -> Price:
    """One vote."""
    question = f"one vote: {parse_predicate(where, session._schema)}"
    return _price(session, question, "votes", Votes(session._terms.rows, 1, FLIP), "reads one row")


def of_select(session: Session, candidates: Sequence[str], **how: Unpack[Choice]) -> Price:
    """A private choice."""
    epsilon, mechanism = choice_of(session, candidates, **how)
    event: Event = BoundedRange(epsilon) if mechanism == "exponential" else PureMechanism(epsilon)
    for text in candidates:
        parse_predicate(text, session._schema)
    question = f"select among {len(candidates)} candidates"
    return _price(session, question, mechanism, event, "reads all rows")


def of_sparse_vector(session: Session, threshold: float, hits: int, **how: Unpack[Threshold]) -> Price:
    """A sparse vector with all its hits."""
    check_terms("watch", threshold, how)
    vector = SparseVector(level_of(threshold, session._terms.rows)[1], sensitivity=1, hits=hits, **how)
    return _price(
        session, f"sparse vector at {threshold:g}", "sparse-vector", vector.event,
        f"may say 'above' {hits} times; all of it is charged at the opening",
    )  # fmt: skip


@fitting
def of_weights(
    session: Session,
    columns: Sequence[str],
    *,
    queries: int,
    edges: Mapping[str, Sequence[Any]] | None = None,
    nulls: Sequence[str] | None = None,
    version: str = "best",
    within: float | None = None,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    name: str = "weights",
) -> Price:
    """All updates of multiplicative weights."""
    cells = universe(session._schema, columns, edges, nulls=nulls)
    printable("name", name)
    terms = plan_weights(
        session, cells.points, whole("queries", queries), version=version, within=within, rho=rho, epsilon=epsilon,
        delta=delta,
    )  # fmt: skip
    each = _cost(session, terms.event)
    question = f"weights over {', '.join(columns)} ({cells.size:,} cells)"
    explanation = (
        f"{question}\nanswers {queries:,} questions within {terms.within:.4g} of the table; at most "
        f"{terms.updates:,} updates cost {each:.4g} each, the rest is free."
    )
    return Price(question, "multiplicative-weights", each * terms.updates, explanation, queries)


def _price(session: Session, question: str, mechanism: str, event: Event, words: str) -> Price:
    cost = _cost(session, event)
    return Price(question, mechanism, cost, f"{question}\n{words}; it costs {cost:.4g} ({session.currency}).")


def _cost(session: Session, event: Event) -> float:
    terms = session._terms
    if terms.rows_per_unit > 1:
        event = Group(event, terms.rows_per_unit)
    return terms.session.cost(event) / UNITS
