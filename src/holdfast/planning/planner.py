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
from holdfast.mechanisms.votes import FLIP
from holdfast.planning.answers_left import answers_like, several
from holdfast.planning.mean import aims, when_it_holds
from holdfast.planning.mechanism_choice import is_plain, mechanisms_for
from holdfast.planning.meter import places_left
from holdfast.planning.plain_answer import plain_recipe, spare_units, told_each, told_until
from holdfast.planning.plan import ADDED_UP, SELECTED, Alternative, Plan, Recipe
from holdfast.planning.plan_line import could_be
from holdfast.planning.promise import (
    Promise,
    answered,
    counts_its_own,
    left_out_promises,
    next_promises,
    refuse_beyond_the_promise,
    total_rho,
)
from holdfast.planning.recipe_bought import amount_of, epsilon_of_rho, recipe_bought
from holdfast.planning.recipe_event import event_of, pure_epsilon
from holdfast.planning.recipe_information import recipe_information
from holdfast.planning.recipe_search import PAYS, fewest, paired, recipe_within, refuse_undrawable
from holdfast.planning.request import Request
from holdfast.planning.sum_width import RANKED
from holdfast.planning.terms import Terms
from holdfast.planning.width import of_each, range_length, spans, stated, table_reaches, widths, wished
from holdfast.privacy.event import Event, Group
from holdfast.privacy.filter import UNITS
from holdfast.privacy.rule import number, zcdp
from holdfast.query.propagation import UNFORESEEN
from holdfast.query.statistic import Statistic, Workload, workload
from holdfast.validity.places import sensible_flips

_ABOUT_THE_ROWS = '; target="table" asks about these rows alone'
_EXACTLY = ("fraction", "count", "sum")
"""Statistics whose width is known before a row is read."""

_GAIN = 1.05
"""Who pays more and gets so much less is told."""

_NEARER, _TIMES = 1.01, 7000
"""A refusal names the nearest width that can be had to a hundredth, up to any."""

_MANY = 1000
"""So many answers a budget is meant for where nobody says how many."""

_NARROWER = 1.3
"""Four times the price is advised only where it buys so much."""

NEARER = "for a frequency of one half; nearer for rare and for frequent events"

_ENDS = (
    "It ends the leave-out theorem on this table: later intervals for the population are wider (Theorem 20)."
)

NEARLY_EQUAL = 2.5
"""Costs within this factor count as near-equal; then the plan that reads the fewest rows wins."""


def plan(statistic: Statistic, request: Request, moment: Moment, terms: Terms) -> Plan:
    """The least costly plan that does what the request asks; among near-equal costs, the fewest rows.

    A mean by groups keeps `within` in groups of an equal share of the rows, or of the fewest for which that can be
    certified; the plan says of how many (`Plan.qualifying`).
    Raises before anything is charged: InputError, MechanismError.
    """
    if statistic.distinct is not None and terms.target == "population":
        raise MechanismError(
            "rows do not tell how many different values a population has: those that none of them has may be many; ask "
            'a session with target="table"'
        )
    totals = workload(statistic, terms.schema, terms.rows)
    if terms.places is not None:
        refuse_beyond_the_promise(1, answered(moment, terms), terms)
    _refuse_vacuous(totals, request, terms)
    mechanisms = mechanisms_for(totals, request, moment, terms)
    for aim in aims(totals, terms.rows):
        tried = (plan_by(mechanism, totals, request, moment, terms, aim) for mechanism in mechanisms)
        found = [made for made in tried if made is not None]
        if found:
            break
    else:
        raise InputError(_impossible(totals, request, moment, terms))
    best = _best(found, moment, terms)
    if request.rows is not None and best.rows_read > request.rows:
        raise MechanismError(
            f"cannot plan: this answer would read {best.rows_read:,} rows, got rows={request.rows}; a sample answers "
            "one number at a time, planned by within= or in a session opened with rows=; else leave rows= out"
        )
    asked = wished(totals, terms)
    if is_plain(request) and asked is not None and totals.statistic.kind in _EXACTLY and best.width > asked:
        # Others were told something meanwhile: the width that the session was opened for needs less noise now.
        return plan(statistic, replace(request, within=asked), moment, terms)
    if is_plain(request) and _is_vacuous(best, totals, terms):
        helps = _helps(best, totals, request, moment, terms) if _has_a_place(totals, request, terms) else ""
        raise InputError(_impossible(totals, request, moment, terms, helps))
    ends = best.charge.information >= UNCOVERED > moment.table.information and terms.rows_per_unit == 1
    advice = [
        _advice(best, totals, request, moment, terms),
        _too_few(best, totals, request, moment, terms),
        _after_it(best, moment, terms),
        _ENDS if ends else "",
    ]
    return replace(best, advice=" ".join(filter(None, advice)), ends_theorem=ends)


