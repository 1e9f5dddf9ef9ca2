"""What the claims of a learner stand on: the session's promise, how many people the rows are of, what was told."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from holdfast.ledger import UNCOVERED
from holdfast.planning.promise import Promise, answered, grid_beta, next_promises, noise_beta
from holdfast.planning.recipe_information import told_by
from holdfast.validity.leave_out import recorded_grid

if TYPE_CHECKING:
    from holdfast.ledger import Moment
    from holdfast.planning.terms import Terms
    from holdfast.session.session import Session


@dataclass(frozen=True, slots=True)
class Footing:
    """The public numbers from which a learner's certificates follow; docs/theorems.md, Theorems 21 and 43.

    `fresh`: no release about these rows was charged before this one, to anybody. Only then is the class or the
    loss surely chosen without the rows, and only then may a claim hold for all of it at once (uniform
    convergence, Hoeffding's inequality at the best hypothesis). Otherwise every term is about a query that the
    transcript chose: by the leave-out theorem where it covers all that was told, else by transfer.
    """

    promise: Promise
    rows: int
    rows_per_unit: int
    fresh: bool
    told: float = math.inf
    """The information of all that was told, this release included; infinite where no theorem bounds it."""
    covered_chance: float = 0.0
    """The chance with which one claim may fail that the leave-out theorem covers: its place's share."""
    noise_chance: float = 0.0
    """The chance that a claim's own noise or choice has beside it, given the rows: its place's share of that."""

    @property
    def covered(self) -> bool:
        """Whether the leave-out theorem covers everything that was told."""
        return math.isfinite(self.told)

    def beyond(self, chance: float) -> float:
        """How far the population may be above the rows in the mean of a query into [0,1] that was chosen by all that
        was told, but with this chance: one side of Corollary A, over the table's recorded grid.

        Reference: docs/theorems.md, Theorem 43.
        """
        if not self.told:
            return _beyond(self.rows, 0.0, chance)
        # Rounded up to the next power of 1.01, so that plans which differ little are one.
        return _beyond(self.rows, self.told * 1.01 ** (-math.log(self.told, 1.01) % 1) * (1 + 1e-9), chance)

    @property
    def transfer(self) -> float:
        """alpha + o: how far the mean of a query into [0,1], chosen by the answers, may be from the population."""
        return self.promise.population + self.promise.slack

    @property
    def outright(self) -> float:
        """The chance with which a claim about the population may fail by itself: its share where the leave-out
        theorem covers it; else w beta o/(o + alpha), in the place of the overshoot w beta o of an answer."""
        return self.covered_chance if self.covered else self.promise.allowance / self.transfer

    @property
    def units(self) -> float:
        """What stands for n in Hoeffding's inequality: a unit's weight is at most m/n, so their squares sum to at
        most m/n, as if n/m rows were drawn."""
        return self.rows / self.rows_per_unit


@lru_cache(maxsize=4096)
def _beyond(rows: int, told: float, chance: float) -> float:
    grid = recorded_grid(rows)
    return grid.any_statistic(grid.charges(told), 2 * chance)


def is_fresh(terms: Terms, moment: Moment) -> bool:
    """Whether nothing about these rows was ever charged; asked only where it matters, for the population."""
    return terms.target == "population" and moment.table.entries == 0


def footing(
    moment: Moment, terms: Terms, promise: Promise, fresh: bool, *, place: int, tells: int = 0
) -> Footing:
    """What a claim in this place stands on, if so much is told (in the ledger's units) beside what was told."""
    told = moment.table.information + tells
    if terms.places is None or terms.rows_per_unit > 1 or told >= UNCOVERED:
        return Footing(promise, terms.rows, terms.rows_per_unit, fresh)
    chance = grid_beta(terms, place)
    alone = noise_beta(terms, place)
    return Footing(promise, terms.rows, 1, fresh, told_by(told, terms.rows), chance, alone)


def footing_after(session: Session, fresh: bool) -> Footing:
    """What each claim of a release stands on that was just charged by `session.pay(..., queries=k)`.

    On fresh rows the narrower of two claims is taken, and which that is may depend on nothing that others were told
    since: only the first charge, its own, counts as told.
    """
    moment, terms = session._moment(), session._terms
    first = next(session._ledger.entries(), None) if fresh else None
    if first is not None and first.session == session.name:
        moment = replace(moment, table=replace(moment.table, information=first.charge.information))
    place = max(1, answered(moment, terms))
    return footing(moment, terms, next(next_promises(moment, terms, place=place)), fresh, place=place)
