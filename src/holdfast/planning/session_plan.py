"""The plan of a session, made when it is opened: the least common half-width that its budgets allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from holdfast.errors import BudgetError, InputError
from holdfast.ledger import UNCOVERED, Moment, Totals
from holdfast.planning.budget import Budget
from holdfast.planning.plain_answer import cost_in_all, told_before
from holdfast.planning.promise import LEFT_OUT, rounded
from holdfast.planning.recipe_information import told_by, units_told
from holdfast.planning.recipe_search import LEAST_VARIANCE, PAYS
from holdfast.planning.terms import Terms
from holdfast.privacy.filter import UNITS, Filter
from holdfast.privacy.rounding import miss
from holdfast.validity.falling import Schedule, falling_noise
from holdfast.validity.places import Places, by_gaussian, by_logistic, by_votes, sensible_flips
from holdfast.validity.rare_events import AT, as_rare, rare_noise

_NEARLY = 1.02
"""Among plans that are at most so much wider, the one that reads the fewest rows is taken."""
_TRIES = 8
_MUCH = 0.5
"""A plan that costs less of its budget is not kept wide by it."""
NARROWER = 0.99
"""Another currency is worth it where answers are so much narrower."""
_AS_RARE = 1.025
"""Answers are read as rare events where none is then more than so much wider; with all that is rounded the plain path
stays within 3% of the least of ours (docs/theorems.md, Theorem 38)."""
MANY = 1024
"""So many answers are meant where nobody says how many; fewer, if the budget does not reach so far."""
_STEP = 1.01
_TIMES = (0.3, 0.5, 0.7)
"""How much of what it would tell alone a share may tell."""


@dataclass(frozen=True, slots=True)
class Room:
    """What the shares of a table's meter leave to whoever opens a session, in the ledger's units."""

    begun: int = 0
    """What everybody together may have told: each share its maximum, all others what they told."""
    most: int = UNCOVERED
    """What everybody together may tell for the plan of every share to hold."""
    share: float | None = None
    """Which part of what all will have told is to be the session's own, if it is to have a maximum."""


def session_plan(
    terms: Terms,
    moment: Moment,
    most_rows: int | None = None,
    room: Room | None = None,
    *,
    rare: bool = False,
) -> Places | None:
    """The places of a session that is opened at this moment; None where the leave-out theorem cannot cover it.

    Least width first; among plans within 2% of it the one that reads the fewest rows, and never more than
    `most_rows` an answer. Privacy is never weakened to reach a width: the session's budget and what is left of the
    table's pay for every place. Once somebody was answered on these rows, the mixture over the recorded grid holds.
    With `rare` the noise is planned for events of about 1%, and answers are read as rare events; without, they are so
    read where none of them is then more than 2.5% wider. It is decided here, before any answer.
    A share of the meter counts, from its first place on, that others tell all that is theirs (`Places.begun`).
    """
    room = room or Room(moment.table.information)
    alone = _planned(terms, moment, most_rows, room, rare)
    if room.share in (None, 1.0) or alone is None or not alone.epochs:
        return alone
    # The more a share may tell, the more its plan counts for others; in between is the least width.
    shares = [_shared(terms, moment, most_rows, room, alone.told_by_itself * times) for times in _TIMES]
    planned = [made for made in shares if made is not None and made.epochs]
    return min(planned, key=lambda made: made.width, default=None)


def _shared(terms: Terms, moment: Moment, most_rows: int | None, room: Room, own: float) -> Places | None:
    """The plan of a share that tells at most `own`, while others tell the rest, or what they have been given."""
    assert room.share is not None
    begun = max(room.begun, units_told(own / room.share - own, terms.rows))
    if begun >= UNCOVERED:
        return None
    most = min(room.most - room.begun, units_told(own, terms.rows))
    return _planned(terms, moment, most_rows, replace(room, begun=begun, most=begun + most))


