"""The plan of a descent: steps, rows, noise, cost and certificate, before a row is read."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from holdfast.mechanisms.selection import selection_loss
from holdfast.mechanisms.values import ROUND_UP
from holdfast.optimize.certificate import SCORE, population_part, score_unit, table_excess
from holdfast.optimize.objective import Loss
from holdfast.privacy.event import Event
from holdfast.session.footing import Footing


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
    fresh: bool
    """Whether it was planned for rows of which nothing was ever told; if something is, it is planned again."""
    tells: int
    """What it tells of the rows, in the ledger's units."""

    @property
    def rows_read(self) -> int:
        return self.rows_per_iteration * self.iterations * self.runs

    def __str__(self) -> str:
        return (
            f"{self.runs} x {self.iterations} {self.rule} steps by {self.mechanism}, {self.rows_per_iteration:,} rows "
            f"each; cost {self.cost:.4g} ({self.currency}); excess loss on the {self.target} at most "
            f"{self.excess:.4g} with confidence {self.confidence:g}"
        )


def certified(loss: Loss, footing: Footing, made: DescentPlan) -> tuple[float, float]:
    """The excess on the target, and on the table, of a plan that stands on this footing."""
    beyond, chance = population_part(loss, footing)
    if made.selecting is None:
        table = table_excess(loss, made.rule, made.iterations, made.sigma, chance)[0]
    else:
        sure, expected = table_excess(loss, made.rule, made.iterations, made.sigma, chance / 2)
        if 2.0**-made.runs <= chance / 2:  # Markov: each run stays below twice its mean half of the time
            sure = min(sure, 2 * expected)
        lost = selection_loss(made.runs, sensitivity=2 * SCORE, epsilon=made.selecting, beta=chance / 2)
        table = sure + (lost / footing.rows + 1.0) * score_unit(loss) * ROUND_UP
    return table + beyond, table
