"""Which terms a session can give to multiplicative weights, and whether it should rather answer directly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Unpack

from holdfast.check import one_of, positive, printable, probability, whole
from holdfast.errors import BudgetError, InputError
from holdfast.ledger import UNCOVERED
from holdfast.planning.keywords import Many
from holdfast.planning.promise import grid_beta, next_promises, noise_beta, refuse_beyond_the_promise
from holdfast.privacy.conversion import zcdp_to_approx
from holdfast.privacy.rule import range_of_gdp
from holdfast.query.universe import universe
from holdfast.session.price import Price, cost_of
from holdfast.weights.versions import (
    WeightsTerms,
    best,
    best_within,
    independent_within,
    lecture,
    lecture_within,
    logistic,
    mwem_within,
    textbook,
    textbook_within,
)

if TYPE_CHECKING:
    from holdfast.session.session import Session

VERSIONS = ("best", "logistic", "lecture", "textbook")
STOPS = ("when settled", "when spent")
"""When weights end: "when settled", only after every update that could be needed, which must be affordable at the
opening; "when spent", when the budget has no room for the next one."""
_LEVELS = 40


@dataclass(frozen=True, slots=True)
class Comparison:
    """The certified max error on the table of each way to answer, for the same budget and confidence.

    None means that the way certifies nothing below 1. MWEM's bound is its authors', for pure epsilon and in
    expectation; it is here to compare with and is never chosen.
    """

    queries: int
    errors: dict[str, float | None]

    @property
    def winner(self) -> str:
        """The way with the smallest certified error; independent answers where none certifies anything."""
        found = {k: v for k, v in self.errors.items() if v is not None and k != "mwem"}
        return min(found, key=lambda name: found[name]) if found else "gaussian"

    def __str__(self) -> str:
        parts = [
            f"{name} {'certifies nothing' if e is None else format(e, '.4g')}"
            for name, e in self.errors.items()
        ]
        advice = {
            "gaussian": "answer each question by itself; weights pay only for many more questions",
            "weights": "use multiplicative weights",
        }.get(self.winner, f"use the {self.winner} version")
        return f"{self.queries:,} questions: {', '.join(parts)}; {advice}"


def compare(
    *, rows: int, cells: int, queries: int, rho: float, delta: float = 1e-6, confidence: float = 0.95
) -> Comparison:
    """Independent Gaussian answers beside weights of every version: who certifies the least error.

    Hardt and Rothblum's version and the textbook's are given the (epsilon, delta) that rho stands for.
    """
    n, k, points = whole("rows", rows), whole("queries", queries), whole("cells", cells) + 1
    budget, beta = positive("rho", rho), 1 - probability("confidence", confidence)
    epsilon = zcdp_to_approx(budget, probability("delta", delta))
    try:
        own: float | None = best_within(n, points, k, beta, rho=budget).within
    except InputError:
        own = None
    errors = {
        "gaussian": independent_within(n, k, budget, beta),
        "weights": own,
        "textbook": textbook_within(n, points, k, epsilon, delta, beta),
        "lecture": lecture_within(n, points, k, epsilon, delta, beta),
        "mwem": mwem_within(n, points, max(2, k), epsilon),
    }
    return Comparison(k, {name: e if e is not None and e < 1 else None for name, e in errors.items()})


def plan_weights(
    session: Session,
    points: int,
    queries: int,
    *,
    version: str | None,
    within: float | None,
    rho: float | None,
    epsilon: float | None,
    delta: float | None,
    stop: str | None = None,
    after: int | None = None,
) -> WeightsTerms:
    """The terms that were asked for. BudgetError if the session could not pay for every update, unless `stop` is
    "when spent": the terms are then the same, and all updates together may cost more than there is.

    The answers take the places of the session's promise that follow `after` (now: those already answered); their
    confidence holds in any earlier places as well, because these have larger shares.

    "best" and "logistic" take within=, or the budget of all updates (rho=, or epsilon= in a pure session); the others
    take epsilon= and delta=. Where none is named it is "logistic" in a session whose places the leave-out theorem
    covers, whose `within` is then about the population; else "best".
    """
    version = settled_version(session, version)
    delta = None if delta is None else probability("delta", delta)
    spends = one_of("stop", STOPS[0] if stop is None else stop, STOPS) == "when spent"
    if spends and within is None:
        raise InputError(
            'expected within= with stop="when spent", got none; give the width that answers are to keep'
        )
    n, pure = session._terms.rows, session.currency == "pure"
    after = session._answered if after is None else after
    failure = _failure(session, queries, after)
    budget = epsilon if pure else rho
    if version not in ("best", "logistic"):
        if epsilon is None or within is not None or rho is not None:
            raise InputError(
                f"expected epsilon= and delta= for the {version} version, got others; give these"
            )
        own = lecture if version == "lecture" else textbook
        terms = own(n, points, queries, positive("epsilon", epsilon), delta or 0.0, failure)
    elif version == "logistic" and (within is None) != (budget is None):
        if budget is not None:
            most = positive("epsilon" if pure else "rho", budget)
        else:
            most = math.inf if spends else _left(session)
        beta, secret = (part(session._terms, after + 1, queries) for part in (grid_beta, noise_beta))
        told = session._moment().table.information
        width = None if within is None else probability("within", within)
        terms = logistic(n, points, queries, beta, told, secret=secret, most=most, pure=pure, within=width)
    elif version == "best" and within is not None and rho is None and epsilon is None:
        answer = "laplace" if pure else "gaussian"
        terms = best(n, points, queries, probability("within", within), failure, answer)
    elif version == "best" and within is None and budget is not None:
        # One person's rows cost as a group: rows_per_unit times epsilon, or its square times rho.
        amount = positive("epsilon" if pure else "rho", budget) / session._terms.rows_per_unit ** (
            1 if pure else 2
        )
        if pure:
            terms = best_within(n, points, queries, failure, epsilon=amount)
        else:
            terms = best_within(n, points, queries, failure, rho=amount)
    else:
        raise InputError(
            "expected within=, or rho= for all updates (epsilon= in a pure session), got neither or both"
        )
    if not spends:
        _refuse_what_cannot_finish(session, terms)
    return terms


def settled_version(session: Session, version: str | None) -> str:
    """The version that was named, or the one that fits the session. InputError for one that it cannot have."""
    terms = session._terms
    covered = terms.places is not None and session._moment().table.information < UNCOVERED
    if version is None:
        return "logistic" if covered else "best"
    if one_of("version", version, VERSIONS) == "logistic" and not covered:
        raise InputError(
            "expected a session for the population that the leave-out theorem covers for version='logistic', got "
            "another; take version='best'"
        )
    return version


def price_weights(session: Session, columns: Sequence[str], *, queries: int, **how: Unpack[Many]) -> Price:
    """What all updates of `Session.multiplicative_weights` may cost; nothing is read and nothing charged."""
    cells = universe(session.schema, columns, how.get("edges"), nulls=how.get("nulls"))
    printable("name", how.get("name", "weights"))
    terms = plan_weights(
        session, cells.points, whole("queries", queries), version=how.get("version"),
        within=how.get("within"), rho=how.get("rho"), epsilon=how.get("epsilon"), delta=how.get("delta"),
        stop=how.get("stop"),
    )  # fmt: skip
    each = cost_of(session, terms.event)
    question = f"weights over {', '.join(columns)} ({cells.size:,} cells)"
    explanation = (
        f"{question}\nanswers {queries:,} questions within {terms.within:.4g} of the "
        f"{'table' if terms.looks is None else 'population'}; at most "
        f"{terms.updates:,} updates cost {each:.4g} each, the rest is free."
    )
    cost = each * terms.updates
    if how.get("stop") == STOPS[1]:
        cost = min(cost, float(session.remaining))
        explanation += (
            f" They stop when what is left ({float(session.remaining):.4g}) has no room for another."
        )
    return Price(question, "multiplicative-weights", cost, explanation, queries)


def _left(session: Session) -> float:
    """What is left of the session's budget, as the epsilon or rho of runs of at most epsilon 1/2."""
    left = session.left(session._moment())
    return 0.97 * float(range_of_gdp(Fraction(left)) ** 2) / 8 if session.currency == "gdp" else left


