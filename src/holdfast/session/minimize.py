"""Optimisation queries: the least average loss over a bounded set, by gradient descent in private steps.

One step asks for the mean gradient of all rows, every coordinate of it a whole number on a grid, answered by
exact Gaussian noise over all rows or by votes of a few drawn rows. Notation: T steps, d coordinates, D the
diameter of the set, r its radius around the start, G a bound on every row's gradient (penalty included), H
strong convexity, L smoothness, sigma the sub-Gaussian scale of the noise in one coordinate of the mean.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import BudgetError, InputError, MechanismError
from holdfast.mechanisms.gaussian import add_gaussian
from holdfast.mechanisms.selection import exponential, selection_loss
from holdfast.mechanisms.values import ROUND_UP, round_down, round_up
from holdfast.mechanisms.votes import FLIP, unbiased, votes, votes_deviation
from holdfast.privacy.event import BoundedRange, Event, Gaussian, Group, Repeat, Sequence, Votes
from holdfast.privacy.filter import UNITS
from holdfast.session.planner import total_rho
from holdfast.session.promise import Promise, promises, share
from holdfast.session.request import positive, whole

if TYPE_CHECKING:
    from holdfast.session.session import Session

Vector = NDArray[np.float64]

_WORK = 5e9
"""Row coordinates that a plan may read in all, unless the caller fixes the number of steps."""
_CACHED = 1 << 26
_SCORE = 1 << 20
_SELECTING = Fraction(1, 10)
_NEARLY = 1.1


class Region(Protocol):
    """A bounded convex set of parameters."""

    @property
    def diameter(self) -> float:
        """D: the largest distance between two points."""

    @property
    def radius(self) -> float:
        """r: the largest distance from `start`."""

    @property
    def reach(self) -> float:
        """The largest norm."""

    @property
    def start(self) -> Vector:
        """Where descent begins; a point of the set."""

    def project(self, theta: Vector) -> Vector:
        """The nearest point of the set."""


class Loss(Protocol):
    """The average over rows of a convex loss, plus penalty/2 ||theta||^2, which is public and needs no noise.

    Requires: for every row and every theta of the region the whole numbers that stand for its gradient have
    norm at most `norm` and lie in -span..span, they times `step` are within `rounding` of the gradient, and
    they depend on that row alone. `strong` (H, may be 0) and `smooth` (L, None if there is none) include the
    penalty. A row with NULL contributes nothing.
    """

    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def dimension(self) -> int: ...
    @property
    def region(self) -> Region: ...
    @property
    def penalty(self) -> float: ...
    @property
    def strong(self) -> float: ...
    @property
    def smooth(self) -> float | None: ...
    @property
    def step(self) -> float: ...
    @property
    def norm(self) -> int: ...
    @property
    def span(self) -> int: ...
    @property
    def rounding(self) -> float: ...
    def prepare(self, block: Mapping[str, NDArray[Any]]) -> Any:
        """Rows in the form that the other methods want."""

    def total(self, theta: Vector, rows: Any) -> NDArray[np.int64]:
        """The exact sum over rows of their whole-number gradients."""

    def units(self, theta: Vector, rows: Any, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Coordinate places[i] of the whole-number gradient of row i."""

    def values(self, theta: Vector, rows: Any) -> Vector:
        """The loss of each row, without the penalty."""

    def complexity(self, n: int, chance: float) -> float:
        """With probability 1 - chance over n independent rows, for all theta of the region at once, the mean
        loss of the population, counted from the start, is at most this much above the mean of the rows."""


