"""From a question and a wish to a plan. Public numbers in, a plan out."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain

from holdfast.errors import InputError, MechanismError
from holdfast.ledger import UNCOVERED, Charge, Moment, Precondition
from holdfast.mechanisms.values import round_down, round_up
from holdfast.planning.mean import aims, when_it_holds
from holdfast.planning.plain_answer import plain_recipe, spare_units, told_until
from holdfast.planning.plan import Alternative, Plan, Recipe
from holdfast.planning.promise import (
    Promise,
    answered,
    left_out_promises,
    next_promises,
    refuse_beyond_the_promise,
    total_rho,
)
from holdfast.planning.recipe_event import event_of, pure_epsilon, selections
from holdfast.planning.recipe_information import recipe_information
from holdfast.planning.recipe_search import (
    LEAST_NOISE,
    LEAST_VARIANCE,
    fewest,
    is_counted,
    recipe_within,
    refuse_undrawable,
)
from holdfast.planning.request import Request
from holdfast.planning.terms import Terms
from holdfast.planning.width import range_length, spans, stated, widths, wished
from holdfast.privacy.event import Group
from holdfast.privacy.filter import UNITS
from holdfast.privacy.rule import zcdp
from holdfast.query.statistic import Statistic, Workload, workload

_HALVED = 30
"""How often a budget is halved in search of a narrower answer."""

_GAIN = 1.05
"""Who pays more and gets so much less is told."""

_NEARER, _TIMES = 1.01, 7000
"""A refusal names the nearest width that can be had to a hundredth, up to any."""

PAYS = 32
"""Sampling pays when it reads at most one row in this many; a scan of the rest is as quick."""

_MANY = 1000
"""So many answers a budget is meant for where nobody says how many."""

NEARLY_EQUAL = 2.5
"""Costs within this factor count as near-equal; then the plan that reads the fewest rows wins."""


def plan(statistic: Statistic, request: Request, moment: Moment, terms: Terms) -> Plan:
    """The least costly plan that does what the request asks; among near-equal costs, the fewest rows.

    A mean by groups keeps `within` in groups of an equal share of the rows, or of the fewest for which that can be
    certified; the plan says of how many (`Plan.qualifying`).
    Raises before anything is charged: InputError, MechanismError.
    """
    totals = workload(statistic, terms.schema, terms.rows)
    if terms.fixed is not None:
        return _fixed_plan(totals, request, terms)
    if terms.places is not None:
        refuse_beyond_the_promise(1, answered(moment, terms), terms)
    _refuse_vacuous(totals, request, terms)
    mechanisms = mechanisms_for(totals, request, moment, terms)
    for aim in aims(totals, terms.rows):
        tried = (_plan_by(mechanism, totals, request, moment, terms, aim) for mechanism in mechanisms)
        found = [made for made in tried if made is not None]
        if found:
            break
    else:
        raise InputError(_impossible(totals, request, moment, terms))
    best = _best(found, moment, terms)
    if is_plain(request) and _is_vacuous(best, totals, terms):
        raise InputError(_impossible(totals, request, moment, terms))
    return replace(best, advice=_advice(best, totals, request, moment, terms))


def _is_vacuous(made: Plan, totals: Workload, terms: Terms) -> bool:
    """Whether an answer for the population would tell nothing, even of a mean to which every row belongs."""
    if made.target != "population":
        return False
    width = made.width
    if totals.statistic.kind == "mean":
        width = widths(totals, made.recipe, made.promise, terms.rows).whole
    return width >= range_length(totals, terms.rows)


def _refuse_vacuous(totals: Workload, request: Request, terms: Terms) -> None:
    """InputError for a width that every answer has, before a row is read."""
    length, kind = range_length(totals, terms.rows), totals.statistic.kind
    if not length > 0:
        raise InputError(
            f"cannot plan: this {kind} is the same number whatever the rows are; there is nothing to ask"
        )
    if request.within is not None and request.within >= length:
        what = (
            "every value of the column is within 1 of every rank"
            if kind == "quantile"
            else (f"no two values of this {kind} are more than {length:g} apart, whatever the rows are")
        )
        raise InputError(
            f"cannot plan: within={request.within:g} would tell nothing: {what}; ask for less than {length:g}"
        )


def _advice(best: Plan, totals: Workload, request: Request, moment: Moment, terms: Terms) -> str:
    """Words for whoever pays so much for one answer that the population's part outweighs what it gains."""
    given = next((name for name in ("rho", "epsilon") if getattr(request, name) is not None), None)
    if given is None or terms.target != "population":
        return ""
    less = replace(request, **{given: getattr(request, given) / 4})
    try:
        made = _plan_by(best.mechanism, totals, less, moment, terms)
    except InputError:
        return ""
    if made is None or made.width * _GAIN >= best.width:
        return ""
    return (
        f"A quarter of that budget would be within about {made.width:.3g}: what is spent on the table widens every "
        "interval for the population."
    )


