"""The optimisation query: plan, charge, descend."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Unpack

from holdfast.check import one_of, positive, shown, whole
from holdfast.errors import InputError, MechanismError
from holdfast.ledger import Stale
from holdfast.optimize.certificate import population_part
from holdfast.optimize.descent import blocks_of, choose, descend, steepness
from holdfast.optimize.descent_plan import DescentPlan, certified
from holdfast.optimize.objective import Loss, Vector
from holdfast.optimize.plan_search import Search
from holdfast.planning.keywords import Descent
from holdfast.privacy.filter import UNITS
from holdfast.query.calling import fitting
from holdfast.session.footing import footing_after

if TYPE_CHECKING:
    from holdfast.desk import Paid
    from holdfast.session.session import Session


@dataclass(frozen=True, slots=True)
class Minimum:
    """Parameters whose average loss is at most `excess` above the least one in the region, on the `target`."""

    theta: Vector
    excess: float
    plan: DescentPlan

    @property
    def target(self) -> str:
        return self.plan.target

    @property
    def confidence(self) -> float:
        return self.plan.confidence

    @property
    def rows_read(self) -> int:
        return self.plan.rows_read


def minimize(session: Session, loss: Loss, **how: Unpack[Descent]) -> Minimum:
    """Parameters with nearly the least average loss: see `plan_minimize` for what can be asked.

    Guarantee: charged once, before a row is read; private by the session's filter. With the session's
    confidence, together with all its other answers, the average loss at `theta` is at most `excess` above the
    least one in the region: on the population, or on the table if that is the session's target. The loss may
    have been chosen by earlier answers; on rows of which none was ever given the certificate is narrower.
    Requires: a loss that keeps the promises of `Loss`, and stays as it is from the call on. One query of the
    session.
    Reference: Fish, Reyzin, Rubinstein 2020, Algorithm 4 with its projection; docs/learn.md for the proofs on the
    table; docs/theorems.md, Theorem 43, for the population where the leave-out theorem covers all that was told,
    else Theorem 21.
    """
    made, paid = _charged(session, loss, how)
    footing = footing_after(session, made.fresh)
    blocks = blocks_of(paid, loss)
    steep = steepness(loss, made, population_part(loss, footing)[1])
    found = [descend(paid, loss, made, steep, blocks) for _ in range(made.runs)]
    theta = found[0] if made.selecting is None else found[choose(loss, found, made.selecting, blocks)]
    excess = certified(loss, footing, made)[0]
    paid.record(json.dumps({"theta": theta.tolist(), "excess": excess}))
    return Minimum(theta, excess, made)


def _charged(session: Session, loss: Loss, how: Descent) -> tuple[DescentPlan, Paid]:
    """The plan, and its charge. If the rows were fresh and somebody is told something of them first, another plan."""
    while True:
        made = plan_minimize(session, loss, **how)
        with suppress(Stale):
            words = f"minimize {type(loss).__name__}"
            return made, session.pay(
                "minimize", words, made.event, queries=1, fresh=made.fresh, tells=made.tells
            )


@fitting
def plan_minimize(
    session: Session,
    loss: Loss,
    *,
    within: float | None = None,
    rho: float | None = None,
    epsilon: float | None = None,
    mechanism: str | None = None,
    iterations: int | None = None,
    rows: int | None = None,
    runs: int = 1,
) -> DescentPlan:
    """Steps, rows, cost and certified excess of `minimize`; no row is read and nothing is charged.

    Accuracy first (`within`), or a budget: `rho`, in a pure session `epsilon`; with neither an equal share of
    the session's budget. `mechanism` insists on "gaussian" (all rows in every step) or "votes" (`rows` caps the
    rows of one step); `iterations` fixes the number of steps. With `runs` above 1 the descent is repeated and
    the exponential mechanism chooses among the results.
    """
    terms, currency = session._terms, session.currency
    if isinstance(loss, type) or not all(
        hasattr(loss, part) for part in ("columns", "region", "total", "complexity")
    ):
        raise InputError(f"expected a loss such as holdfast.learn.logistic(...), got {shown(loss)}")
    runs = whole("runs", runs)
    if sum(given is not None for given in (within, rho, epsilon)) > 1:
        raise InputError("expected only one of within, rho and epsilon, got more")
    if within is not None and runs > 1:
        raise InputError("expected a budget with runs=, got within=; give rho= or epsilon= instead")
    wanted: tuple[str, ...] = ("gaussian", "votes")
    if mechanism is not None:
        wanted = (one_of("mechanism", mechanism, wanted),)
    able = tuple(name for name in wanted if name in terms.mechanisms)
    if not able:
        raise MechanismError(
            f"this session's budget ({currency}) cannot count {wanted[0]} steps; open another session"
        )
    search = Search(session, loss, able, iterations, rows, runs)
    if within is not None:
        return search.least_cost(positive("within", within))
    return search.least_excess(_units(session, rho, epsilon))


def _units(session: Session, rho: float | None, epsilon: float | None) -> int:
    """The budget of this query in units of the session's currency."""
    terms, currency = session._terms, session.currency
    if rho is None and epsilon is None:
        if terms.queries is None:
            raise InputError(
                "expected within=, rho= or epsilon=, got none; say how exact, or open the session with queries="
            )
        return terms.session.limit_units // terms.queries
    if (epsilon is None) == (currency == "pure"):
        raise InputError(
            f"expected a budget in {currency}, as this session counts, got another; give "
            f"{'epsilon' if currency == 'pure' else 'rho'}="
        )
    amount = positive("epsilon" if rho is None else "rho", epsilon if rho is None else rho)
    return math.floor(Fraction(amount) * UNITS * (2 if currency == "gdp" else 1))
