"""What was planned for the answers of a session, in one line, and what another currency would give."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from holdfast.ledger import UNCOVERED, Account, Moment, Totals
from holdfast.planning.answers_left import several
from holdfast.planning.budget import AMOUNT, Budget, budget
from holdfast.planning.plain_answer import QUANTILE, cost_in_all
from holdfast.planning.promise import LEFT_OUT
from holdfast.planning.session_plan import MANY, possible, session_plan
from holdfast.planning.terms import Terms
from holdfast.privacy.filter import UNITS
from holdfast.privacy.rounding import miss, sure
from holdfast.validity.places import Places
from holdfast.validity.rare_events import AT, rare_width

_NARROWER = 0.99
"""Another currency is worth a word where answers would be so much narrower."""
_DOUBLED = 40
"""How often a budget is doubled in search of one that is enough for an answer."""
_MUCH = 0.5
"""A plan that costs less of its budget is not kept wide by it."""


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
    near, but = "", "" if own.currency == "gdp" else f"; a quantile counts as {QUANTILE}"
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
    """How near answers could be in a session with the same epsilon and delta that is counted in another way, in words;
    nothing where they would not be narrower, and once the session has answered.

    Gaussian answers alone are accounted for exactly; without delta= they would be by logistic noise, which costs least
    where few rows are asked little. A session that takes every kind of question counts rho.
    """
    whole, places, limit = given.amount(terms.session.limit_units), terms.places, terms.session.limit_units
    if places is None or terms.queries is None or moment.session.entries or terms.information < UNCOVERED:
        return ""
    if given.delta is None or whole.epsilon is None or not whole.epsilon > 0:
        return ""
    if places.epochs and cost_in_all(places, terms.session) < _MUCH * limit:
        return ""  # it is not the budget that keeps them wide
    own = places.width if places.epochs else 1.0
    found = _widths(replace(terms, places=None), moment.table, moment.cap, whole.epsilon, given.delta)
    width, words = min(found, default=(own, ""))
    return f"; {words} within {width:.3g}" if width < _NARROWER * own else ""


@lru_cache(maxsize=64)
def _widths(
    terms: Terms, told: Totals, cap: Account | None, epsilon: float, delta: float
) -> tuple[tuple[float, str], ...]:
    """The common half-width in each other currency, and its words."""
    exact, pure = budget(epsilon=epsilon, delta=delta, only="gaussian"), budget(epsilon=epsilon)
    found = []
    ways = ((exact, 'by Gaussian answers alone (only="gaussian")'), (pure, "without delta= (pure epsilon)"))
    for own, words in ways:
        if own.currency == terms.session.currency:
            continue
        made = session_plan(replace(terms, session=own.filter), Moment(Totals(), told, cap))
        if made is not None and made.epochs:
            found.append((made.width, words))
    return tuple(found)