def finish(
    totals: Workload, recipe: Recipe, promise: Promise, terms: Terms, within: float | None = None
) -> Plan:
    """Everything that follows from the choice of a recipe and a promise, and from the half-width asked for.

    InputError, before anything is charged, if its noise is larger than can be drawn.
    """
    for span in spans(totals) if recipe.per_span else (1,):
        refuse_undrawable(recipe.mechanism, recipe.noise * span**2)
    event = event_of(totals, recipe, terms.rows)
    if terms.rows_per_unit > 1:
        event = Group(event, terms.rows_per_unit)
    within = None if totals.statistic.kind == "quantile" else within or wished(totals, terms)
    planned, qualifying = stated(totals, recipe, promise, terms, within)
    scope = ""
    if totals.statistic.kind == "mean":
        scope = when_it_holds(totals, terms.rows, within, qualifying)
    elif totals.statistic.kind == "quantile":
        scope = "in rank, as a fraction of the rows"
    elif terms.fixed is not None and terms.fixed.odds:
        scope = "for a frequency of one half; nearer for rare and for frequent events"
    return Plan(
        statistic=totals.statistic,
        recipe=recipe,
        promise=promise,
        event=event,
        charge=Charge(
            terms.session.cost(event),
            terms.table.cost(event),
            _queries(totals, terms),
            recipe_information(totals, recipe, terms.rows) if terms.rows_per_unit == 1 else UNCOVERED,
        ),
        rho=zcdp(event).rho,
        epsilon=pure_epsilon(event),
        widths=planned,
        rows=terms.rows,
        confidence=terms.confidence,
        scope=scope,
        within=within,
        qualifying=qualifying,
    )


def affordable(statistic: Statistic, moment: Moment, terms: Terms, remaining: int) -> float | None:
    """The tightest half-width that `remaining` units of the session's budget, or a part of them, can still buy.

    For the population a part may buy more than the whole: what is spent widens every interval.
    """
    if remaining <= 0 or terms.fixed is not None:
        return None
    totals = workload(statistic, terms.schema, terms.rows)
    # Asking for the width found here rounds its noise once more, hence the margin.
    amount = remaining / UNITS * (1 - 1e-5)
    parts = (amount / 2**halved for halved in range(_HALVED if terms.target == "population" else 1))
    found = [width for part in parts if (width := _width_for(part, totals, moment, terms)) is not None]
    least = min(found, default=math.inf)
    return least if least < range_length(totals, terms.rows) else None


def _width_for(amount: float, totals: Workload, moment: Moment, terms: Terms) -> float | None:
    """The half-width that so much of the session's currency buys."""
    try:
        mechanism = mechanisms_for(totals, Request(), moment, terms)[0]
        made = _promised(
            totals, _bought(mechanism, totals, amount, terms.session.currency, terms), moment, terms
        )
    except InputError:
        return None
    return made.width if made is not None and math.isfinite(made.width) else None


def is_plain(request: Request) -> bool:
    """Whether the question says nothing of how exact it is to be: then the session's plan does."""
    return request.within is None and request.rho is None and request.epsilon is None


