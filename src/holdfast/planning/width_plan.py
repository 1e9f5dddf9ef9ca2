"""The plan of a session that is opened for a width: the most noise with which every answer keeps it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from holdfast.errors import InputError, MechanismError
from holdfast.ledger import UNCOVERED, Moment
from holdfast.planning.answers_left import several
from holdfast.planning.budget import Budget
from holdfast.planning.plain_answer import cost_in_all
from holdfast.planning.promise import LEFT_OUT
from holdfast.planning.recipe_information import told_by
from holdfast.planning.recipe_search import PAYS
from holdfast.planning.session_plan import Room
from holdfast.planning.terms import Terms
from holdfast.privacy.filter import UNITS, Filter
from holdfast.privacy.rounding import miss
from holdfast.validity.falling import Schedule, falling_noise
from holdfast.validity.normal_quantile import upper_quantile
from holdfast.validity.places import Places, by_gaussian, by_votes, sensible_flips

Scheduled = Callable[[float], Schedule | None]
"""The schedule with the least width that tells at most so much."""

_ROUNDS, _FIRST = 14, 1.02
_NEAR = (0.99, 0.98, 0.97, 0.93, 0.87, 0.75, 0.6, 0.5, 0.4)
"""Votes are wider than Gaussian noise of their size, by as much as one vote moves; so they are planned for less."""


def width_plan(
    terms: Terms, moment: Moment, within: float, only: str | None, room: Room, most_rows: int | None = None
) -> Places:
    """The cheapest places that keep a common half-width on the scale of a fraction; by votes where they read few rows.

    Guarantee: as `Places`; `width` is at most `within`, and no answer reads more than `most_rows`.
    Raises before anything is written: MechanismError with what can be certified instead, InputError if the
    session's budget does not pay for it.
    """
    assert terms.queries is not None
    if terms.session.currency == "pure":
        raise InputError(
            "expected a budget with delta=, rho=, or none, for a session that is opened for a width, got pure epsilon; "
            "its answers are by Gaussian noise or votes"
        )
    begun, mixed = told_by(room.begun, terms.rows), moment.table.entries > 0
    beta, queries, rows = miss(terms.confidence) * LEFT_OUT, terms.queries, terms.rows
    most = told_by(room.most - room.begun, rows) if room.most < UNCOVERED else math.inf

    def scheduled(information: float) -> Schedule | None:
        return falling_noise(rows, queries, beta, most_information=information, begun=begun, mixed=mixed)

    narrowest = None if room.begun >= UNCOVERED or rows < 2 else scheduled(most)
    if narrowest is None or by_gaussian(narrowest).width > within:
        certified = 1.0 if narrowest is None else min(1.0, by_gaussian(narrowest).width)
        nearest = f"{certified:.4g} can be" if certified < 1 else _for_fewer(terms, begun, mixed, within)
        raise MechanismError(
            f"within={within:g} cannot be certified for {queries:,} queries on {rows:,} rows; {nearest}"
        )
    found = [] if only == "gaussian" else _by_votes(terms, within, narrowest, scheduled, only, most_rows)
    if only != "votes" and (most_rows is None or most_rows >= rows):
        found.append(by_gaussian(_cheapest(within, narrowest, scheduled)))
    paid = [made for made in found if cost_in_all(made, terms.session) <= terms.session.limit_units]
    if not found:
        read = "" if most_rows is None else f" that read at most {most_rows:,} rows"
        advice = (
            "leave out only="
            if most_rows is None
            else "give more rows=, a wider within=, or leave one of them out"
        )
        raise MechanismError(
            f"within={within:g} cannot be certified by votes{read} for {queries:,} queries on {rows:,} rows; {advice}"
        )
    if not paid:
        least = min(cost_in_all(made, terms.session) for made in found) / UNITS
        raise InputError(
            f"expected a budget of at least {least:.3g} ({terms.session.currency}) for {queries:,} answers within "
            f"{within:g}, got {terms.session.limit_units / UNITS:.3g}; give more, or ask for fewer or wider answers"
        )
    return paid[0]


def _for_fewer(terms: Terms, begun: float, mixed: bool, within: float) -> str:
    """For how many answers a width can be had, a fourth, a sixteenth, ... of those that are asked for, in words."""
    many, beta = (terms.queries or 0) // 4, miss(terms.confidence) * LEFT_OUT
    while many and terms.rows > 1:
        made = falling_noise(terms.rows, many, beta, begun=begun, mixed=mixed)
        if made is not None and by_gaussian(made).width <= within:
            return f"for {several(many)} it can be"
        many //= 4
    return "nothing below 1 can be"


def validity_budget(places: Places, delta: float | None) -> Budget:
    """What all places of a plan cost at most, as a budget of their own."""
    return Budget(Filter.zcdp(Fraction(cost_in_all(places, Filter.zcdp(1)), UNITS)), delta)


def _cheapest(within: float, narrowest: Schedule, scheduled: Scheduled) -> Schedule:
    """The schedule that tells about the least while it keeps a width.

    Noise alone takes k (z/width)^2, which is nearly all of it where the table is large; from there upwards one is found
    that keeps it, and then nearer ones by halving.
    """
    low = narrowest.queries * (upper_quantile(narrowest.beta / narrowest.queries / 2) / within) ** 2
    found, high, more = narrowest, narrowest.information, _FIRST
    for _ in range(_ROUNDS):
        searching = found is narrowest and low * more < high
        middle = low * more if searching else math.sqrt(low * high)
        made = scheduled(middle)
        if made is not None and by_gaussian(made).width <= within:
            found, high = made, min(middle, made.information)
        else:
            low, more = middle, more * more
        if high <= low * _FIRST:
            break
    return found


def _by_votes(
    terms: Terms,
    within: float,
    narrowest: Schedule,
    scheduled: Scheduled,
    only: str | None,
    most_rows: int | None,
) -> list[Places]:
    """The plan by votes that reads the fewest rows; none if as many as to make a scan as quick."""
    cap = most_rows or (terms.rows if only == "votes" else terms.rows // PAYS)
    for near in _NEAR:
        if by_gaussian(narrowest).width > within * near:
            break
        schedule = _cheapest(within * near, narrowest, scheduled)
        for flip in sensible_flips(terms.rows):
            made = by_votes(schedule, flip)
            if made.width <= within and max(epoch.noise for epoch in made.epochs) <= cap:
                return [made]
    return []
