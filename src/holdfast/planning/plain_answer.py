"""What a question gets that says nothing of how exact it is to be: the place that the session's plan has for it."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from holdfast.ledger import Moment
from holdfast.mechanisms.values import round_down, round_up
from holdfast.planning.plan import DISAGREEMENT_NOISE, Recipe
from holdfast.planning.promise import rounded
from holdfast.planning.recipe_event import SELECTIONS
from holdfast.planning.recipe_information import radius_squared, units_told
from holdfast.planning.recipe_search import EXPECT
from holdfast.planning.terms import Terms
from holdfast.planning.width import spans
from holdfast.privacy.event import Event, Gaussian, Logistic, Votes
from holdfast.privacy.filter import Filter
from holdfast.privacy.rounding import up
from holdfast.query.statistic import Workload
from holdfast.validity.option import Epoch
from holdfast.validity.places import Places
from holdfast.validity.told import quantile_told

QUANTILE = 16
"""A quantile is a search among many points: it tells as much as so many numbers, where the budget allows it. So do
running totals."""


def plain_recipe(mechanism: str, totals: Workload, moment: Moment, terms: Terms) -> Recipe | None:
    """The recipe of the next place; None where the session has no plan.

    However many numbers the answer has, they tell what the place was planned to tell, and cost no more than one
    number does there; but for quantiles and running totals.
    """
    places = terms.places
    covered = ("gaussian", "logistic", "smoothed", places.mechanism) if places is not None else ()
    if places is None or not places.epochs or mechanism not in covered:
        return None
    epoch, _ = places.epoch_of(moment.session.answers + 1)
    if mechanism == "smoothed":
        groups = 1 if totals.statistic.by is None else totals.statistic.by.size
        one = SELECTIONS * groups * quantile_told(terms.rows, 2 / terms.rows)  # at a rate of 1
        rate = math.sqrt(QUANTILE * places.tells(epoch) / one)
        return Recipe(mechanism, round_down(2 * rate / terms.rows * (1 - 2.0**-40)), terms.rows)
    rounds = len(totals.measurements)
    if mechanism == "votes":
        each = int(epoch.noise) // rounds
        return Recipe(mechanism, Fraction(each), each * rounds, places.flip) if each else None
    if mechanism == "logistic":
        return _logistic(totals, places, epoch)
    variance = epoch.noise
    if places.mechanism != "gaussian":
        variance = Fraction(terms.rows) ** 2 / Fraction(places.tells(epoch))
    if totals.joint is not None:
        variance /= QUANTILE if totals.sums is not None and totals.sums.running is not None else 1
        return Recipe(mechanism, round_up(4 * variance * totals.joint.radius_squared), terms.rows)
    shared = Fraction(4 * radius_squared(totals)) * rounds
    if totals.statistic.other is not None:
        expect = totals.statistic.expect
        if expect is not None:
            return Recipe(
                mechanism, round_up(4 * variance * _of_the_place(expect, expect)), terms.rows, expect=expect
            )
        shared *= _of_the_place(Fraction(1), EXPECT)
    return Recipe(mechanism, round_up(variance * shared), terms.rows, per_span=True)


def _logistic(totals: Workload, places: Places, epoch: Epoch) -> Recipe:
    """The scale for one number, times what several tell together, or cost together if that is more."""
    scale = epoch.noise
    if places.mechanism != "logistic":
        scale = Fraction(up(places.rows / math.sqrt(2 * places.tells(epoch))))
    if totals.joint is not None:
        told, cost = 4 * totals.joint.radius_squared, Fraction(totals.joint.l1)
    else:
        parts = zip(totals.measurements, spans(totals), strict=True)
        alone = ((replace(totals, measurements=(part,)).sensitivity().l1, span) for part, span in parts)
        cost = sum((Fraction(moved) / span for moved, span in alone), Fraction(0))
        told = Fraction(4 * radius_squared(totals)) * len(totals.measurements)
    times = max(cost, Fraction(up(math.sqrt(told))))
    return Recipe("logistic", round_up(scale * times), places.rows, per_span=totals.joint is None)


def _of_the_place(disagreement: Fraction, guess: Fraction) -> Fraction:
    """What a difference and its disagreement tell, over 4/sigma^2, if the conditions disagree on so many rows.

    Where nobody guesses it is counted as if they always did: later places of the plan rely on it.
    """
    return disagreement + (guess**2 + (1 - 2 * guess) * disagreement) / DISAGREEMENT_NOISE


def told_until(moment: Moment, terms: Terms) -> int:
    """What may be told before the last answer of this epoch, in the ledger's units; 0 without a plan.

    The plan counts others at their maximum; where they told less, that is what counts. Answers that are read as rare
    events may tell much less than was planned for them, so that only what was told so far counts.
    """
    places = terms.places
    if places is None or not places.epochs:
        return 0
    place = moment.session.answers + 1
    epoch, last = places.epoch_of(place)
    planned = units_told(places.begun, terms.rows) + told_before(places, last)
    after = 0 if places.rare else (last - place) * told_each(places, epoch)
    realised = moment.table.information + after
    return min(planned, rounded(realised))


def told_before(places: Places, place: int) -> int:
    """What the plan's own answers before this place tell at most, in the ledger's units."""
    told, left = 0, place - 1
    for epoch in places.epochs:
        count = min(left, epoch.answers)
        told += count * told_each(places, epoch)
        left -= count
    return told


def told_each(places: Places, epoch: Epoch) -> int:
    """What one answer of an epoch tells at most, in the ledger's units, however many numbers it has."""
    return units_told(places.tells(epoch), places.rows) + 1


def cost_each(places: Places, epoch: Epoch, budget: Filter) -> int:
    """What one answer of an epoch costs at most, in a budget's units."""
    event: Event = Gaussian(1, epoch.noise)
    if places.mechanism == "logistic":
        event = Logistic(1, 1, epoch.noise)
    elif places.mechanism == "votes":
        event = Votes(places.rows, int(epoch.noise), places.flip)
    return budget.cost(event) + 1


def cost_in_all(places: Places, budget: Filter) -> int:
    """What all places of a plan cost at most."""
    return sum(epoch.answers * cost_each(places, epoch, budget) for epoch in places.epochs)


def spare_units(moment: Moment, terms: Terms) -> int:
    """An equal share of the session's budget; of what its plan leaves, and what the plan has for the next place."""
    assert terms.queries is not None
    places = terms.places
    if places is None or not places.epochs:
        return terms.session.limit_units // terms.queries
    epoch, _ = places.epoch_of(moment.session.answers + 1)
    left = terms.session.limit_units - cost_in_all(places, terms.session)
    return max(0, left) // terms.queries + cost_each(places, epoch, terms.session)