def _failure(session: Session, queries: int, answered: int) -> float:
    """The chance of a miss on the table that the session's promise leaves for all these answers together.

    For the population: at the first miss the overshoot is at most 1, and it happens with at most this chance,
    which is the allowance of the answers' shares at every level that the table may yet reach.
    """
    refuse_beyond_the_promise(queries, answered, session._terms)
    levels = next_promises(session._moment(), session._terms, place=answered + 1, count=queries)
    return min(promise.allowance for promise in islice(levels, _LEVELS))


def _refuse_what_cannot_finish(session: Session, terms: WeightsTerms) -> None:
    """All updates must be affordable at the start, so that every question can be answered."""
    cost, left = terms.updates * cost_of(session, terms.event), float(session.remaining)
    if cost > left:
        raise BudgetError(
            f"{terms.updates:,} updates may cost {cost:.4g} and {left:.4g} is left; ask for a wider "
            'promise, give the budget and take the width that it affords, or stop="when spent"',
            requested=cost,
            remaining=left,
        )
    told, given = 0 if terms.looks is None else terms.updates * terms.looks.tells, session._terms.information
    if given < UNCOVERED and told > given - session._moment().session.information:
        raise BudgetError(
            f"{terms.updates:,} updates may tell more than is left of the session's share of the meter; ask for a "
            "wider promise, or open a larger share"
        )