def mechanisms_for(totals: Workload, request: Request, moment: Moment, terms: Terms) -> tuple[str, ...]:
    """The mechanisms to try; an explicit choice or an explicit budget leaves one.

    While the leave-out theorem holds, what it does not cover is done by name only: it ends it for everybody.
    """
    currency, kind = terms.session.currency, totals.statistic.kind
    if kind == "quantile":
        if currency == "gdp":
            raise MechanismError(
                "a quantile is a selection, and this session is Gaussian-only; open it without only= "
                "or ask for a histogram"
            )
        allowed: tuple[str, ...] = ("exponential",)
        default = allowed
    else:
        allowed = tuple(m for m in terms.mechanisms if _answers(m, totals))
        default = allowed
        if request.epsilon is not None:
            default = ("laplace",)
        elif request.rho is not None:
            default = ("gaussian",)
        elif request.within is None:
            default = allowed[:1]
            if terms.places is not None and terms.places.epochs and terms.places.mechanism in allowed:
                default = (terms.places.mechanism,)
        elif terms.places is not None and moment.table.information < UNCOVERED:
            default = tuple(m for m in allowed if m == "gaussian" or (m == "votes" and terms.places.by_votes))
    if request.mechanism is not None:
        default = (request.mechanism,)
    for mechanism in default:
        if mechanism not in allowed:
            raise MechanismError(
                f"{mechanism!r} cannot be used here: {_reason(currency)}; use {' or '.join(allowed)}"
            )
    return default


def _answers(mechanism: str, totals: Workload) -> bool:
    """Sampling answers one number at a time: a vote knows nothing of the other groups."""
    return mechanism in ("gaussian", "laplace") or totals.statistic.by is None


def _reason(currency: str) -> str:
    return {
        "pure": "this session is pure (it was opened without delta), so only pure mechanisms answer",
        "gdp": "this session is Gaussian-only",
        "zcdp": "that mechanism does not answer this statistic",
    }[currency]


def _plan_by(
    mechanism: str, totals: Workload, request: Request, moment: Moment, terms: Terms, aim: int | None = None
) -> Plan | None:
    """The best plan with one mechanism, or None if it cannot do it. A mean is to be within if `aim` rows qualify
    (None: all)."""
    if request.within is None:
        if is_plain(request) and request.rows is None and mechanism != "exponential":
            recipe = plain_recipe(mechanism, totals, moment, terms)
            if recipe is not None:
                return _promised(totals, recipe, moment, terms)
        amount, currency = amount_of(request, moment, terms)
        return _promised(totals, _bought(mechanism, totals, amount, currency, terms), moment, terms)
    for promise in _promises(mechanism, moment, terms):
        recipe = recipe_within(mechanism, totals, request.within, request.rows, promise, terms, aim)
        if recipe is None and promise.left_out is None:
            return None  # a later promise is wider still
        if recipe is None:
            continue
        made = finish(totals, recipe, promise, terms, request.within)
        if _within_level(made, promise, moment, terms) and made.width <= request.within:
            return made
    return None


def _promised(totals: Workload, recipe: Recipe, moment: Moment, terms: Terms) -> Plan | None:
    """The plan for a recipe under the narrowest promise that its cost allows."""
    for promise in _promises(recipe.mechanism, moment, terms):
        made = finish(totals, recipe, promise, terms)
        if _within_level(made, promise, moment, terms):
            return made
    return None


def _promises(mechanism: str, moment: Moment, terms: Terms) -> Iterator[Promise]:
    """What an answer by this mechanism may promise, the narrowest first."""
    places = terms.places
    if places is not None and (mechanism == "gaussian" or (mechanism == "votes" and places.by_votes)):
        covered = left_out_promises(moment, terms, told_until(moment, terms))
        found = next(covered, None)
        if found is not None:
            return chain((found,), covered)
    return next_promises(moment, terms)


def _queries(totals: Workload, terms: Terms) -> int:
    """How many queries an answer counts for. The numbers of a vector share the chance of one, except under
    the theorems for one fixed noise, which count every number."""
    return totals.size if terms.fixed is not None else 1


