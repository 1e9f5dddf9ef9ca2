"""The search for the best plan. It sees public numbers only."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from holdfast.check import whole
from holdfast.errors import BudgetError, InputError
from holdfast.ledger import UNCOVERED
from holdfast.mechanisms.values import ROUND_UP, round_down, round_up
from holdfast.mechanisms.votes import FLIP, votes_deviation
from holdfast.optimize.certificate import (
    SCORE,
    population_part,
    rules,
    score_unit,
    slope,
    table_excess,
)
from holdfast.optimize.descent_plan import DescentPlan, certified
from holdfast.optimize.objective import Loss
from holdfast.planning.promise import Promise, answered, next_promises, total_rho
from holdfast.planning.recipe_information import units_told
from holdfast.privacy.event import BoundedRange, Event, Gaussian, Group, Repeat, Sequence, Votes
from holdfast.privacy.filter import UNITS
from holdfast.privacy.rule import range_of_gdp
from holdfast.session.footing import Footing, footing, is_fresh
from holdfast.validity.search import most
from holdfast.validity.told import gaussian_told, selection_told, votes_told

if TYPE_CHECKING:
    from holdfast.session.session import Session

_WORK = 5e9
"""Row coordinates that a plan may read in all, unless the caller fixes the number of steps."""
_SELECTING = Fraction(1, 10)
"""The part of the budget that chooses among runs."""
_NEARLY = 1.1
_LARGEST_TOTAL = 2**62
"""No sum over rows may reach this: with its noise it has to fit 64 bits."""
_MOST_VARIANCE = 2.0**100
"""Noise of a larger scale would not surely fit 64 bits; who affords only more noise is refused beforehand."""


class Search:
    """The search for a plan: public numbers only."""

    def __init__(
        self,
        session: Session,
        loss: Loss,
        mechanisms: tuple[str, ...],
        iterations: int | None,
        rows: int | None,
        runs: int,
    ) -> None:
        self.session, self.loss, self.mechanisms, self.runs = session, loss, mechanisms, runs
        self.n, self.terms = session._terms.rows, session._terms
        self.steps = None if iterations is None else whole("iterations", iterations)
        self.rows = None if rows is None else whole("rows", rows)
        self.moment = session._moment()
        self.fresh = is_fresh(self.terms, self.moment)
        self._leave_out_what_overflows()

    def _leave_out_what_overflows(self) -> None:
        """Keep to the mechanisms whose sums over rows surely fit 64 bits; InputError if none is left."""
        loss = self.loss
        if self.n * loss.norm >= _LARGEST_TOTAL:
            self.mechanisms = tuple(name for name in self.mechanisms if name != "gaussian")
        if not self.mechanisms:
            raise InputError(
                f"expected sums of gradients below 2^62, got more: those of {self.n:,} rows may reach that; say "
                'mechanism="votes", which adds up a few rows a step, in a session that allows it'
            )
        greatest = SCORE + loss.penalty * loss.region.reach**2 / 2 / score_unit(loss)
        if self.runs > 1 and self.n * greatest >= _LARGEST_TOTAL:
            raise InputError(
                f"expected sums of losses below 2^62 steps, got more: those of {self.n:,} rows may "
                "reach that; say runs=1"
            )

    def least_excess(self, units: int) -> DescentPlan:
        """The best certificate for a budget."""
        selecting = None
        if self.runs > 1:
            share_of = Fraction(units, UNITS) * _SELECTING
            # epsilon^2/8 is the zCDP of a selection; in pure sessions epsilon itself is counted.
            currency = self.session.currency
            rate = float(share_of) if currency == "pure" else math.sqrt(8 * float(share_of))
            rate = range_of_gdp(share_of) if currency == "gdp" else rate
            selecting = round_down(rate / self.terms.rows_per_unit)
            units -= math.ceil(units * _SELECTING)
        found = [
            self._made(mechanism, rule, T, noise, selecting)
            for mechanism in self.mechanisms
            for T in self._iterations(mechanism)
            if (noise := self._noise_for(mechanism, T, units)) is not None
            for rule in rules(self.loss)
        ]
        if not found:
            raise BudgetError("this budget does not pay for a single step; give more, or ask for fewer steps")
        best = min(made.excess for made in found)
        last = [made for made in found if made.rule == "smooth-last" and made.excess <= _NEARLY * best]
        return min(last or found, key=lambda made: made.excess)

    def least_cost(self, within: float) -> DescentPlan:
        """The least cost for a certificate."""
        for promise, tells in self._levels():
            beyond, chance = population_part(self.loss, self._footing(promise, tells))
            if beyond >= within:
                break
            found = [
                (self._cost(event), mechanism, rule, T, noise)
                for mechanism in self.mechanisms
                for T in self._iterations(mechanism)
                for rule in rules(self.loss)
                if (noise := self._noise_within(mechanism, rule, T, within - beyond, chance)) is not None
                and self._told(mechanism, T, noise, None) <= tells
                and self._rho_after(event := self._event(mechanism, T, noise)) <= promise.most_rho
            ]
            if found:
                return self._made(*min(found)[1:], None, promise)
        raise InputError(
            f"cannot plan: within={within:g} cannot be certified for the {self.terms.target} with "
            f"{self.n:,} rows; ask for a "
            'greater one, give iterations=, shrink the region, or open a session with target="table"'
        )

    def _levels(self) -> Iterator[tuple[Promise, int]]:
        """What the claim may stand on, the narrowest first, with the most that the descent may tell then."""
        promises = next_promises(self.moment, self.terms)
        first = next(promises)
        if self._footing(first, 0).covered:
            yield from ((replace(first, most_rho=math.inf), 4**k) for k in range(10, 31))
        else:
            yield first, UNCOVERED
            yield from ((promise, UNCOVERED) for promise in promises)

    def _iterations(self, mechanism: str) -> list[int]:
        if self.steps is not None:
            return [self.steps]
        d = self.loss.dimension
        per_step = self.n * d if mechanism == "gaussian" else d * d * min(self.n, self.rows or self.n) / 16
        limit = max(16, min(1 << 16, int(_WORK / per_step / self.runs)))
        return sorted({min(limit, round(2 ** (k / 2))) for k in range(2 * limit.bit_length() + 1)})

    def _noise_for(self, mechanism: str, iterations: int, units: int) -> Fraction | None:
        """The least noise that the budget pays for."""
        d = self.loss.dimension
        if mechanism == "votes":
            limit = (self.rows or max(self.n, d)) // d
            count = most(
                lambda m: m <= limit and self._cost(self._event(mechanism, iterations, Fraction(m))) <= units
            )
            return Fraction(count) if count else None
        guess = (
            4.0
            * self.loss.norm**2
            * iterations
            * self.runs
            * self.terms.rows_per_unit**2
            / max(units, 1)
            * UNITS
        )

        def fits(power: int) -> bool:
            return self._cost(self._event(mechanism, iterations, _variance(guess * 1.01**power))) <= units

        place = most(lambda k: k <= 400 and fits(150 - k))
        return _variance(guess * 1.01 ** (150 - place)) if place and units > 0 else None

    def _noise_within(
        self, mechanism: str, rule: str, iterations: int, within: float, chance: float
    ) -> Fraction | None:
        """The most noise whose certificate on the table is at most `within`."""

        def holds(sigma: float) -> bool:
            return table_excess(self.loss, rule, iterations, sigma, chance)[0] <= within

        if not holds(0.0):
            return None
        steepest = max(slope(self.loss), 1e-300)
        place = most(lambda k: k <= 2400 and holds(steepest * 1.01 ** (k - 2000)))
        if not place:
            return None
        sigma = steepest * 1.01 ** (place - 2000)
        if mechanism == "gaussian":
            return _variance((sigma * self.n / self.loss.step) ** 2 / 1.000001)
        one = votes_deviation(1, FLIP) * 2 * self.loss.span * self.loss.step
        count = max(1, math.ceil((one / sigma) ** 2))
        return Fraction(count) if count * self.loss.dimension <= (self.rows or self.n) else None

    def _made(
        self,
        mechanism: str,
        rule: str,
        iterations: int,
        noise: Fraction,
        selecting: Fraction | None,
        promise: Promise | None = None,
    ) -> DescentPlan:
        event = self._event(mechanism, iterations, noise)
        if selecting is not None:
            event = Sequence((event, BoundedRange(selecting)))
        if promise is None:
            promise = next(next_promises(self.moment, self.terms, spent=self._rho_after(event)))
        units = self._cost(event)
        made = DescentPlan(
            mechanism,
            rule,
            iterations,
            self.runs,
            noise,
            self._sigma(mechanism, noise),
            self.n if mechanism == "gaussian" else int(noise) * self.loss.dimension,
            selecting,
            event,
            units / UNITS,
            self.session.currency,
            math.inf,
            math.inf,
            self.terms.target,
            self.terms.confidence,
            self.fresh,
            self._told(mechanism, iterations, noise, selecting),
        )
        excess, table = certified(self.loss, self._footing(promise, made.tells), made)
        return replace(made, excess=excess, on_table=table)

    def _footing(self, promise: Promise, tells: int) -> Footing:
        place = answered(self.moment, self.terms) + 1
        return footing(self.moment, self.terms, promise, self.fresh, place=place, tells=tells)

    def _told(self, mechanism: str, iterations: int, noise: Fraction, selecting: Fraction | None) -> int:
        """What the descent tells of the rows, in the ledger's units: gradients are vectors in a ball of radius `norm`
        (docs/theorems.md, Theorem 24), votes are votes (Theorem 27), the choice among runs is a selection."""
        steps, n = iterations * self.runs, self.n
        if mechanism == "gaussian":
            told = steps * gaussian_told(float(self.loss.norm) ** 2, math.sqrt(noise) / n)
        else:
            told = votes_told(n, steps * int(noise) * self.loss.dimension, float(FLIP))
        if selecting is not None:
            told += selection_told(n, float(selecting))
        return units_told(told, n)

    def _sigma(self, mechanism: str, noise: Fraction) -> float:
        if mechanism == "gaussian":
            return math.sqrt(noise) * self.loss.step / self.n * ROUND_UP
        return votes_deviation(int(noise), FLIP) * 2 * self.loss.span * self.loss.step * ROUND_UP

    def _event(self, mechanism: str, iterations: int, noise: Fraction) -> Event:
        if mechanism == "gaussian":
            one: Event = Gaussian(4 * self.loss.norm**2, noise)
        else:
            one = Votes(self.n, int(noise) * self.loss.dimension, FLIP)
        return Repeat(one, iterations * self.runs)

    def _cost(self, event: Event) -> int:
        return self.terms.session.cost(self._grouped(event))

    def _rho_after(self, event: Event) -> float:
        """The table's total loss once this is charged."""
        return total_rho(self.moment.table.units + self.terms.table.cost(self._grouped(event)), self.terms)

    def _grouped(self, event: Event) -> Event:
        return Group(event, self.terms.rows_per_unit) if self.terms.rows_per_unit > 1 else event


def _variance(number: float) -> Fraction:
    """A variance that the sampler can draw and the Gaussian accountant can count."""
    return round_up(Fraction(min(max(number, 5.0), _MOST_VARIANCE)))