@dataclass(frozen=True, slots=True)
class DescentPlan:
    """What will be done, complete before a row is read.

    `rule` names the steps: "convex" D/(G sqrt t), "strongly-convex" 2/(H t), "smooth" 1/L, all with the averaged
    iterate, or "smooth-last" 1/L with the last one, which is preferred where its certificate is nearly as good,
    because it forgets the start. `noise` is the
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


def minimize(session: Session, loss: Loss, **how: Any) -> Minimum:
    """Parameters with nearly the least average loss: see `plan_minimize` for what can be asked.

    Guarantee: charged once, before a row is read; private by the session's filter. With the session's
    confidence, together with all its other answers, the average loss at `theta` is at most `excess` above the
    least one in the region: on the population, or on the table if that is the session's target.
    Requires: a loss that keeps the promises of `Loss`. One query of the session.
    Reference: Fish, Reyzin, Rubinstein 2020, Algorithm 4 with its projection; docs/learn.md for the proofs.
    """
    made = plan_minimize(session, loss, **how)
    refuse_beyond_the_promise(session, 1)
    entry = session.charge(f"minimize {type(loss).__name__}", made.event, queries=1)
    promise = promise_after(session)
    blocks = _blocks(session, loss)
    steep = _steep(loss, made, _parts(loss, promise, session._terms.rows)[1])
    found = [_descend(session, loss, made, steep, blocks) for _ in range(made.runs)]
    theta = found[0] if made.selecting is None else found[_choose(loss, found, made.selecting, blocks)]
    excess = _certified(loss, session, promise, made)[0]
    session.record(entry, json.dumps({"theta": theta.tolist(), "excess": excess}))
    return Minimum(theta, excess, made)


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
    runs = whole("runs", runs)
    if sum(given is not None for given in (within, rho, epsilon)) > 1:
        raise InputError("give only one of within, rho and epsilon")
    if within is not None and runs > 1:
        raise InputError("runs= needs a budget: give rho= or epsilon= instead of within=")
    wanted = (mechanism,) if mechanism is not None else ("gaussian", "votes")
    if any(name not in ("gaussian", "votes") for name in wanted):
        raise InputError(f'expected mechanism="gaussian" or "votes", got {mechanism!r}')
    able = tuple(name for name in wanted if name in terms.mechanisms)
    if not able:
        raise MechanismError(f"this session's budget ({currency}) cannot count {wanted[0]} steps")
    search = _Search(session, loss, able, iterations, rows, runs)
    if within is not None:
        return search.least_cost(positive("within", within))
    return search.least_excess(_units(session, rho, epsilon))


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


def table_excess(loss: Loss, rule: str, iterations: int, sigma: float, beta: float) -> tuple[float, float]:
    """(excess with probability 1 - beta, expected excess) of T noisy steps, on the rows themselves.

    Guarantee: with N = sigma (sqrt d + sqrt(2 ln(2T/beta))), which bounds the noise of all steps, and G' = G + N:
      convex            3/2 D G'/sqrt T + D sigma sqrt(2 ln(2/beta)/T)
      strongly-convex   (G'^2/H)(1 + ln T)/T + 2 sigma^2 ln(2/beta)/(H T)
      smooth            L r^2/(2T) + D sigma sqrt(2 ln(2/beta)/T) + N^2/L
      smooth-last       as smooth, plus T (N + rounding)^2/(2L), for the last iterate in place of the average
    each plus D*rounding. In expectation the middle terms vanish.
    Requires: noise of mean zero, independent over coordinates, each sub-Gaussian with `sigma` given the past.
    Reference: docs/learn.md. Zinkevich 2003; Hazan, Agarwal, Kale 2007; theory 1.2, 2.4(5).
    """
    T, d, region = iterations, loss.dimension, loss.region
    D, r, G = region.diameter, region.radius, _slope(loss)
    noise = _noise_norm(d, T, sigma, beta)
    likely = math.sqrt(2 * math.log(2 / beta))
    grid = D * loss.rounding
    if rule == "convex":
        expected = 1.5 * D * (G + noise) / math.sqrt(T) + grid
        sure = expected + D * sigma * likely / math.sqrt(T)
    elif rule == "strongly-convex":
        harmonic = (1 + math.log(T)) / (loss.strong * T)
        expected = (G**2 + d * sigma**2) * harmonic + grid
        sure = (G + noise) ** 2 * harmonic + (sigma * likely) ** 2 / (loss.strong * T) + grid
    else:
        assert loss.smooth is not None
        L = loss.smooth
        expected = L * r**2 / (2 * T) + d * sigma**2 / L + grid
        sure = L * r**2 / (2 * T) + D * sigma * likely / math.sqrt(T) + noise**2 / L + grid
        if rule == "smooth-last":  # a step raises the loss by at most the square of its error over 2L
            expected += T * (math.sqrt(d) * sigma + loss.rounding) ** 2 / (2 * L)
            sure += T * (noise + loss.rounding) ** 2 / (2 * L)
    return sure * ROUND_UP, expected * ROUND_UP


def _noise_norm(d: int, iterations: int, sigma: float, beta: float) -> float:
    """Hsu, Kakade, Zhang 2012: a sub-Gaussian vector is longer than this with probability at most beta/(2T)."""
    return sigma * (math.sqrt(d) + math.sqrt(2 * math.log(2 * iterations / beta)))


def _slope(loss: Loss) -> float:
    return loss.step * loss.norm + loss.penalty * loss.region.reach


def _rules(loss: Loss) -> tuple[str, ...]:
    return (
        "convex",
        *(("strongly-convex",) if loss.strong > 0 else ()),
        *(("smooth", "smooth-last") if loss.smooth is not None else ()),
    )


def _parts(loss: Loss, promise: Promise, n: int) -> tuple[float, float]:
    """(what the population adds to the excess, the chance that is left for the table's part).

    A row's loss, counted from the start, lies in an interval of some length. Two ways, and public numbers say
    which is less. By uniform convergence over the region: outright chances, which together stay within
    `outright`. By the transfer theorem: whether the claim fails is decided by theta, which is released, so the
    gap at theta is at most the promise's term; the table's excess and the gap at the population's optimum
    (Hoeffding) enter by their expected overshoot, at most their chance times their greatest value.
    """
    if promise.target == "table":
        return 0.0, promise.allowance
    region = loss.region
    length = 2 * (loss.step * loss.norm + loss.rounding) * region.radius
    chance = outright(promise) / 3
    best = length * math.sqrt(math.log(1 / chance) / (2 * n))
    uniform = (loss.complexity(n, chance) + best) * ROUND_UP
    greatest = 1 + loss.penalty * region.reach**2 / (2 * length)
    half = promise.allowance / greatest / 2
    best = length * math.sqrt(math.log(1 / half) / (2 * n))
    transfer = (length * (promise.population + promise.slack) + best) * ROUND_UP
    return (uniform, chance) if uniform <= transfer else (transfer, half)


def outright(promise: Promise) -> float:
    """The chance with which a claim may fail for reasons that need no transfer.

    Let a level's other claims have overshoots of (1-w) beta o in all, width h + o + alpha, and let this one
    fail with chance c. If the others failed with chance beta - c, then (beta-c)(o + alpha) < (1-w) beta o +
    alpha beta, which c (o + alpha) <= w beta o excludes. So all together fail with chance at most beta.
    """
    return promise.allowance / max(1.0, promise.slack + promise.population)


def _certified(loss: Loss, session: Session, promise: Promise, made: DescentPlan) -> tuple[float, float]:
    """The excess on the target, and on the table, of a plan under a promise."""
    beyond, chance = _parts(loss, promise, session._terms.rows)
    if made.selecting is None:
        table = table_excess(loss, made.rule, made.iterations, made.sigma, chance)[0]
    else:
        sure, expected = table_excess(loss, made.rule, made.iterations, made.sigma, chance / 2)
        if 2.0**-made.runs <= chance / 2:  # Markov: each run stays below twice its mean half of the time
            sure = min(sure, 2 * expected)
        lost = selection_loss(made.runs, sensitivity=2 * _SCORE, epsilon=made.selecting, beta=chance / 2)
        table = sure + (lost / session._terms.rows + 1.0) * _score_unit(loss) * ROUND_UP
    return table + beyond, table


def _score_unit(loss: Loss) -> float:
    return (loss.step * loss.norm + loss.rounding) * loss.region.radius / _SCORE


def _units(session: Session, rho: float | None, epsilon: float | None) -> int:
    """The budget of this query in units of the session's currency."""
    terms, currency = session._terms, session.currency
    if rho is None and epsilon is None:
        if terms.queries is None:
            raise InputError("say how exact: within=, rho= or epsilon=; or open the session with queries=")
        return terms.session.limit_units // terms.queries
    if (epsilon is None) == (currency == "pure"):
        raise InputError(
            f"this session counts {currency}: give {'epsilon' if currency == 'pure' else 'rho'}="
        )
    amount = positive("epsilon" if rho is None else "rho", epsilon if rho is None else rho)
    return math.floor(Fraction(amount) * UNITS * (2 if currency == "gdp" else 1))


class _Search:
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

    def least_excess(self, units: int) -> DescentPlan:
        """The best certificate for a budget."""
        selecting = None
        if self.runs > 1:
            share_of = Fraction(units, UNITS) * _SELECTING
            # epsilon^2/8 is the zCDP of a selection; in pure sessions epsilon itself is counted.
            rate = float(share_of) if self.session.currency == "pure" else math.sqrt(8 * float(share_of))
            selecting = round_down(rate)
            units -= math.ceil(units * _SELECTING)
        found = [
            self._made(mechanism, rule, T, noise, selecting)
            for mechanism in self.mechanisms
            for T in self._iterations(mechanism)
            if (noise := self._noise_for(mechanism, T, units)) is not None
            for rule in _rules(self.loss)
        ]
        if not found:
            raise BudgetError("this budget does not pay for a single step; give more, or ask for fewer steps")
        best = min(made.excess for made in found)
        last = [made for made in found if made.rule == "smooth-last" and made.excess <= _NEARLY * best]
        return min(last or found, key=lambda made: made.excess)

    def least_cost(self, within: float) -> DescentPlan:
        """The least cost for a certificate."""
        terms, shared = self.terms, self._shared()
        spent = total_rho(self.moment.table.units, terms)
        weight = share(terms.queries, shared + 1)
        for promise in promises(terms.target, self.n, 1 - terms.confidence, weight, spent):
            beyond, chance = _parts(self.loss, promise, self.n)
            if beyond >= within:
                break
            found = [
                self._made(mechanism, rule, T, noise, None, promise)
                for mechanism in self.mechanisms
                for T in self._iterations(mechanism)
                for rule in _rules(self.loss)
                if (noise := self._noise_within(mechanism, rule, T, within - beyond, chance)) is not None
            ]
            fits = [made for made in found if spent + self._table_rho(made.event) <= promise.most_rho]
            if fits:
                return min(fits, key=lambda made: made.cost)
        raise InputError(
            f"within={within:g} cannot be certified for the {terms.target} with {self.n:,} rows; ask for a "
            'greater one, give iterations=, shrink the region, or open a session with target="table"'
        )

    def _iterations(self, mechanism: str) -> list[int]:
        if self.steps is not None:
            return [self.steps]
        d = self.loss.dimension
        per_step = self.n * d if mechanism == "gaussian" else d * d * min(self.n, self.rows or self.n) / 16
        most = max(16, min(1 << 16, int(_WORK / per_step / self.runs)))
        return sorted({min(most, round(2 ** (k / 2))) for k in range(2 * most.bit_length() + 1)})

    def _noise_for(self, mechanism: str, iterations: int, units: int) -> Fraction | None:
        """The least noise that the budget pays for."""
        d = self.loss.dimension
        if mechanism == "votes":
            most = (self.rows or max(self.n, d)) // d
            count = _last(
                lambda m: self._cost(self._event(mechanism, iterations, Fraction(m))) <= units, most
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

        place = _last(lambda k: fits(150 - k), 400)
        return _variance(guess * 1.01 ** (150 - place)) if place and units > 0 else None

    def _noise_within(
        self, mechanism: str, rule: str, iterations: int, within: float, chance: float
    ) -> Fraction | None:
        """The most noise whose certificate on the table is at most `within`."""

        def holds(sigma: float) -> bool:
            return table_excess(self.loss, rule, iterations, sigma, chance)[0] <= within

        if not holds(0.0):
            return None
        slope = max(_slope(self.loss), 1e-300)
        place = _last(lambda k: holds(slope * 1.01 ** (k - 2000)), 2400)
        if not place:
            return None
        sigma = slope * 1.01 ** (place - 2000)
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
            spent = total_rho(self.moment.table.units, self.terms) + self._table_rho(event)
            weight = share(self.terms.queries, self._shared() + 1)
            promise = next(promises(self.terms.target, self.n, 1 - self.terms.confidence, weight, spent))
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
        )
        excess, table = _certified(self.loss, self.session, promise, made)
        return replace(made, excess=excess, on_table=table)

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

    def _shared(self) -> int:
        return (self.moment.session if self.terms.target == "table" else self.moment.table).answers

    def _cost(self, event: Event) -> int:
        return self.terms.session.cost(self._grouped(event))

    def _table_rho(self, event: Event) -> float:
        return total_rho(self.terms.table.cost(self._grouped(event)), self.terms)

    def _grouped(self, event: Event) -> Event:
        return Group(event, self.terms.rows_per_unit) if self.terms.rows_per_unit > 1 else event


def _variance(number: float) -> Fraction:
    return round_up(Fraction(max(number, 5.0)))


def _last(holds: Callable[[int], bool], most: int) -> int:
    """The greatest count in 1..most for which something that once fails keeps failing holds; 0 if none."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _blocks(session: Session, loss: Loss) -> Callable[[], Iterator[Any]]:
    """All rows, prepared; kept between steps if they fit."""

    def scan() -> Iterator[Any]:
        return (loss.prepare(block) for block in session._source.scan(loss.columns))

    if session._terms.rows * (loss.dimension + 2) > _CACHED:
        return scan
    kept: list[Any] = []

    def cached() -> Iterator[Any]:
        if not kept:
            kept.extend(scan())
        return iter(kept)

    return cached


def _steep(loss: Loss, made: DescentPlan, chance: float) -> float:
    """G': what the noisy gradients stay below, at the chance for which the plan is certified."""
    beta = chance if made.selecting is None else chance / 2
    return _slope(loss) + _noise_norm(loss.dimension, made.iterations, made.sigma, beta)


def _descend(
    session: Session, loss: Loss, made: DescentPlan, steep: float, blocks: Callable[[], Iterator[Any]]
) -> Vector:
    """One run: the averaged iterate of `iterations` projected steps."""
    region, n, T = loss.region, session._terms.rows, made.iterations
    theta, average = region.start, np.zeros(loss.dimension)
    for t in range(1, T + 1):
        if not made.rule.startswith("smooth"):
            average += (theta - average) / t
        if made.mechanism == "gaussian":
            total = np.sum([loss.total(theta, rows) for rows in blocks()], axis=0, dtype=np.int64)
            mean = np.asarray(add_gaussian(total, made.noise)) / n
        else:
            mean = _by_votes(session, loss, theta, int(made.noise))
        eta = _step_size(loss, made.rule, steep, t)
        theta = region.project(theta - eta * (mean * loss.step + loss.penalty * theta))
        if made.rule == "smooth":
            average += (theta - average) / t
    return theta if made.rule == "smooth-last" else average


def _step_size(loss: Loss, rule: str, steep: float, t: int) -> float:
    if rule == "convex":
        return loss.region.diameter / (steep * math.sqrt(t))
    return 2 / (loss.strong * t) if rule == "strongly-convex" else 1 / (loss.smooth or math.inf)


def _by_votes(session: Session, loss: Loss, theta: Vector, count: int) -> Vector:
    """The mean gradient in units, each coordinate by `count` fresh rows of its own."""
    d, span = loss.dimension, loss.span
    rows = loss.prepare(session._source.draw(loss.columns, count * d))
    heights = loss.units(theta, rows, np.repeat(np.arange(d), count)) + span
    ones = [votes(column, levels=2 * span) for column in heights.reshape(d, count)]
    return np.array([2 * span * unbiased(one, count, FLIP) - span for one in ones])


def _choose(loss: Loss, found: list[Vector], epsilon: Fraction, blocks: Callable[[], Iterator[Any]]) -> int:
    """The exponential mechanism on the losses, each row's counted from the start and put on a grid.

    One row moves a sum by at most 2 * 2^20 steps.
    """
    unit, start = _score_unit(loss), loss.region.start
    sums = np.zeros(len(found), dtype=np.int64)
    n = 0
    for rows in blocks():
        base = loss.values(start, rows)
        n += len(base)
        for place, theta in enumerate(found):
            steps = np.nan_to_num((loss.values(theta, rows) - base) / unit, nan=0.0)
            sums[place] += int(np.rint(np.clip(steps, -_SCORE, _SCORE)).astype(np.int64).sum())
    public = [round(n * loss.penalty / 2 * float(theta @ theta) / unit) for theta in found]
    return exponential(-(sums + np.array(public)), sensitivity=2 * _SCORE, epsilon=epsilon)
