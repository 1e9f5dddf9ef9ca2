"""What was planned for the answers of a session, in one line, and what another currency would give."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

from holdfast.ledger import UNCOVERED, Account, Moment, Totals
from holdfast.planning.answers_left import several
from holdfast.planning.budget import AMOUNT, Budget, budget
from holdfast.planning.plain_answer import QUANTILE, cost_in_all
from holdfast.planning.promise import LEFT_OUT
from holdfast.planning.session_plan import MANY, NARROWER, is_dear, possible, session_plan
from holdfast.planning.terms import Terms
from holdfast.privacy.filter import UNITS
from holdfast.privacy.rounding import miss, sure
from holdfast.validity.places import Places
from holdfast.validity.rare_events import AT, rare_width

_DOUBLED = 40
"""How often a budget is doubled in search of one that is enough for an answer."""


def plan_line(terms: Terms, own: Budget, moment: Moment) -> str:
    """What was planned for answers that say nothing of how exact they are to be, in one line."""
    places = terms.places
    if places is not None and not places.epochs and terms.queries is not None:
        return (
            f"Nothing that tells something can be planned for {several(terms.queries)} on {terms.rows:,} rows"
            f"{could_be(terms, moment)}{elsewhere(terms, own, moment)}."
        )
    if places is None and terms.target == "population" and terms.rows < 2:
        return f"Nothing can be said of the population{could_be(terms, moment)}."
    if places is None or not places.epochs:
        return "No common half-width is planned: each answer says for itself how exact it is to be."
    near, but = "", f"; a quantile counts as {QUANTILE}"
    if places.rare:
        near = f" ({rare_width(places, miss(terms.confidence) * LEFT_OUT, AT):.3g} near {AT:.0%}, if all are)"
    each = f"{several(terms.queries or 0)}, each within {places.width:.3g}{near} of the population"
    price = f"{_price(places, terms, own)}{but}{elsewhere(terms, own, moment)}"
    return f"{each} at {sure(terms.confidence)}, together; {price}"


def _price(places: Places, terms: Terms, own: Budget) -> str:
    """What all places cost of the budget, in words; rounded to two digits it may look like all of it."""
    units, most = cost_in_all(places, terms.session), terms.session.limit_units
    cost, limit = (own.amount(amount) for amount in (units, most))
    notion = "rho" if limit.epsilon is None else "epsilon"
    spent, given = f"{getattr(cost, notion):.2g}", f"{getattr(limit, notion):.3g}"
    if units == most:  # opened without a budget, for what the plan costs
        return f"{notion} {given} in all"
    if units > most:  # opened again with less
        return f"{notion} {spent}, more than your {given}"
    if float(spent) >= float(given):
        return f"all of your {notion} {given}"
    return f"{notion} {spent} of your {given}"


def could_be(terms: Terms, moment: Moment) -> str:
    """The nearest that can be had where nothing is planned, in words: fewer answers, or one for more budget."""
    if terms.target != "population":
        return ""
    alone = '; of the rows themselves something can be said (target="table")'
    if terms.places is None:
        return "" if terms.rows > 1 else alone
    many, width = possible(terms, moment, min(terms.queries or MANY, max(MANY, terms.rows)))
    if many:
        return f"; {several(many)} could be within {width:.3g}: open a session for fewer"
    one = replace(terms, queries=1, places=None, information=UNCOVERED)
    for power in range(1, _DOUBLED):
        more = replace(terms.session, limit_units=terms.session.limit_units * 2**power)
        made = session_plan(replace(one, session=more), replace(moment, session=Totals()))
        if made is not None and made.epochs:
            cost = cost_in_all(made, terms.session) / UNITS
            return f"; one answer within {made.width:.3g} takes {AMOUNT[terms.session.currency]} {cost:.3g}"
    return alone


def elsewhere(terms: Terms, given: Budget, moment: Moment) -> str:
    """How near answers could be in a session with the same epsilon and no delta, in words; nothing where they would not
    be narrower, and once the session has answered.

    They would be by logistic noise, which costs least where few rows are asked little.
    """
    whole, places = given.amount(terms.session.limit_units), terms.places
    if places is None or terms.queries is None or moment.session.entries or terms.information < UNCOVERED:
        return ""
    if given.delta is None or whole.epsilon is None or not whole.epsilon > 0:
        return ""
    if not is_dear(places, terms):
        return ""
    own = places.width if places.epochs else 1.0
    width = _pure_width(replace(terms, places=None), moment.table, moment.cap, whole.epsilon)
    return f"; without delta= (pure epsilon) within {width:.3g}" if width < NARROWER * own else ""


@lru_cache(maxsize=64)
def _pure_width(terms: Terms, told: Totals, cap: Account | None, epsilon: float) -> float:
    """The common half-width by pure epsilon; inf if there is none."""
    pure = replace(terms, session=budget(epsilon=epsilon).filter)
    made = session_plan(pure, Moment(Totals(), told, cap))
    return made.width if made is not None and made.epochs else math.inf
