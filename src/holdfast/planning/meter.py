"""The meter: how many answers are left, and how near the population each of them will be."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.ledger import UNCOVERED, Moment
from holdfast.planning.answers_left import several
from holdfast.planning.budget import Budget
from holdfast.planning.plain_answer import cost_each, told_each
from holdfast.planning.promise import left_out_beta, rounded
from holdfast.planning.recipe_information import told_by, units_told
from holdfast.planning.session_plan import MANY, possible
from holdfast.planning.terms import Terms
from holdfast.validity.rare_events import rare_half_width


@dataclass(frozen=True, slots=True, repr=False)
class Meter:
    """What is left of validity, beside what is left of privacy.

    Guarantee: as many further answers as `answers`, asked for plainly, will each be within `width` of the population
    (on the scale of a fraction), together with the session's confidence, if nobody else is told anything meanwhile;
    of a share of the meter whatever others are told. A quantile tells more than its place was meant to; its plan says
    what those after it will be within. Without `queries=` it is a session for `answers` more answers,
    opened now, that could have this width.
    Reference: docs/theorems.md, Theorems 31 and 41.
    """

    answers: int
    width: float
    budget: str
    """What was spent of which budget, in words."""

    def __str__(self) -> str:
        if not self.answers:
            return f"no answer left for the population; {self.budget}"
        return f"{several(self.answers)} left within {self.width:.3g} of the population; {self.budget}"

    __repr__ = __str__


def meter(terms: Terms, budget: Budget, moment: Moment) -> Meter | None:
    """What is left at this moment; None where the leave-out theorem covers nothing (any more)."""
    if terms.places is None or moment.table.information >= UNCOVERED:
        return None
    answers, width = 0, 1.0
    if terms.places.epochs:
        answers, width = places_left(terms, moment)
    elif terms.queries is None:
        answers, width = possible(terms, moment, MANY)
    spent, limit = (budget.amount(units) for units in (moment.session.units, terms.session.limit_units))
    notion = "rho" if limit.epsilon is None else "epsilon"
    kept = f"{notion} {getattr(spent, notion):.2g} of {getattr(limit, notion):.3g}"
    return Meter(answers, width, kept)


def places_left(terms: Terms, moment: Moment) -> tuple[int, float]:
    """The places that are left, as far as the budgets and the share pay for them, and the widest of them."""
    places = terms.places
    assert places is not None
    first, told, own = moment.session.answers + 1, moment.table.information, moment.session.information
    if terms.information < UNCOVERED:  # of a share it holds whatever others will be told
        told = max(told, units_told(places.begun, terms.rows) + own)
    cap = terms.table.limit_units if moment.cap is None else moment.cap.limit
    units = [terms.session.limit_units - moment.session.units, cap - moment.table.units]
    planned, answers, last, widest = units_told(places.begun, terms.rows), 0, 0, 0.0
    for epoch in places.epochs:
        each, last = told_each(places, epoch), last + epoch.answers
        count = min(epoch.answers, last - first + 1)
        planned += each * epoch.answers
        if count <= 0:
            continue
        costs = (cost_each(places, epoch, terms.session), cost_each(places, epoch, terms.table))
        paid = min(left // cost for left, cost in zip(units, costs, strict=True))
        count = min(count, paid, (terms.information - own) // each)
        if count <= 0:
            break
        before = told + (count - 1) * each
        bound = min(planned - each, rounded(before)) if before <= planned - each else rounded(before)
        place = last - epoch.answers + 1
        before_it, beta = told_by(bound, terms.rows), left_out_beta(terms, place)
        if places.rare:
            width = rare_half_width(places, place, before_it, beta)
        else:
            width = places.half_width(epoch, places.left_out(place), before_it, beta)
        answers, widest = answers + count, max(widest, width)
        told, own = told + count * each, own + count * each
        units = [left - count * cost for left, cost in zip(units, costs, strict=True)]
        first += count
        if first <= last:
            break
    return answers, widest
