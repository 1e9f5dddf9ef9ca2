"""A refusal before the charge: what the answer would have cost, and the nearest that can still be had."""

from __future__ import annotations

import math
from functools import partial

from holdfast.errors import BudgetError, InputError
from holdfast.ledger import UNCOVERED, Moment
from holdfast.planning.answers_left import answers_like, several
from holdfast.planning.budget import AMOUNT
from holdfast.planning.mechanism_choice import mechanisms_for
from holdfast.planning.plan import Plan
from holdfast.planning.planner import fits, plan_by, promised
from holdfast.planning.recipe_bought import recipe_bought
from holdfast.planning.request import Request
from holdfast.planning.terms import Terms
from holdfast.planning.width import range_length
from holdfast.privacy.filter import UNITS
from holdfast.query.statistic import Statistic, Workload, workload
from holdfast.validity.search import least

_HALVED = 30
"""How often a budget is halved in search of a narrower answer."""


def refuse_overspending(planned: Plan, moment: Moment, terms: Terms) -> None:
    """BudgetError for what the session's budget, or its share of the meter, does not pay for.

    The ledger would refuse as well; here the message can say what is affordable, and for how many answers.
    """
    if fits(planned, moment, terms):
        return
    remaining = terms.session.limit_units - moment.session.units
    within = affordable(planned.statistic, moment, terms, remaining)
    if planned.charge.session <= remaining:
        told = planned.charge.information / UNITS
        share = (terms.information - moment.session.information) / UNITS
        words = f"this answer tells {told:.4g} of the rows, and {share:.4g} is left of its share of the meter"
        requested, available = told, share
    else:
        requested, available = planned.cost, remaining / UNITS
        amount = AMOUNT[terms.session.currency]
        words = f"this answer costs {amount} {requested:.4g} and {available:.4g} is left"
    advice = "nothing more can be asked"
    if within is not None:
        advice = f"within={within:.4g} is still affordable{_for_how_many(planned, within, moment, terms)}"
    raise BudgetError(f"{words}; {advice}", requested=requested, remaining=available, within=within)


def affordable(statistic: Statistic, moment: Moment, terms: Terms, remaining: int) -> float | None:
    """The tightest half-width, to a hundredth, that `remaining` units of the session's budget, or a part of them, can
    still buy; of a share of the meter, telling what is left of it.

    For the population a part may buy more than the whole: what is spent widens every interval.
    """
    if remaining <= 0:
        return None
    totals = workload(statistic, terms.schema, terms.rows)
    # Asking for the width found here rounds its noise once more, hence the margin.
    amount = min(remaining / UNITS, _told_amount(moment, terms)) * (1 - 1e-5)
    if not amount > 0:
        return None

    def at(halved: float) -> float:
        width = _width_for(amount / 2**halved, totals, moment, terms)
        return math.inf if width is None else width

    best = at(0.0)
    if terms.target == "population":
        steps = [at(float(halved)) for halved in range(_HALVED)]
        nearest = steps.index(min(steps))
        around = (
            least(at, max(0.0, nearest - 1.0), nearest + 1.0, 8)[0] if min(steps) < math.inf else math.inf
        )
        best = min(min(steps), around)
    return best if best < range_length(totals, terms.rows) else None


def _told_amount(moment: Moment, terms: Terms) -> float:
    """How much of the session's currency answers cost that tell what is left of its share of the meter: with Gaussian
    noise, in a pure session with logistic noise."""
    if terms.information == UNCOVERED:
        return math.inf
    mu_squared = (terms.information - moment.session.information) / UNITS / terms.rows
    if terms.session.currency == "pure":
        return math.sqrt(2 * mu_squared)
    return mu_squared if terms.session.currency == "gdp" else mu_squared / 2


def _width_for(amount: float, totals: Workload, moment: Moment, terms: Terms) -> float | None:
    """The half-width that so much of the session's currency buys."""
    try:
        mechanism = mechanisms_for(totals, Request(), moment, terms)[0]
        if mechanism == "votes":
            mechanism = "logistic" if terms.session.currency == "pure" else "gaussian"
        recipe = recipe_bought(mechanism, totals, amount, terms.session.currency, terms)
        made = promised(totals, recipe, moment, terms)
    except InputError:
        return None
    return made.width if made is not None and math.isfinite(made.width) else None


def _for_how_many(planned: Plan, within: float, moment: Moment, terms: Terms) -> str:
    """For how many answers at least a width can be had, in words."""
    totals = workload(planned.statistic, terms.schema, terms.rows)
    request = Request(within=within)
    try:
        again = partial(_again, mechanisms_for(totals, request, moment, terms)[0], totals, request, terms)
        made = again(moment)
    except InputError:
        return ""
    return "" if made is None else f", for {several(answers_like(made, again, moment, terms))}"


def _again(mechanism: str, totals: Workload, request: Request, terms: Terms, moment: Moment) -> Plan | None:
    return plan_by(mechanism, totals, request, moment, terms)