def plan_counted(
    ways: Sequence[Budget],
    terms: Terms,
    moment: Moment,
    most_rows: int | None = None,
    room: Room | None = None,
    *,
    rare: bool = False,
) -> tuple[Budget, Places | None]:
    """The budget to count in, of several `ways` to keep one promise, and the plan in it: the first, unless its plan is
    dear and another's is narrower."""
    plans = ((own, replace(terms, session=own.filter)) for own in ways)
    own, counted = next(plans)
    places = session_plan(counted, moment, most_rows, room, rare=rare)
    if is_dear(places, counted):
        for other, exact in plans:
            made = session_plan(exact, moment, most_rows, room, rare=rare)
            if is_narrower(made, places):
                own, places = other, made
    return own, places


def is_dear(places: Places | None, terms: Terms) -> bool:
    """Whether it is the budget that keeps the answers of a session's plan wide, or that leaves it without one."""
    if places is None or terms.queries is None:
        return False
    return not places.epochs or cost_in_all(places, terms.session) >= _MUCH * terms.session.limit_units


def is_narrower(made: Places | None, places: Places | None) -> bool:
    """Whether another plan is worth more than this one: votes, which read fewer rows, may be wider by `_NEARLY`."""
    if made is None or not made.epochs:
        return False
    if places is None or not places.epochs:
        return True
    return made.width * (_NEARLY if places.mechanism == "votes" else 1 / NARROWER) < places.width


def share_of(places: Places | None, terms: Terms, room: Room) -> tuple[int, int]:
    """(the most that a session may tell, the most that all may tell while its plan holds), in the ledger's units.

    Its own answers of any kind count towards the first. Without a share a session has no maximum.
    InputError where there is no plan that could be a share.
    """
    if room.share is None:
        return UNCOVERED, UNCOVERED
    if (places is None or not places.epochs) and room.most < UNCOVERED:
        raise BudgetError(
            "the meter of this table is shared out; nothing that was promised to others may be widened"
        )
    if places is None or not places.epochs:
        raise InputError(
            "cannot share the meter: nothing is planned that others could widen; give queries=, a budget with delta= "
            "or rho=, and the population as target, on rows of different people"
        )
    own = told_before(places, 1 + sum(epoch.answers for epoch in places.epochs))
    return own, units_told(places.begun, terms.rows) + own


def _planned(
    terms: Terms, moment: Moment, most_rows: int | None, room: Room, rare: bool = False
) -> Places | None:
    told = room.begun
    if terms.target != "population" or not terms.on_the_meter or terms.rows < 2 or told >= UNCOVERED:
        return None
    bare = Places(terms.rows, begun=told_by(told, terms.rows))
    bare = replace(bare, flip=next(iter(sensible_flips(terms.rows)), bare.flip))
    if terms.queries is None:
        return bare
    mixed = moment.table.entries > 0
    if rare and terms.session.currency != "pure":
        return _affordable(terms, moment, bare, mixed, room, rare=True) or bare
    exact = (
        None
        if most_rows is not None and most_rows < terms.rows
        else _affordable(terms, moment, bare, mixed, room)
    )
    cap = terms.rows // PAYS if most_rows is None else min(most_rows, terms.rows)
    sampled = (
        [] if terms.session.currency == "gdp" else _sampled(terms, moment, bare, mixed, cap, exact, room)
    )
    best = min((made.width for made in (exact, *sampled) if made is not None), default=math.inf)
    near = [made for made in sampled if made.width <= _NEARLY * best]
    chosen = min(near, key=lambda made: max(epoch.noise for epoch in made.epochs), default=exact)
    if chosen is None or chosen.width >= 1:
        return bare  # an interval of everything is no plan
    if chosen.mechanism == "gaussian" and room.share is None:
        read = as_rare(chosen, miss(terms.confidence) * LEFT_OUT)
        return read if read.width <= _AS_RARE * chosen.width else chosen
    return chosen


def possible(terms: Terms, moment: Moment, most: int) -> tuple[int, float]:
    """(so many answers, or a fourth, a sixteenth, ... of them; the common half-width that they could have) in a session
    that is opened now with what is left; (0, 1) if there is none.

    What was told and what is left are rounded to a hundredth, so that it is not planned anew for every answer.
    """
    if terms.places is None or moment.table.information >= UNCOVERED:
        return 0, 1.0
    left = terms.session.limit_units - moment.session.units
    limit = left if left <= 0 else min(left, math.floor(_STEP ** math.floor(math.log(left, _STEP))))
    table = replace(moment.table, information=rounded(moment.table.information))
    session, then = (
        replace(terms.session, limit_units=max(0, limit)),
        replace(moment, session=Totals(), table=table),
    )
    while most:
        width = _least_width(replace(terms, queries=most, session=session), then)
        if width < 1:
            return most, width
        most //= 4
    return 0, 1.0


