"""What a release other than a statistic would cost."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.errors import MechanismError
from holdfast.ledger import UNCOVERED, Charge
from holdfast.planning.terms import Terms
from holdfast.privacy.event import Event, Group, KeysByGaussian, KeysByLogistic, Nothing, to_json
from holdfast.privacy.filter import UNITS, Filter

if TYPE_CHECKING:
    from holdfast.session.session import Session


_MOST = 10**300  # a float has no room for more


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
    return min(terms.session.cost(event), _MOST) / UNITS


def priced(terms: Terms, event: Event, queries: int, tells: int | None) -> tuple[str, Charge]:
    """What the ledger keeps of a charge, and its cost; refused where a session cannot count it."""
    delta = 0
    if isinstance(event, KeysByGaussian | KeysByLogistic):  # they know how many rows a unit owns
        delta = Filter.zcdp(1).delta_cost(event)
    elif terms.rows_per_unit > 1 and event != Nothing():
        event = Group(event, terms.rows_per_unit)
    if not delta and Filter.zcdp(1).delta_cost(event) > 0:
        raise MechanismError(
            "this mechanism has a delta of its own, and sessions count none; use another version"
        )
    if tells is None:
        tells = 0 if event == Nothing() else UNCOVERED
    told = tells_of(terms, tells) if tells else 0
    cost = Charge(terms.session.cost(event), terms.table.cost(event), queries, told, delta)
    return json.dumps(to_json(event)), cost


def tells_of(terms: Terms, told: int) -> int:
    """What a release tells of the units that the meter is about, of which none is set aside: of rows that belong to
    people in groups the theorem says nothing."""
    if terms.part == "aside":
        return 0
    return told if terms.on_the_meter else UNCOVERED
