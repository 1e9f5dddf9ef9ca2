"""For how many answers a width can be had."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from holdfast.ledger import Moment
from holdfast.planning.plan import Plan
from holdfast.planning.terms import Terms

_STEPS = 12


def answers_like(made: Plan, again: Callable[[Moment], Plan | None], moment: Moment, terms: Terms) -> int:
    """How many answers at least can be had that are as near as this one: as far as the meter and the budgets go.

    What suffices when more was told suffices now, so answers may all be as exact as the last of them: of several places
    for that last one, the best. `again` plans the same for another moment.
    """
    places = None if terms.queries is None else terms.queries - moment.session.answers
    left = terms.session.limit_units - moment.session.units
    if made.promise.left_out is None:
        return max(1, min(left // max(1, made.charge.session), 10**12 if places is None else places))
    told, most = moment.table.information, 1
    room = max(1, made.charge.information)
    for _ in range(_STEPS):
        later = again(replace(moment, table=replace(moment.table, information=told + room)))
        if later is None or later.promise.left_out is None:
            break
        each = max(1, later.charge.information)
        paid = min(
            left // max(1, later.charge.session), (terms.information - moment.session.information) // each
        )
        most = max(most, min(paid, 1 + room // each))
        if most >= paid:
            break
        room *= 2
    return most if places is None else max(1, min(most, places))


def several(answers: int) -> str:
    """So many answers, in words."""
    return f"{answers:,} answer{'' if answers == 1 else 's'}"