def holds(made: Plan, moment: Moment, terms: Terms) -> Precondition:
    """How far the ledger may move before this plan would have been another: to the end of its epoch, and of
    its level."""
    currency = terms.table.currency
    if terms.fixed is not None:
        return Precondition(session_answers=terms.queries, alone=True, currency=currency)
    first = answered(moment, terms) + 1
    last = terms.queries if terms.queries is not None else 2 ** first.bit_length() - 1
    if terms.target == "table":
        return Precondition(session_answers=last, currency=currency)
    most = units_of_rho(made.promise.most_rho, terms)
    if terms.places is None:
        return Precondition(table_answers=last, table_units=most, currency=currency)
    if terms.places.epochs:
        last = terms.places.epoch_of(first)[1]
    if made.promise.left_out is None:
        return Precondition(session_answers=last, table_units=most, currency=currency)
    told = made.promise.information
    return Precondition(session_answers=last, table_information=told, currency=currency)


def units_of_rho(rho: float, terms: Terms) -> int:
    """The most units of the table's currency whose loss is at most `rho`."""
    if math.isinf(rho):
        return 1 << 100
    if terms.table.currency == "zcdp":
        return math.floor(Fraction(rho) * UNITS)
    return math.floor(Fraction(_epsilon_of_rho(rho)) * UNITS)


def _within_level(made: Plan, promise: Promise, moment: Moment, terms: Terms) -> bool:
    """Whether the charge leaves the table's total at the promise's level: in units, as the ledger will check."""
    return moment.table.units + made.charge.table <= units_of_rho(promise.most_rho, terms)


def amount_of(request: Request, moment: Moment, terms: Terms) -> tuple[float, str]:
    """The budget for one answer: as the request says, or an equal share of what the session's plan leaves."""
    if request.epsilon is not None:
        return request.epsilon, "pure"
    if request.rho is not None:
        return request.rho, "zcdp"
    if terms.queries is None:
        raise InputError(
            "expected how exact, got nothing; say within= (accuracy), rho= or epsilon= (budget); or "
            "open the session with "
            "queries= to share its budget equally"
        )
    units = spare_units(moment, terms)
    if units <= 0:
        raise InputError(
            "cannot plan: the session's budget divided by its queries is less than a billionth; ask for fewer"
        )
    return units / UNITS * (1 - 2.0**-20), terms.session.currency


def _bought(mechanism: str, totals: Workload, amount: float, currency: str, terms: Terms) -> Recipe:
    """The least noise that costs at most `amount`."""
    unit, exact, rows = terms.rows_per_unit, Fraction(amount), terms.rows
    sensitivity = totals.sensitivity()
    if mechanism == "gaussian":
        squared = Fraction(sensitivity.l2_squared * unit**2)
        variance = round_up(squared / exact) + 4 if currency == "gdp" else round_up(squared / (2 * exact))
        if not is_counted(mechanism, variance, terms):
            raise InputError(
                f"cannot plan: so much budget leaves noise of variance at most {LEAST_VARIANCE}, which a Gaussian-only "
                "budget cannot count; give less"
            )
        # So little noise moves nothing; less would only leave the floats.
        return Recipe(mechanism, max(variance, LEAST_NOISE), rows)
    if currency == "pure":
        epsilon = exact
    elif mechanism == "exponential":
        epsilon = round_down(2 * math.sqrt(2 * (amount / selections(totals)))) * selections(totals)
    else:
        epsilon = round_down(_epsilon_of_rho(amount))
    if mechanism == "laplace":
        return Recipe(mechanism, round_up(sensitivity.l1 * unit / epsilon), rows)
    if mechanism == "exponential":
        # A selection of bounded range eps costs eps (pure) or eps^2/8 (zCDP); groups multiply eps.
        each = round_down(float(epsilon / selections(totals) / unit) * (1 - 2.0**-40))
        return Recipe(mechanism, each, rows)
    raise InputError(f"cannot plan from a budget: {mechanism} is planned by accuracy; give within=")