def _least_width(terms: Terms, moment: Moment) -> float:
    """The common half-width of a session by Gaussian noise; inf if there is none."""
    bare = Places(terms.rows, begun=told_by(moment.table.information, terms.rows))
    room = Room(moment.table.information)
    made = _affordable(terms, moment, bare, moment.table.entries > 0, room)
    return math.inf if made is None or made.width >= 1 else made.width


def _sampled(
    terms: Terms, moment: Moment, bare: Places, mixed: bool, cap: int, exact: Places | None, room: Room
) -> list[Places]:
    """Plans by votes that read at most `cap` rows an answer; the fewest first, since rarer flips read fewer."""
    found: list[Places] = []
    for flip in sensible_flips(terms.rows) if cap else ():
        keep = 1 - 2 * float(flip)
        if found and exact is not None and found[-1].width <= _NEARLY * exact.width:
            break  # the rest read more
        # Half-width z sigma alone is already too much where the exact plan is much narrower.
        least = 1 / (2 * keep * math.sqrt(cap))
        if exact is not None and least * 2 > exact.width:
            continue
        made = _affordable(terms, moment, bare, mixed, room, least / math.sqrt(0.9), flip)
        if made is not None and max(epoch.noise for epoch in made.epochs) <= cap:
            found.append(made)
    return found


def _affordable(
    terms: Terms,
    moment: Moment,
    bare: Places,
    mixed: bool,
    room: Room,
    least_noise: float = 0.0,
    flip: Fraction | None = None,
    rare: bool = False,
) -> Places | None:
    """The least common half-width that both budgets pay for; by votes, if a flip is given; or for rare events.

    In a pure session by logistic noise.
    """
    assert terms.queries is not None
    logistic = flip is None and terms.session.currency == "pure"
    beta, rows = miss(terms.confidence) * LEFT_OUT, terms.rows
    budgets = [(terms.session, terms.session.limit_units - moment.session.units)]
    cap = moment.cap
    budgets.append(
        (terms.table, (cap.limit if cap is not None else terms.table.limit_units) - moment.table.units)
    )
    gaussian_only = "gdp" in (terms.session.currency, terms.table.currency)
    least = max(least_noise, math.sqrt(LEAST_VARIANCE + 1) / rows if gaussian_only else 0.0)
    left = told_by(room.most - room.begun, rows) if room.most < UNCOVERED else math.inf
    most = min(left * (1 - 1e-6), *(_information(budget, units, rows) for budget, units in budgets))
    for _ in range(_TRIES):
        if not most > 0:
            return None
        schedule = (rare_noise if rare else _smooth_noise(logistic))(
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
        made = (
            (by_logistic if logistic else by_gaussian)(schedule) if flip is None else by_votes(schedule, flip)
        )
        made = as_rare(made, beta, AT) if rare else made
        if math.isinf(made.width):
            return None
        over = max(
            (cost_in_all(made, budget) / max(units, 1))
            ** (2 if logistic and budget.currency == "pure" else 1)
            for budget, units in budgets
        )
        if over <= 1:
            return made
        most = min(most, schedule.information) / over * 0.999
    return None


def _smooth_noise(logistic: bool) -> Callable[..., Schedule | None]:
    """Falling noise that a session's currency can count."""
    return partial(falling_noise, law="logistic") if logistic else falling_noise


def _information(budget: Filter, units: int, rows: int) -> float:
    """n^2 mu^2 of so much budget: what Gaussian answers that it pays for can tell."""
    amount = max(units, 0) / UNITS
    if budget.currency == "pure":
        amount = amount**2 / 2  # at most: nothing with less noise is pure
    return float(rows) ** 2 * (amount if budget.currency == "gdp" else 2 * amount)
