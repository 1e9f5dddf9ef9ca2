"""Which mechanisms may answer a question: what the session's currency counts, and the theorem covers."""

from __future__ import annotations

from holdfast.errors import MechanismError
from holdfast.ledger import UNCOVERED, Moment
from holdfast.planning.plan import ADDED, SELECTED
from holdfast.planning.request import Request
from holdfast.planning.terms import Terms
from holdfast.query.statistic import Workload


def is_plain(request: Request) -> bool:
    """Whether the question says nothing of how exact it is to be: then the session's plan does."""
    return request.within is None and request.rho is None and request.epsilon is None


def mechanisms_for(totals: Workload, request: Request, moment: Moment, terms: Terms) -> tuple[str, ...]:
    """The mechanisms to try; an explicit choice or an explicit budget leaves one.

    While the leave-out theorem holds, what it does not cover is done by name only: it ends it for everybody.
    """
    currency, kind = terms.session.currency, totals.statistic.kind
    allowed: tuple[str, ...]
    default: tuple[str, ...]
    if kind == "quantile":
        allowed = SELECTED
        covered = terms.on_the_meter and moment.table.information < UNCOVERED
        default = ("smoothed",) if terms.target == "population" and covered else ("exponential",)
    else:
        allowed = tuple(m for m in terms.mechanisms if answers(m, totals))
        if not allowed and totals.sums is not None:
            raise MechanismError(
                f"this {kind} is read off sums with Gaussian noise, and this session is pure (it was opened without "
                "delta); open one with delta= or rho=, or ask for one group or one quantile at a time"
            )
        places = terms.places if moment.table.information < UNCOVERED else None
        default = tuple(
            m for m in allowed if m != "logistic"
        )  # for the rows themselves Laplace noise is narrower
        if places is not None:
            smooth = "logistic" if currency == "pure" else "gaussian"
            default = tuple(m for m in allowed if m == smooth or (m == "votes" and places.by_votes))
        if request.epsilon is not None:
            default = ("laplace" if places is None else "logistic",)
        elif request.rho is not None:
            default = ("gaussian",)
        elif request.within is None:
            default = default[:1]
            if terms.places is not None and terms.places.epochs and terms.places.mechanism in allowed:
                default = (terms.places.mechanism,)
    if request.mechanism is not None:
        default = (request.mechanism,)
    reason = "that mechanism does not answer this statistic"
    if currency == "pure":
        reason = "this session is pure (it was opened without delta), so only pure mechanisms answer"
    for mechanism in default:
        if mechanism not in allowed:
            raise MechanismError(f"{mechanism!r} cannot be used here: {reason}; use {' or '.join(allowed)}")
    return default


def answers(mechanism: str, totals: Workload) -> bool:
    """Sampling answers one number at a time: a vote knows nothing of the other groups, nor of
    other rows' values. Sums have Gaussian noise."""
    if totals.sums is not None:
        return mechanism == "gaussian"
    return mechanism in ADDED or (totals.statistic.by is None and totals.statistic.distinct is None)
