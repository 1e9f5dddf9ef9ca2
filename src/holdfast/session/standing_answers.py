"""Answers that stand: a question that is asked again, or less exactly, is answered by what was told before."""

from __future__ import annotations

import json
import math
import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from holdfast.errors import BudgetError, InputError
from holdfast.ledger import QUESTION, Entry, Moment
from holdfast.planning.mean import aims
from holdfast.planning.mechanism_choice import is_plain, mechanisms_for
from holdfast.planning.plan import recipe_from_text
from holdfast.planning.planner import finish
from holdfast.planning.recipe_bought import amount_of
from holdfast.planning.request import Request
from holdfast.query.statistic import Statistic, digest, workload

if TYPE_CHECKING:
    from holdfast.session.session import Session

_WISHES = {"within": "w", "rho": "r", "epsilon": "e"}
_SHARE = "s"
"""An equal share of the budget."""
_LETTERS = (*_WISHES.values(), _SHARE)


def question_key(statistic: Statistic, request: Request) -> str:
    """Equal for equal questions at equal accuracy, and for no others.

    It begins with the question; then come the kind of accuracy, and how exact: the least key is the most exact.
    """
    letter, number = _SHARE, 0.0
    for name, sign in _WISHES.items():
        if (wish := getattr(request, name)) is not None:
            letter, number = sign, wish
    bits = int.from_bytes(struct.pack(">d", number))  # of positive numbers, they are in order
    exactness = bits if letter == "w" else 2**64 - 1 - bits
    plain = request.mechanism is None and request.rows is None
    insisted = "" if plain else _insisted(request.mechanism, request.rows)
    return f"{statistic.key}{letter}{exactness:016x}{insisted}"


@lru_cache(maxsize=64)
def _insisted(mechanism: str | None, rows: int | None) -> str:
    return digest(f"{mechanism} {rows}")


def standing_entry(session: Session, statistic: Statistic, request: Request, key: str) -> Entry | None:
    """The reservation of this very question; or else one with an answer that is as exact, if there is.

    That answer is public, and its interval is among those that hold together, so it may be told again. Of each kind
    of accuracy the most exact one is looked at: the ledger is read twice, however much was asked.
    """
    same = session._ledger.find(session.name, key)
    if same is not None:
        return same
    question = key[:QUESTION]
    found = session._ledger.firsts(session.name, [question + letter for letter in _LETTERS])
    if not found:
        return None
    plans = {entry.id: json.loads(entry.plan) for entry in found}
    suffices = [entry for entry in found if _suffices(entry, plans[entry.id], statistic, request, session)]
    return min(suffices, key=lambda entry: plans[entry.id]["width"], default=None)


def _suffices(
    entry: Entry, plan: dict[str, Any], statistic: Statistic, request: Request, session: Session
) -> bool:
    """Whether an answer was planned within the width that is asked for; or, where a budget is given, cost at least as
    much by the same mechanism."""
    if entry.answer is None:
        return False
    mechanism, terms = plan["recipe"][0], session._terms
    totals = workload(statistic, terms.schema, terms.rows)
    if request.within is not None:
        as_exact = request.mechanism in (None, mechanism) and plan["width"] <= request.within
        return as_exact and (not totals.depends or _for_as_few(entry, statistic, request, session))
    moment = session._moment()
    if is_plain(request) and terms.places is not None and terms.places.epochs:
        return bool(plan["width"] <= _width_now(statistic, request, moment, session))
    amount, currency = amount_of(request, moment, terms)
    if mechanism != mechanisms_for(totals, request, moment, terms)[0]:
        return False
    told = json.loads(entry.answer)
    spent = {"pure": told["epsilon"], "zcdp": told["rho"], "gdp": 2 * told["rho"]}[currency]
    return spent is not None and spent >= amount


def _for_as_few(entry: Entry, statistic: Statistic, request: Request, session: Session) -> bool:
    """Whether a stored mean keeps the width that is asked for from as few qualifying rows on as a new one would aim at.

    What cannot be planned any more is answered by what stands.
    """
    terms = session._terms
    totals = workload(statistic, terms.schema, terms.rows)
    recipe, promise, _ = recipe_from_text(entry.plan, terms.rows)
    stored = finish(totals, recipe, promise, terms, request.within).qualifying
    fewest, *more = aims(totals, terms.rows)
    if stored is not None and stored <= fewest:
        return True
    try:
        new = session._planned(statistic, request, session._moment())[0].qualifying
    except (InputError, BudgetError):
        return True
    if stored is None or new is None:
        return new is None
    return stored <= next((aim for aim in (fewest, *more) if new <= aim), terms.rows * totals.most)


def _width_now(statistic: Statistic, request: Request, moment: Moment, session: Session) -> float:
    """The half-width that the session's plan has for this question now; inf if it has none left."""
    try:
        return session._planned(statistic, request, moment)[0].width
    except (InputError, BudgetError):
        return math.inf