def _epsilon_of_rho(rho: float) -> float:
    """The largest epsilon with epsilon*tanh(epsilon/2) <= rho, from below; positive where rho is.

    It is at most rho + 2 sqrt(rho), since tanh(y) >= y/(1+y). That bound shrinks with rho, so that halving it
    reaches every epsilon.
    """
    low, high = 0.0, rho + 2 * math.sqrt(rho)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * math.tanh(middle / 2) <= rho else (low, middle)
    return low * (1 - 2.0**-40)


def _best(found: list[Plan], moment: Moment, terms: Terms) -> Plan:
    """The least cost; among near-equal costs the fewest rows, if sampling pays at all."""
    cheapest = min(found, key=lambda made: made.charge.session)
    near = [
        made
        for made in found
        if (made.cost <= NEARLY_EQUAL * max(cheapest.cost, 1 / UNITS) or _is_spare(made, moment, terms))
        and (made.rows_read * PAYS <= terms.rows or made is cheapest)
    ]
    chosen = min(near, key=lambda made: made.rows_read)
    others = tuple(
        Alternative(made.mechanism, made.rho, made.rows_read) for made in found if made is not chosen
    )
    return replace(chosen, alternatives=others)


def _is_spare(made: Plan, moment: Moment, terms: Terms) -> bool:
    """Whether every answer might cost as much. By the leave-out theorem costs widen nothing, so it may."""
    if made.promise.left_out is None:
        return False
    many = terms.queries or _MANY
    share = terms.session.limit_units // many if terms.queries is None else spare_units(moment, terms)
    return made.charge.session <= share and made.charge.table <= terms.table.limit_units // many


def _fixed_plan(totals: Workload, request: Request, terms: Terms) -> Plan:
    """In a session planned for validity every answer has the same recipe."""
    fixed = terms.fixed
    assert fixed is not None
    if any(getattr(request, name) is not None for name in ("within", "rho", "epsilon", "mechanism", "rows")):
        raise InputError(
            "cannot plan again: this session was planned for all its answers at once; ask without "
            "within=, rho=, epsilon=, "
            "mechanism= or rows="
        )
    if totals.statistic.kind == "quantile" or not _answers(fixed.mechanism, totals):
        raise MechanismError(
            f"this session answers by {fixed.mechanism} only, one number at a time; open another for this"
        )
    if fixed.odds and totals.statistic.kind == "mean":
        raise MechanismError(
            "an odds interval is for a fraction, a count or a sum; open another session for a mean"
        )
    if fixed.mechanism == "votes":
        count = int(fixed.noise)
        recipe = Recipe("votes", fixed.noise, count * len(totals.measurements), fixed.flip)
    else:
        recipe = Recipe("gaussian", fixed.noise, terms.rows, per_span=True)
    return finish(totals, recipe, Promise(terms.target, 0.0), terms)


def _impossible(totals: Workload, request: Request, moment: Moment, terms: Terms) -> str:
    """Says what could be certified instead."""
    nearest = None
    if request.within is not None:
        mechanism = mechanisms_for(totals, Request(within=request.within), moment, terms)[0]

        def wider(times: int) -> Request:
            return Request(within=min(float(request.within or 0) * _NEARER**times, sys.float_info.max))

        times = fewest(
            lambda times: _plan_by(mechanism, totals, wider(times), moment, terms) is not None, _TIMES
        )
        nearest = None if times is None else wider(times).within
        if nearest is not None and nearest >= range_length(totals, terms.rows):
            nearest = None
    what = f"within={request.within:g}" if request.within is not None else "an answer that tells something"
    advice = "no width can be certified" if nearest is None else f"about within={nearest:.3g} can be"
    spent = total_rho(moment.table.units, terms) if terms.target == "population" else 0.0
    after = f" after answers of rho {spent:.2g} in all on this table" if spent else ""
    return f"{what} cannot be certified for the {terms.target} with {terms.rows:,} rows{after}; {advice}"
