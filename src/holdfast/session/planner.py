"""From a question and a wish to a plan. Public numbers in, a plan out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from holdfast.errors import BudgetError, InputError, MechanismError, NoRuleError
from holdfast.ledger import Charge
from holdfast.mechanisms.gaussian import gaussian_half_width, gaussian_variance_within
from holdfast.mechanisms.laplace import laplace_half_width, laplace_scale_within
from holdfast.mechanisms.values import round_down, round_up
from holdfast.privacy.event import BoundedRange, Event, Gaussian, Group, Laplace, Repeat
from holdfast.privacy.filter import UNITS, Filter
from holdfast.privacy.rule import pure, zcdp
from holdfast.query.schema import Schema
from holdfast.query.statistic import Statistic, Workload, workload
from holdfast.session.plan import Plan
from holdfast.session.request import Request

SELECTIONS = 3
"""A quantile is three selections: the value, and the two ends of its interval."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The public facts that a plan rests on."""

    schema: Schema
    rows: int
    rows_per_unit: int
    session: Filter
    table: Filter
    queries: int | None
    confidence: float
    target: str

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The additive mechanisms that the session's currency can count, the preferred one first."""
        return {"pure": ("laplace",), "zcdp": ("gaussian", "laplace"), "gdp": ("gaussian",)}[
            self.session.currency
        ]


def plan(statistic: Statistic, request: Request, beta: float, terms: Terms) -> Plan:
    """The least costly plan that does what the request asks.

    Raises before anything is charged: InputError, MechanismError.
    """
    mechanism = _mechanism(statistic, request, terms)
    totals = workload(statistic, terms.schema, terms.rows)
    if request.within is not None:
        noise = _noise_within(mechanism, totals, request.within, beta, terms)
    else:
        noise = _noise_for_budget(mechanism, totals, request, terms)
    return finish(statistic, mechanism, noise, beta, terms)


def finish(statistic: Statistic, mechanism: str, noise: Fraction, beta: float, terms: Terms) -> Plan:
    """Everything that follows from the choice of mechanism and noise."""
    totals = workload(statistic, terms.schema, terms.rows)
    event = _event(mechanism, totals, noise)
    if terms.rows_per_unit > 1:
        event = Group(event, terms.rows_per_unit)
    half_width, width, scope = _width(mechanism, totals, noise, beta, terms.rows)
    return Plan(
        statistic=statistic,
        mechanism=mechanism,
        noise_parameter=noise,
        beta=beta,
        event=event,
        charge=Charge(terms.session.cost(event), terms.table.cost(event)),
        rho=zcdp(event).rho,
        epsilon=_pure_epsilon(event),
        rows_read=terms.rows,
        rows=terms.rows,
        half_width=half_width,
        noise=width,
        sampling=0.0,
        population=0.0,
        confidence=terms.confidence,
        target=terms.target,
        currency=terms.session.currency,
        scope=scope,
    )


def affordable(statistic: Statistic, beta: float, terms: Terms, remaining: int) -> float | None:
    """The tightest half-width that `remaining` units of the session's budget can still buy."""
    if remaining <= 0:
        return None
    amount = remaining / UNITS * (1 - 1e-5)  # asking for the width found here rounds its noise once more
    mechanism = _mechanism(statistic, Request(), terms)
    totals = workload(statistic, terms.schema, terms.rows)
    try:
        noise = _noise_of_amount(mechanism, totals, amount, terms)
        return finish(statistic, mechanism, noise, beta, terms).width
    except (InputError, BudgetError):
        return None


def _mechanism(statistic: Statistic, request: Request, terms: Terms) -> str:
    currency = terms.session.currency
    if statistic.kind == "quantile":
        if currency == "gdp":
            raise MechanismError(
                "a quantile is a selection, and this session is Gaussian-only; open it without only= "
                "or ask for a histogram"
            )
        allowed: tuple[str, ...] = ("exponential",)
    else:
        allowed = terms.mechanisms
    if request.epsilon is not None and statistic.kind != "quantile":
        wanted = request.mechanism or "laplace"
    elif request.rho is not None and statistic.kind != "quantile":
        wanted = request.mechanism or "gaussian"
    else:
        wanted = request.mechanism or allowed[0]
    if wanted not in allowed:
        if currency == "pure":
            advice = "this session is pure (it was opened without delta), so only pure mechanisms answer"
        elif currency == "gdp":
            advice = "this session is Gaussian-only"
        else:
            advice = "that mechanism does not answer this statistic"
        raise MechanismError(f"{wanted!r} cannot be used here: {advice}; use {' or '.join(allowed)}")
    return wanted


def _noise_for_budget(mechanism: str, totals: Workload, request: Request, terms: Terms) -> Fraction:
    """The noise that an explicit or an equal share of the budget buys."""
    amount = request.epsilon if request.epsilon is not None else request.rho
    if amount is None:
        if terms.queries is None:
            raise InputError(
                "say how exact: within= (accuracy), rho= or epsilon= (budget); or open the session with "
                "queries= to share its budget equally"
            )
        share = terms.session.limit_units // terms.queries
        if share <= 0:
            raise InputError("the session's budget divided by its queries is less than a billionth; ask for fewer")
        return _noise_of_amount(mechanism, totals, share / UNITS * (1 - 2.0**-20), terms)
    currency = "pure" if request.epsilon is not None else "zcdp"
    return _noise_of_amount(mechanism, totals, amount, terms, currency)


