"""Questions that need no row: the number of rows is public, and so is what every row or none satisfies."""

from __future__ import annotations

from fractions import Fraction

from holdfast.ledger import Charge
from holdfast.planning.plan import PUBLIC, Plan, Recipe, Widths
from holdfast.planning.promise import Promise
from holdfast.planning.terms import Terms
from holdfast.privacy.event import Nothing
from holdfast.query.predicate import Always, Never
from holdfast.query.statistic import Statistic
from holdfast.session.answer import Answer


def is_certain(statistic: Statistic) -> bool:
    """Whether the schema and the number of rows answer a question: the count or fraction of all rows, or of none."""
    return (
        isinstance(statistic.where, (Always, Never))
        and statistic.kind in ("count", "fraction")
        and (statistic.over is None or isinstance(statistic.where, Never))
        and statistic.by is None
    )


def certain_plan(statistic: Statistic, terms: Terms) -> Plan:
    """The plan of such a question: nothing is read, added or charged.

    Guarantee: its interval is the value itself, for every table of so many rows. For the population too: a count
    stands for the number of rows times the fraction there, and that is 1 or 0 under every law.
    """
    return Plan(
        statistic=statistic,
        recipe=Recipe(PUBLIC, Fraction(0), 0),
        promise=Promise(terms.target, 0.0),
        event=Nothing(),
        charge=Charge(0, 0, 0),
        rho=0.0,
        epsilon=0.0,
        widths=Widths((0.0,), 0.0, 0.0, 0.0),
        rows=terms.rows,
        confidence=terms.confidence,
    )


def certain_answer(statistic: Statistic, terms: Terms) -> Answer:
    """The answer, which stands in no ledger."""
    planned = certain_plan(statistic, terms)
    whole = float(terms.rows) if statistic.kind == "count" else 1.0
    value = whole if isinstance(statistic.where, Always) else 0.0
    return Answer(
        question=planned.question,
        value=value,
        low=value,
        high=value,
        confidence=planned.confidence,
        noise=0.0,
        sampling=0.0,
        population=0.0,
        target=planned.target,
        rho=0.0,
        epsilon=0.0,
        rows_read=0,
        mechanism=PUBLIC,
        explanation=planned.explanation,
    )
