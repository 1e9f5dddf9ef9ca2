"""What a release other than a statistic would cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.privacy.event import Event, Group
from holdfast.privacy.filter import UNITS

if TYPE_CHECKING:
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


def price(session: Session, question: str, mechanism: str, event: Event, words: str) -> Price:
    """The price of one release."""
    cost = cost_of(session, event)
    return Price(question, mechanism, cost, f"{question}\n{words}; it costs {cost:.4g} ({session.currency}).")


def cost_of(session: Session, event: Event) -> float:
    """What an event costs, in the session's currency; rows owned in groups cost as groups."""
    terms = session._terms
    if terms.rows_per_unit > 1:
        event = Group(event, terms.rows_per_unit)
    return terms.session.cost(event) / UNITS
