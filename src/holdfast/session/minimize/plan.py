"""The plan of a descent: steps, rows, noise, cost and certificate, before a row is read."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from holdfast.errors import BudgetError
from holdfast.mechanisms.selection import selection_loss
from holdfast.mechanisms.values import ROUND_UP
from holdfast.privacy.event import Event
from holdfast.session.minimize.certificate import SCORE, population_part, score_unit, table_excess
from holdfast.session.minimize.loss import Loss
from holdfast.session.planner import total_rho
from holdfast.session.promise import Promise, promises, share

if TYPE_CHECKING:
    from holdfast.session.session import Session


@dataclass(frozen=True, slots=True)
class DescentPlan:
    """What will be done, complete before a row is read.

    `rule` names the steps: "convex" D/(G sqrt t), "strongly-convex" 2/(H t), "smooth" 1/L, all with the averaged
    iterate; or "smooth-last" and "smooth-strong" 1/L with the last one. The former is preferred where its certificate
    is nearly as good, because it forgets the start. `noise` is the
    variance of a coordinate's total (gaussian) or the votes for a coordinate (votes); `sigma` its sub-Gaussian
    scale in the mean gradient. `excess` bounds how far the average loss at the result is above the least one
    in the region, on the `target`.
    """

    mechanism: str
    rule: str
    iterations: int
    runs: int
    noise: Fraction
    sigma: float
    rows_per_iteration: int
    selecting: Fraction | None
    event: Event
    cost: float
    currency: str
    excess: float
    on_table: float
    """The part of `excess` that bounds the loss on the table itself."""
    target: str
    confidence: float

    @property
    def rows_read(self) -> int:
        return self.rows_per_iteration * self.iterations * self.runs

    def __str__(self) -> str:
        return (
            f"{self.runs} x {self.iterations} {self.rule} steps by {self.mechanism}, {self.rows_per_iteration:,} rows "
            f"each; cost {self.cost:.4g} ({self.currency}); excess loss on the {self.target} at most "
            f"{self.excess:.4g} with confidence {self.confidence:g}"
        )


def certified(loss: Loss, session: Session, promise: Promise, made: DescentPlan) -> tuple[float, float]:
    """The excess on the target, and on the table, of a plan under a promise."""
    beyond, chance = population_part(loss, promise, session._terms.rows)
    if made.selecting is None:
        table = table_excess(loss, made.rule, made.iterations, made.sigma, chance)[0]
    else:
        sure, expected = table_excess(loss, made.rule, made.iterations, made.sigma, chance / 2)
        if 2.0**-made.runs <= chance / 2:  # Markov: each run stays below twice its mean half of the time
            sure = min(sure, 2 * expected)
        lost = selection_loss(made.runs, sensitivity=2 * SCORE, epsilon=made.selecting, beta=chance / 2)
        table = sure + (lost / session._terms.rows + 1.0) * score_unit(loss) * ROUND_UP
    return table + beyond, table


def promise_after(session: Session) -> Promise:
    """What a release that was just charged by `session.charge(..., queries=k)` may promise for each of them."""
    moment, terms = session._moment(), session._terms
    shared = moment.session if terms.target == "table" else moment.table
    weight, rho = share(terms.queries, max(1, shared.answers)), total_rho(moment.table.units, terms)
    return next(promises(terms.target, terms.rows, 1 - terms.confidence, weight, rho))


def refuse_beyond_the_promise(session: Session, asked: int) -> None:
    """BudgetError if the session's intervals were promised for fewer answers."""
    moment, terms = session._moment(), session._terms
    answers = (moment.session if terms.target == "table" else moment.table).answers
    if terms.queries is not None and answers + asked > terms.queries:
        raise BudgetError(
            f"the intervals were promised for {terms.queries} queries on these rows; {answers} are answered and "
            f"this needs {asked}. Open a session for more queries."
        )
