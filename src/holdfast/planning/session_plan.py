"""The plan of a session, made when it is opened: the least common half-width that its budgets allow."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from holdfast.ledger import UNCOVERED, Moment
from holdfast.planning.budget import Budget
from holdfast.planning.plain_answer import cost_in_all
from holdfast.planning.planner import PAYS
from holdfast.planning.promise import LEFT_OUT
from holdfast.planning.recipe_information import told_by
from holdfast.planning.recipe_search import LEAST_VARIANCE
from holdfast.planning.terms import Terms
from holdfast.privacy.filter import UNITS, Filter
from holdfast.privacy.rounding import miss
from holdfast.validity.falling import falling_noise
from holdfast.validity.places import Places, by_gaussian, by_votes

_FLIPS = (Fraction(1, 16), Fraction(1, 8), Fraction(1, 4))
_NEARLY = 1.02
"""Among plans that are at most so much wider, the one that reads the fewest rows is taken."""
_TRIES = 8


def session_plan(terms: Terms, moment: Moment, most_rows: int | None = None) -> Places | None:
    """The places of a session that is opened at this moment; None where the leave-out theorem cannot cover it.

    Least width first; among plans within 2% of it the one that reads the fewest rows, and never more than
    `most_rows` an answer. Privacy is never weakened to reach a width: the session's budget and what is left of the
    table's pay for every place. Once somebody was answered on these rows, the mixture over the recorded grid holds.
    """
    told = moment.table.information
    if (
        terms.target != "population"
        or terms.rows_per_unit > 1
        or terms.session.currency == "pure"
        or terms.rows < 2
        or told >= UNCOVERED
    ):
        return None
    bare = Places(terms.rows, begun=told_by(told, terms.rows))
    bare = next((made for flip in _FLIPS if (made := replace(bare, flip=flip)).by_votes), bare)
    if terms.queries is None:
        return bare
    mixed = moment.table.entries > 0
    exact = (
        None if most_rows is not None and most_rows < terms.rows else _affordable(terms, moment, bare, mixed)
    )
    cap = terms.rows // PAYS if most_rows is None else min(most_rows, terms.rows)
    sampled = [] if terms.session.currency == "gdp" else _sampled(terms, moment, bare, mixed, cap, exact)
    best = min((made.width for made in (exact, *sampled) if made is not None), default=math.inf)
    near = [made for made in sampled if made.width <= _NEARLY * best]
    chosen = min(near, key=lambda made: max(epoch.noise for epoch in made.epochs), default=exact)
    return bare if chosen is None or chosen.width >= 1 else chosen  # an interval of everything is no plan


def _sampled(
    terms: Terms, moment: Moment, bare: Places, mixed: bool, cap: int, exact: Places | None
) -> list[Places]:
    """Plans by votes that read at most `cap` rows an answer."""
    found = []
    for flip in _FLIPS:
        keep = 1 - 2 * float(flip)
        if cap < 1 or not replace(bare, flip=flip).by_votes:
            continue
        # Half-width z sigma alone is already too much where the exact plan is much narrower.
        least = 1 / (2 * keep * math.sqrt(cap))
        if exact is not None and least * 2 > exact.width:
            continue
        made = _affordable(terms, moment, bare, mixed, least / math.sqrt(0.9), flip)
        if made is not None and max(epoch.noise for epoch in made.epochs) <= cap:
            found.append(made)
    return found


def _affordable(
    terms: Terms,
    moment: Moment,
    bare: Places,
    mixed: bool,
    least_noise: float = 0.0,
    flip: Fraction | None = None,
) -> Places | None:
    """The least common half-width that both budgets pay for; by votes, if a flip is given."""
    assert terms.queries is not None
    beta, rows = miss(terms.confidence) * LEFT_OUT, terms.rows
    budgets = [(terms.session, terms.session.limit_units - moment.session.units)]
    cap = moment.cap
    budgets.append(
        (terms.table, (cap.limit if cap is not None else terms.table.limit_units) - moment.table.units)
    )
    gaussian_only = "gdp" in (terms.session.currency, terms.table.currency)
    least = max(least_noise, math.sqrt(LEAST_VARIANCE + 1) / rows if gaussian_only else 0.0)
    most = min(_information(budget, units, rows) for budget, units in budgets)
    for _ in range(_TRIES):
        if not most > 0:
            return None
        schedule = falling_noise(
            rows,
            terms.queries,
            beta,
            most_information=most,
            least_noise=least,
            begun=bare.begun,
            mixed=mixed,
        )
        if schedule is None:
            return None
        made = by_gaussian(schedule) if flip is None else by_votes(schedule, flip)
        if math.isinf(made.width):
            return None
        over = max(cost_in_all(made, budget) / max(units, 1) for budget, units in budgets)
        if over <= 1:
            return made
        most = min(most, schedule.information) / over * 0.999
    return None


def _information(budget: Filter, units: int, rows: int) -> float:
    """n^2 mu^2 of so much budget: what Gaussian answers that it pays for can tell."""
    amount = max(units, 0) / UNITS
    if budget.currency == "pure":
        amount = amount**2 / 2  # at most: nothing with less noise is pure
    return float(rows) ** 2 * (amount if budget.currency == "gdp" else 2 * amount)


def plan_line(terms: Terms, budget: Budget) -> str:
    """What was planned for answers that say nothing of how exact they are to be, in one line."""
    places = terms.places
    if places is None or not places.epochs:
        return "No common half-width is planned: each answer says for itself how exact it is to be."
    cost, limit = (
        budget.amount(units) for units in (cost_in_all(places, terms.session), terms.session.limit_units)
    )
    notion = "rho" if cost.epsilon is None else "epsilon"
    return (
        f"{terms.queries:,} answers, each within {places.width:.3g} of the population at {terms.confidence:.4g}, "
        f"together; {notion} {getattr(cost, notion):.2g} of your {getattr(limit, notion):.3g}"
    )
