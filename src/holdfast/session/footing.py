"""What the claims of a learner stand on: the session's promise, how many people the rows are of, what was told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.errors import BudgetError
from holdfast.session.planner import total_rho
from holdfast.session.promise import Promise, promises, share

if TYPE_CHECKING:
    from holdfast.ledger import Moment
    from holdfast.session.session import Session
    from holdfast.session.terms import Terms


@dataclass(frozen=True, slots=True)
class Footing:
    """The public numbers from which a learner's certificates follow; docs/theorems.md, Theorem 21.

    `fresh`: no release about these rows was charged before this one, to anybody. Only then is the class or the
    loss surely chosen without the rows, and only then may a claim hold for all of it at once (uniform
    convergence, Hoeffding's inequality at the best hypothesis). Otherwise every term is a transfer term.
    """

    promise: Promise
    rows: int
    rows_per_unit: int
    fresh: bool

    @property
    def transfer(self) -> float:
        """alpha + o: how far the mean of a query into [0,1], chosen by the answers, may be from the population."""
        return self.promise.population + self.promise.slack

    @property
    def outright(self) -> float:
        """The chance with which a claim about the population may fail by itself: w beta o/(o + alpha).

        It takes the place of the overshoot w beta o that an answer of the same share may have.
        """
        return self.promise.allowance / self.transfer

    @property
    def units(self) -> float:
        """What stands for n in Hoeffding's inequality: a unit's weight is at most m/n, so their squares sum to at
        most m/n, as if n/m rows were drawn."""
        return self.rows / self.rows_per_unit


def is_fresh(terms: Terms, moment: Moment) -> bool:
    """Whether nothing about these rows was ever charged; asked only where it matters, for the population."""
    return terms.target == "population" and moment.table.entries == 0


def footing_after(session: Session, fresh: bool) -> Footing:
    """What each claim of a release stands on that was just charged by `session.charge(..., queries=k)`."""
    moment, terms = session._moment(), session._terms
    shared = moment.session if terms.target == "table" else moment.table
    weight, rho = share(terms.queries, max(1, shared.answers)), total_rho(moment.table.units, terms)
    promise = next(promises(terms.target, terms.rows, 1 - terms.confidence, weight, rho))
    return Footing(promise, terms.rows, terms.rows_per_unit, fresh)


def refuse_beyond_the_promise(session: Session, asked: int) -> None:
    """BudgetError if the session's intervals were promised for fewer answers."""
    moment, terms = session._moment(), session._terms
    answers = (moment.session if terms.target == "table" else moment.table).answers
    if terms.queries is not None and answers + asked > terms.queries:
        raise BudgetError(
            f"the intervals were promised for {terms.queries} queries on these rows; {answers} are answered and "
            f"this needs {asked}. Open a session for more queries."
        )