def _is_vacuous(made: Plan, totals: Workload, terms: Terms) -> bool:
    """Whether an answer for the population would tell nothing, even of a mean to which every row belongs."""
    if made.target != "population":
        return False
    width = made.width
    if totals.sums is not None and math.isinf(width):
        return min(made.widths.totals) >= terms.rows * spans(totals)[0]
    if (
        totals.joint is not None and totals.sums is None
    ):  # what it will tell depends on the rows, unless nothing is known of a total
        reaches = zip(made.widths.totals, spans(totals), strict=True)
        return any(reach >= terms.rows * span for reach, span in reaches)
    if totals.is_ratio:
        width = widths(totals, made.recipe, made.promise, terms.rows).whole
    return width >= range_length(totals, terms.rows)


def _refuse_vacuous(totals: Workload, request: Request, terms: Terms) -> None:
    """InputError for a width that every answer has, before a row is read."""
    length, kind = range_length(totals, terms.rows), totals.statistic.kind
    if not length > 0:
        raise InputError(
            f"cannot plan: this {kind} is the same number whatever the rows are; there is nothing to ask"
        )
    if request.within is not None and kind in (*UNFORESEEN, "independence"):
        raise InputError(
            f"cannot plan: how near a {kind} will be depends on the rows; say rho= or epsilon=, not within="
        )
    if request.within is not None and request.within >= length:
        what = (
            "every value of the column is within 1 of every rank"
            if kind in RANKED
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
        made = plan_by(best.mechanism, totals, less, moment, terms)
    except InputError:
        return ""
    if made is None or made.width * _GAIN >= best.width:
        return ""
    return (
        f"A quarter of that budget would be within about {made.width:.3g}: what is spent on the table widens every "
        "interval for the population."
    )


def _too_few(best: Plan, totals: Workload, request: Request, moment: Moment, terms: Terms) -> str:
    """Words for a mean that says next to nothing with the noise of its place."""
    if not _has_a_place(totals, request, terms) or best.width < range_length(totals, terms.rows) / 2:
        return ""
    few = aims(totals, terms.rows)[0]
    where = "" if totals.statistic.by is None else f" in groups of {few:,} rows"
    helps = _helps(best, totals, request, moment, terms)
    return f"With the noise of its place in the plan a mean{where} tells next to nothing; {helps}."


def _has_a_place(totals: Workload, request: Request, terms: Terms) -> bool:
    """Whether it is a mean that the session's plan has a place for."""
    return is_plain(request) and totals.is_ratio and terms.places is not None and bool(terms.places.epochs)


def _helps(made: Plan, totals: Workload, request: Request, moment: Moment, terms: Terms) -> str:
    """What a mean may be asked with that says next to nothing in its place: more budget, while that buys something."""
    pure = terms.places is not None and terms.places.mechanism == "logistic"
    mechanism, unit, times = ("logistic", "epsilon", 2) if pure else ("gaussian", "rho", 4)
    while True:
        amount = {unit: times * getattr(made, unit)}
        try:
            more = plan_by(mechanism, totals, replace(request, **amount), moment, terms)
        except InputError:
            break
        if more is None or not fits(more, moment, terms) or made.width < _NARROWER * more.width:
            break
        made = more
    fewer = "open a session for fewer queries"
    if made.width >= range_length(totals, terms.rows) / 2:
        return fewer
    return f"ask it with within={made.width:.3g} ({unit} about {getattr(made, unit):.2g}), or {fewer}"


def _after_it(best: Plan, moment: Moment, terms: Terms) -> str:
    """What the session's plan comes to after a quantile or running totals, which tell more than their place was
    planned for; and after a difference whose guess was too low."""
    places, guessed = terms.places, best.statistic.expect is not None and best.recipe.expect is not None
    much = best.mechanism in SELECTED or best.statistic.running or bool(best.statistic.ranks)
    if not (much or guessed) or places is None or not places.epochs:
        return ""
    if best.promise.left_out is None:
        return ""
    (_, before), (left, after) = (places_left(terms, then) for then in (moment, moment.after(best.charge)))
    if not left or after <= before:
        return ""
    each = told_each(places, places.epoch_of(moment.session.answers + 1)[0])
    times = f"as much as {best.charge.information / each:.2g} of the numbers that were planned"
    if guessed:
        return f"If they disagree on more it tells more, at most {times}, and widens those after it."
    return f"It tells {times}: after it {several(left)} can be had within {after:.3g}, without it within {before:.3g}."


def _told(totals: Workload, recipe: Recipe, promise: Promise, terms: Terms) -> int:
    """What an answer tells of the units that the meter is about; of those that are set aside none is."""
    if terms.part == "aside":
        return 0
    return recipe_information(totals, recipe, terms.rows, promise.rare) if terms.on_the_meter else UNCOVERED


def finish(
    totals: Workload, recipe: Recipe, promise: Promise, terms: Terms, within: float | None = None
) -> Plan:
    """Everything that follows from the choice of a recipe and a promise, and from the half-width asked for.

    InputError, before anything is charged, if its noise is larger than can be drawn.
    """
    spanned = spans(totals)
    for own, span in zip(of_each(totals, recipe), spanned, strict=True):
        refuse_undrawable(recipe.mechanism, own.of_span(span))
    event = event_of(totals, recipe, terms.rows)
    if terms.rows_per_unit > 1:
        event = Group(event, terms.rows_per_unit)
    within = None if totals.statistic.kind in RANKED else within or wished(totals, terms)
    planned, qualifying = stated(totals, recipe, promise, terms, within)
    scope = ""
    if totals.depends:
        scope = when_it_holds(totals, terms.rows, within, qualifying)
    elif totals.statistic.kind in RANKED:
        scope = "in rank, as a fraction of the rows"
        if totals.statistic.over is not None:
            scope += f" that there are if every {totals.statistic.over.unit} has {totals.most}"
    elif promise.rare:
        scope = NEARER
    elif recipe.expect is not None:
        scope = f"if the conditions disagree on at most {float(recipe.expect):.3g} of the rows, about; wider if on more"
    on_the_rows = promise.target == "population" and recipe.mechanism not in SELECTED
    return Plan(
        statistic=totals.statistic,
        recipe=recipe,
        promise=promise,
        event=event,
        charge=Charge(
            terms.session.cost(event),
            terms.table.cost(event),
            1,
            _told(totals, recipe, promise, terms),
        ),
        rho=rho_of(event, terms.session.currency),
        epsilon=pure_epsilon(event),
        currency=terms.session.currency,
        widths=planned,
        rows=terms.rows,
        confidence=terms.confidence,
        scope=scope,
        within=within,
        qualifying=qualifying,
        on_the_rows=table_reaches(totals, recipe, promise, terms) if on_the_rows else None,
        noise_unit=totals.unit * (spanned[0] if recipe.per_span else 1)
        if totals.statistic.kind in ADDED_UP
        else 1.0,
    )


def rho_of(event: Event, currency: str) -> float:
    """The zCDP loss of an event; where mu squared is counted half of that, which is no less (Theorem 290)."""
    return number(event, "gdp") / 2 if currency == "gdp" else zcdp(event).rho


def plan_by(
    mechanism: str, totals: Workload, request: Request, moment: Moment, terms: Terms, aim: int | None = None
) -> Plan | None:
    """The best plan with one mechanism, or None if it cannot do it. A mean is to be within if `aim` rows qualify
    (None: all)."""
    if request.within is None:
        if is_plain(request) and request.rows is None:
            recipe = plain_recipe(mechanism, totals, moment, terms)
            if recipe is not None and mechanism in SELECTED:
                spare = recipe_bought(mechanism, totals, *amount_of(request, moment, terms), terms)
                recipe = min(recipe, spare, key=lambda made: made.noise)
            dear = mechanism == "logistic" and terms.session.currency == "gdp"
            if recipe is not None and (recipe.expect is not None or totals.sums is not None or dear):
                # Told as much as its place may (a difference, if the guess is right): for an equal share of the budget.
                bought = recipe_bought(mechanism, totals, *amount_of(request, moment, terms), terms)
                recipe = replace(recipe, noise=max(recipe.noise, bought.noise))
            if recipe is not None:
                return promised(totals, recipe, moment, terms)
        amount, currency = amount_of(request, moment, terms)
        return promised(totals, recipe_bought(mechanism, totals, amount, currency, terms), moment, terms)
    for promise in _promises(mechanism, moment, terms):
        made = None
        for flip in _flips(mechanism, promise, terms):
            recipe = recipe_within(mechanism, totals, request.within, request.rows, promise, terms, aim, flip)
            if recipe is None and promise.left_out is None:
                return None  # a later promise is wider still
            if recipe is None:
                continue
            made = finish(totals, paired(recipe, totals, promise), promise, terms, request.within)
            if mechanism != "votes" or _is_spare(made, moment, terms):
                break
        if made and _within_level(made, promise, moment, terms) and made.width <= request.within:
            return made
    return None


def _flips(mechanism: str, promise: Promise, terms: Terms) -> tuple[Fraction, ...]:
    """How often votes may be flipped, the rarest first: it reads the fewest rows, and costs the most privacy."""
    if mechanism != "votes" or promise.left_out is None:
        return (FLIP,)
    return sensible_flips(terms.rows)


def promised(totals: Workload, recipe: Recipe, moment: Moment, terms: Terms) -> Plan | None:
    """The plan for a recipe under the narrowest promise that its cost allows."""
    rare = terms.places is not None and bool(terms.places.rare) and reads_its_own(totals)
    for promise in _promises(recipe.mechanism, moment, terms, rare):
        made = finish(totals, paired(recipe, totals, promise), promise, terms)
        if _within_level(made, promise, moment, terms):
            return made
    return None


def reads_its_own(totals: Workload) -> bool:
    """Whether an answer is one number of its own range, so that what it tells can be read off it (rare events)."""
    return totals.size == 1 and totals.statistic.other is None and totals.sums is None


def _promises(mechanism: str, moment: Moment, terms: Terms, rare: bool = False) -> Iterator[Promise]:
    """What an answer by this mechanism may promise, the narrowest first; `rare` by Gaussian noise only."""
    places = terms.places
    covers = mechanism in ("gaussian", "logistic", "smoothed") or (
        mechanism == "votes" and places is not None and places.by_votes
    )
    if places is not None and covers:
        planned = told_until(moment, terms)
        covered = left_out_promises(moment, terms, planned, rare and mechanism == "gaussian")
        found = next(covered, None)
        if found is not None:
            return chain((found,), covered)
    return next_promises(moment, terms)


def holds(made: Plan, moment: Moment, terms: Terms) -> Precondition:
    """Where the ledger may stand for this plan to be what it would plan: within the epoch, and until the end of
    the level."""
    currency = terms.table.currency
    first = answered(moment, terms) + 1
    last = terms.queries if terms.queries is not None else 2 ** first.bit_length() - 1
    if terms.target == "table":
        return Precondition(session_answers=last, currency=currency)
    most = units_of_rho(made.promise.most_rho, terms)
    if not counts_its_own(terms):
        return Precondition(table_answers=last, table_units=most, currency=currency)
    least = None
    if terms.places is not None and terms.places.epochs:
        epoch, last = terms.places.epoch_of(first)
        # Which m is left out goes by the place alone (Theorem 91), not by who was refused before.
        least = last - epoch.answers + 1
    if made.promise.left_out is None:
        return Precondition(session_answers=last, table_units=most, currency=currency)
    told = made.promise.information
    return Precondition(session_answers=last, table_information=told, currency=currency, least_answers=least)


def units_of_rho(rho: float, terms: Terms) -> int:
    """The most units of the table's currency whose loss is at most `rho`."""
    if math.isinf(rho):
        return 1 << 100
    if terms.table.currency == "zcdp":
        return math.floor(Fraction(rho) * UNITS)
    return math.floor(Fraction(epsilon_of_rho(rho)) * UNITS)


def _within_level(made: Plan, promise: Promise, moment: Moment, terms: Terms) -> bool:
    """Whether the charge leaves the table's total at the promise's level: in units, as the ledger will check."""
    return moment.table.units + made.charge.table <= units_of_rho(promise.most_rho, terms)


def _best(found: list[Plan], moment: Moment, terms: Terms) -> Plan:
    """The least cost; among near-equal costs the fewest rows, if sampling pays at all."""
    found = [made for made in found if fits(made, moment, terms)] or found
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


def fits(made: Plan, moment: Moment, terms: Terms) -> bool:
    """Whether what is left of the session's budget pays for it, and of its share of the meter, if it has one."""
    told = moment.session.information + made.charge.information
    return moment.session.units + made.charge.session <= terms.session.limit_units and (
        terms.information == UNCOVERED or told <= terms.information
    )


def _is_spare(made: Plan, moment: Moment, terms: Terms) -> bool:
    """Whether every answer might cost as much. By the leave-out theorem costs widen nothing, so it may."""
    if made.promise.left_out is None:
        return False
    many = terms.queries or _MANY
    share = terms.session.limit_units // many if terms.queries is None else spare_units(moment, terms)
    return made.charge.session <= share and made.charge.table <= terms.table.limit_units // many


def _impossible(totals: Workload, request: Request, moment: Moment, terms: Terms, helps: str = "") -> str:
    """Says what could be certified instead, unless it is known what `helps`."""
    nearest, many = None, ""
    if request.within is not None:
        mechanism = mechanisms_for(totals, Request(within=request.within), moment, terms)[0]

        def wider(times: int) -> Request:
            return Request(within=min(float(request.within or 0) * _NEARER**times, sys.float_info.max))

        times = fewest(
            lambda times: plan_by(mechanism, totals, wider(times), moment, terms) is not None, _TIMES
        )
        nearest = None if times is None else wider(times).within
        if nearest is not None and nearest >= range_length(totals, terms.rows):
            nearest = None
        if nearest is not None:
            wide = Request(within=nearest)
            made = plan_by(mechanism, totals, wide, moment, terms)
            assert made is not None
            count = answers_like(
                made, lambda later: plan_by(mechanism, totals, wide, later, terms), moment, terms
            )
            many = f", for {several(count)}"
    what = (
        f"within={request.within:g}" if request.within is not None else "an interval narrower than the range"
    )
    rather = could_be(terms, moment) if request.within is None else ""
    advice = helps or (
        f"no width can be certified{rather}{_ABOUT_THE_ROWS if terms.target == 'population' else ''}"
        if nearest is None
        else f"about within={nearest:.3g} can be{many}"
    )
    spent = total_rho(moment.table.units, terms) if terms.target == "population" else 0.0
    after = f", after answers that cost rho {spent:.2g} together" if spent else ""
    return f"{what} cannot be certified for the {terms.target} with {terms.rows:,} rows{after}; {advice}"
