"""What the claims of a learner stand on: the session's promise, how many people the rows are of, what was told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.planning.promise import Promise, answered, next_promises

if TYPE_CHECKING:
    from holdfast.ledger import Moment
    from holdfast.planning.terms import Terms
    from holdfast.session.session import Session


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
    """What each claim of a release stands on that was just charged by `session.pay(..., queries=k)`."""
    moment, terms = session._moment(), session._terms
    promise = next(next_promises(moment, terms, place=max(1, answered(moment, terms))))
    return Footing(promise, terms.rows, terms.rows_per_unit, fresh)