def _noise_of_amount(
    mechanism: str, totals: Workload, amount: float, terms: Terms, currency: str | None = None
) -> Fraction:
    """The least noise that costs at most `amount` in a currency (the session's, unless named)."""
    currency = currency or terms.session.currency
    unit, exact = terms.rows_per_unit, Fraction(amount)
    sensitivity = totals.sensitivity()
    if mechanism == "laplace":
        epsilon = exact if currency == "pure" else round_down(_epsilon_of_rho(amount))
        return round_up(Fraction(sensitivity.l1 * unit) / epsilon)
    if mechanism == "exponential":
        # A selection of bounded range eps costs eps (pure) or eps^2/8 (zCDP); groups multiply eps.
        count = _selections(totals.statistic)
        each = exact / count if currency == "pure" else round_down(math.sqrt(8 * amount / count))
        return round_down(float(each / unit) * (1 - 2.0**-40))
    if currency == "gdp":
        return round_up(Fraction(sensitivity.l2_squared * unit**2) / exact) + 4
    return round_up(Fraction(sensitivity.l2_squared * unit**2) / (2 * exact))


def _epsilon_of_rho(rho: float) -> float:
    """The largest epsilon with epsilon*tanh(epsilon/2) <= rho, from below."""
    low, high = 0.0, rho + 2 * math.sqrt(rho) + 1
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * math.tanh(middle / 2) <= rho else (low, middle)
    return low * (1 - 2.0**-40)


def _noise_within(mechanism: str, totals: Workload, within: float, beta: float, terms: Terms) -> Fraction:
    """The most noise whose interval is at most `within` wide to each side."""
    if mechanism == "exponential":
        distance = math.floor(within * terms.rows / 2)
        if distance < 1:
            raise InputError(_too_narrow(within, 2 / terms.rows))
        return round_up(Fraction(2 * math.log(2 * totals.size / beta) / distance * (1 + 2.0**-40)))
    spread = totals.unit if totals.statistic.kind != "mean" else 2 * totals.unit / terms.rows
    half_width = math.floor((within - totals.rounding) / spread * (1 + 2.0**-40))
    while half_width >= 1 and _readable(totals, half_width, terms.rows) > within:
        half_width -= max(1, half_width >> 10)
    if half_width < 1:
        raise InputError(_too_narrow(within, totals.rounding + 2 * spread))
    each = beta / totals.size
    if mechanism == "laplace":
        return laplace_scale_within(half_width, each)
    return gaussian_variance_within(half_width, each)


def _too_narrow(within: float, least: float) -> str:
    return f"within={within:g} is finer than this table can show; ask for {least:.3g} or more"


def _event(mechanism: str, totals: Workload, noise: Fraction) -> Event:
    if mechanism == "exponential":
        return Repeat(BoundedRange(noise), _selections(totals.statistic))
    sensitivity = totals.sensitivity()
    if mechanism == "laplace":
        return Laplace(sensitivity.l1, noise)
    return Gaussian(sensitivity.l2_squared, noise)


def _selections(statistic: Statistic) -> int:
    """How many selections a row can touch: replacing it changes one group, or two if there are several."""
    return SELECTIONS if statistic.by is None else 2 * SELECTIONS


def _width(
    mechanism: str, totals: Workload, noise: Fraction, beta: float, rows: int
) -> tuple[int, float, str]:
    """The half-width in units of the totals, in the statistic's own scale, and what that scale is."""
    if mechanism == "exponential":
        # Each end misses by more than this many rows with chance at most beta/2 (Theorem 0.2 of the lecture).
        distance = math.ceil(2 * math.log(2 * totals.size / beta) / noise * (1 + 2.0**-40))
        return distance, 2 * distance / rows, "in rank, as a fraction of the rows"
    each = beta / totals.size
    if mechanism == "laplace":
        half_width = laplace_half_width(noise, each)
    else:
        half_width = gaussian_half_width(noise, each)
    scope = ""
    if totals.statistic.kind == "mean":
        scope = "if every row qualifies; wider in proportion when fewer do"
    return half_width, _readable(totals, half_width, rows), scope


def _readable(totals: Workload, half_width: int, rows: int) -> float:
    """The half-width in the statistic's own scale; for a mean, when every row qualifies."""
    if totals.statistic.kind != "mean":
        return half_width * totals.unit + totals.rounding
    weight = totals.measurements[1].weight
    least = rows - half_width / weight
    if least <= 0:
        return math.inf
    return 2 * half_width * totals.unit / least + totals.rounding


def _pure_epsilon(event: Event) -> float | None:
    try:
        return pure(event).epsilon
    except NoRuleError:
        return None
