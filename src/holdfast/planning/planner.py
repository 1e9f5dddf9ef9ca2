"""From a question and a wish to a plan. Public numbers in, a plan out."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from holdfast.errors import InputError, MechanismError
from holdfast.ledger import Charge, Moment, Precondition
from holdfast.mechanisms.accuracy import most_noise
from holdfast.mechanisms.values import round_down, round_up
from holdfast.mechanisms.votes import FLIP
from holdfast.noise.law import LARGEST_SCALE
from holdfast.planning.mean import aims, when_it_holds
from holdfast.planning.plan import Alternative, Plan, Recipe
from holdfast.planning.promise import Promise, answered, next_promises, total_rho
from holdfast.planning.recipe_event import event_of, pure_epsilon, selections
from holdfast.planning.request import Request
from holdfast.planning.terms import Terms
from holdfast.planning.width import range_length, spans, stated, widths, wished
from holdfast.privacy.event import Group
from holdfast.privacy.filter import UNITS
from holdfast.privacy.rule import zcdp
from holdfast.query.statistic import Statistic, Workload, workload

_HALVED = 30
"""How often a budget is halved in search of a narrower answer."""

PAYS = 32
"""Sampling pays when it reads at most one row in this many; a scan of the rest is as quick."""

NEARLY_EQUAL = 2.5
"""Costs within this factor count as near-equal; then the plan that reads the fewest rows wins."""

_MOST_NOISE = {
    "gaussian": Fraction(LARGEST_SCALE**2),
    "laplace": Fraction(LARGEST_SCALE),
    "subsampled-laplace": Fraction(LARGEST_SCALE),
}
"""The largest variance or scale that the samplers take; votes take any number."""

_LEAST_EPSILON = Fraction(1, LARGEST_SCALE)
"""A selection with less tells nothing, and its width in rows would leave the floats."""

_LEAST_VARIANCE = 4
"""Gaussian-only budgets count noise above this variance (theory 2.5)."""


def plan(statistic: Statistic, request: Request, moment: Moment, terms: Terms) -> Plan:
    """The least costly plan that does what the request asks; among near-equal costs, the fewest rows.

    A mean by groups keeps `within` in groups of an equal share of the rows, or of the fewest for which that can be
    certified; the plan says of how many (`Plan.qualifying`).
    Raises before anything is charged: InputError, MechanismError.
    """
    totals = workload(statistic, terms.schema, terms.rows)
    if terms.fixed is not None:
        return _fixed_plan(totals, request, terms)
    _refuse_vacuous(totals, request, terms)
    mechanisms = mechanisms_for(totals, request, terms)
    for aim in aims(totals, terms.rows):
        tried = (_plan_by(mechanism, totals, request, moment, terms, aim) for mechanism in mechanisms)
        found = [made for made in tried if made is not None]
        if found:
            break
    else:
        raise InputError(_impossible(totals, request, moment, terms))
    best = _best(found, terms)
    return replace(best, advice=_advice(best, totals, request, moment, terms))


def _refuse_vacuous(totals: Workload, request: Request, terms: Terms) -> None:
    """InputError for a width that every answer has, before a row is read."""
    length, kind = range_length(totals, terms.rows), totals.statistic.kind
    if not length > 0:
        raise InputError(
            f"cannot plan: this {kind} is the same number whatever the rows are; there is nothing to ask"
        )
    if request.within is not None and request.within >= length:
        what = (
            "every value of the column is within 1 of every rank"
            if kind == "quantile"
            else (f"no two values of this {kind} are more than {length:g} apart, whatever the rows are")
        )
        raise InputError(
            f"cannot plan: within={request.within:g} would tell nothing: {what}; ask for less than {length:g}"
        )


def _advice(best: Plan, totals: Workload, request: Request, moment: Moment, terms: Terms) -> str:
    """Words for whoever pays so much for one answer that the population's part outweighs what it gains."""
    given = next((name for name in ("rho", "epsilon") if getattr(request, name) is not None), None)
    if given is None or terms.target != "population":
        return ""
    less = replace(request, **{given: getattr(request, given) / 4})
    try:
        made = _plan_by(best.mechanism, totals, less, moment, terms)
    except InputError:
        return ""
    if made is None or made.width >= best.width:
        return ""
    return (
        f"A quarter of that budget would be within about {made.width:.3g}: what is spent on the table widens every "
        "interval for the population."
    )


def finish(
    totals: Workload, recipe: Recipe, promise: Promise, terms: Terms, within: float | None = None
) -> Plan:
    """Everything that follows from the choice of a recipe and a promise, and from the half-width asked for.

    InputError, before anything is charged, if its noise is larger than can be drawn.
    """
    for span in spans(totals) if recipe.per_span else (1,):
        refuse_undrawable(recipe.mechanism, recipe.noise * span**2)
    event = event_of(totals, recipe, terms.rows)
    if terms.rows_per_unit > 1:
        event = Group(event, terms.rows_per_unit)
    within = None if totals.statistic.kind == "quantile" else within or wished(totals, terms)
    planned, qualifying = stated(totals, recipe, promise, terms, within)
    scope = ""
    if totals.statistic.kind == "mean":
        scope = when_it_holds(totals, terms.rows, within, qualifying)
    elif totals.statistic.kind == "quantile":
        scope = "in rank, as a fraction of the rows"
    elif terms.fixed is not None and terms.fixed.odds:
        scope = "for a frequency of one half; nearer for rare and for frequent events"
    return Plan(
        statistic=totals.statistic,
        recipe=recipe,
        promise=promise,
        event=event,
        charge=Charge(terms.session.cost(event), terms.table.cost(event), _queries(totals, terms)),
        rho=zcdp(event).rho,
        epsilon=pure_epsilon(event),
        widths=planned,
        rows=terms.rows,
        confidence=terms.confidence,
        scope=scope,
        within=within,
        qualifying=qualifying,
    )


def refuse_undrawable(mechanism: str, noise: Fraction) -> None:
    """InputError if the samplers do not reach so far, or a selection would tell nothing."""
    if mechanism == "exponential" and noise < _LEAST_EPSILON:
        raise InputError(
            f"cannot plan: so little budget makes each selection's epsilon less than "
            f"2^-{LARGEST_SCALE.bit_length() - 1}, "
            "which tells nothing; give more"
        )
    if noise > _MOST_NOISE.get(mechanism, math.inf):
        raise InputError(
            f"cannot plan: so little budget needs noise beyond 2^{LARGEST_SCALE.bit_length() - 1} "
            "steps, which cannot be drawn; "
            "give more, or have the column declared in a narrower range or coarser steps"
        )


def affordable(statistic: Statistic, moment: Moment, terms: Terms, remaining: int) -> float | None:
    """The tightest half-width that `remaining` units of the session's budget, or a part of them, can still buy.

    For the population a part may buy more than the whole: what is spent widens every interval.
    """
    if remaining <= 0 or terms.fixed is not None:
        return None
    totals = workload(statistic, terms.schema, terms.rows)
    # Asking for the width found here rounds its noise once more, hence the margin.
    amount = remaining / UNITS * (1 - 1e-5)
    parts = (amount / 2**halved for halved in range(_HALVED if terms.target == "population" else 1))
    found = [width for part in parts if (width := _width_for(part, totals, moment, terms)) is not None]
    least = min(found, default=math.inf)
    return least if least < range_length(totals, terms.rows) else None


def _width_for(amount: float, totals: Workload, moment: Moment, terms: Terms) -> float | None:
    """The half-width that so much of the session's currency buys."""
    try:
        mechanism = mechanisms_for(totals, Request(), terms)[0]
        made = _promised(
            totals, _bought(mechanism, totals, amount, terms.session.currency, terms), moment, terms
        )
    except InputError:
        return None
    return made.width if made is not None and math.isfinite(made.width) else None


def mechanisms_for(totals: Workload, request: Request, terms: Terms) -> tuple[str, ...]:
    """The mechanisms to try; an explicit choice or an explicit budget leaves one."""
    currency, kind = terms.session.currency, totals.statistic.kind
    if kind == "quantile":
        if currency == "gdp":
            raise MechanismError(
                "a quantile is a selection, and this session is Gaussian-only; open it without only= "
                "or ask for a histogram"
            )
        allowed: tuple[str, ...] = ("exponential",)
        default = allowed
    else:
        allowed = tuple(m for m in terms.mechanisms if _answers(m, totals))
        default = allowed
        if request.epsilon is not None:
            default = ("laplace",)
        elif request.rho is not None:
            default = ("gaussian",)
        elif request.within is None:
            default = allowed[:1]
    if request.mechanism is not None:
        default = (request.mechanism,)
    for mechanism in default:
        if mechanism not in allowed:
            raise MechanismError(
                f"{mechanism!r} cannot be used here: {_reason(currency)}; use {' or '.join(allowed)}"
            )
    return default


def _answers(mechanism: str, totals: Workload) -> bool:
    """Sampling answers one number at a time: a vote knows nothing of the other groups."""
    return mechanism in ("gaussian", "laplace") or totals.statistic.by is None


def _reason(currency: str) -> str:
    return {
        "pure": "this session is pure (it was opened without delta), so only pure mechanisms answer",
        "gdp": "this session is Gaussian-only",
        "zcdp": "that mechanism does not answer this statistic",
    }[currency]


def _plan_by(
    mechanism: str, totals: Workload, request: Request, moment: Moment, terms: Terms, aim: int | None = None
) -> Plan | None:
    """The best plan with one mechanism, or None if it cannot do it. A mean is to be within if `aim` rows qualify
    (None: all)."""
    if request.within is None:
        amount, currency = amount_of(request, terms)
        return _promised(totals, _bought(mechanism, totals, amount, currency, terms), moment, terms)
    for promise in next_promises(moment, terms):
        recipe = _within(mechanism, totals, request, promise, terms, aim)
        if recipe is None:
            return None  # a later promise is wider still
        made = finish(totals, recipe, promise, terms, request.within)
        if _within_level(made, promise, moment, terms) and made.width <= request.within:
            return made
    return None


def _promised(totals: Workload, recipe: Recipe, moment: Moment, terms: Terms) -> Plan | None:
    """The plan for a recipe under the narrowest promise that its cost allows."""
    for promise in next_promises(moment, terms):
        made = finish(totals, recipe, promise, terms)
        if _within_level(made, promise, moment, terms):
            return made
    return None


def _queries(totals: Workload, terms: Terms) -> int:
    """How many queries an answer counts for. The numbers of a vector share the chance of one, except under
    the theorems for one fixed noise, which count every number."""
    return totals.size if terms.fixed is not None else 1


def holds(made: Plan, moment: Moment, terms: Terms) -> Precondition:
    """How far the ledger may move before this plan would have been another: to the end of its epoch, and of
    its level."""
    currency = terms.table.currency
    if terms.fixed is not None:
        return Precondition(session_answers=terms.queries, alone=True, currency=currency)
    first = answered(moment, terms) + 1
    last = terms.queries if terms.queries is not None else 2 ** first.bit_length() - 1
    if terms.target == "table":
        return Precondition(session_answers=last, currency=currency)
    return Precondition(
        table_answers=last, table_units=units_of_rho(made.promise.most_rho, terms), currency=currency
    )


def units_of_rho(rho: float, terms: Terms) -> int:
    """The most units of the table's currency whose loss is at most `rho`."""
    if math.isinf(rho):
        return 1 << 100
    if terms.table.currency == "zcdp":
        return math.floor(Fraction(rho) * UNITS)
    return math.floor(Fraction(_epsilon_of_rho(rho)) * UNITS)


def _within_level(made: Plan, promise: Promise, moment: Moment, terms: Terms) -> bool:
    """Whether the charge leaves the table's total at the promise's level: in units, as the ledger will check."""
    return moment.table.units + made.charge.table <= units_of_rho(promise.most_rho, terms)


def amount_of(request: Request, terms: Terms) -> tuple[float, str]:
    """The budget for one answer: as the request says, or an equal share of the session's."""
    if request.epsilon is not None:
        return request.epsilon, "pure"
    if request.rho is not None:
        return request.rho, "zcdp"
    if terms.queries is None:
        raise InputError(
            "expected how exact, got nothing; say within= (accuracy), rho= or epsilon= (budget); or "
            "open the session with "
            "queries= to share its budget equally"
        )
    units = terms.session.limit_units // terms.queries
    if units <= 0:
        raise InputError(
            "cannot plan: the session's budget divided by its queries is less than a billionth; ask for fewer"
        )
    return units / UNITS * (1 - 2.0**-20), terms.session.currency


def _bought(mechanism: str, totals: Workload, amount: float, currency: str, terms: Terms) -> Recipe:
    """The least noise that costs at most `amount`."""
    unit, exact, rows = terms.rows_per_unit, Fraction(amount), terms.rows
    sensitivity = totals.sensitivity()
    if mechanism == "gaussian":
        squared = Fraction(sensitivity.l2_squared * unit**2)
        variance = round_up(squared / exact) + 4 if currency == "gdp" else round_up(squared / (2 * exact))
        if not _counts(mechanism, variance, terms):
            raise InputError(
                f"cannot plan: so much budget leaves noise of variance at most {_LEAST_VARIANCE}, which "
                "a Gaussian-only budget "
                "cannot count; give less"
            )
        return Recipe(mechanism, variance, rows)
    if currency == "pure":
        epsilon = exact
    elif mechanism == "exponential":
        epsilon = round_down(2 * math.sqrt(2 * (amount / selections(totals)))) * selections(totals)
    else:
        epsilon = round_down(_epsilon_of_rho(amount))
    if mechanism == "laplace":
        return Recipe(mechanism, round_up(sensitivity.l1 * unit / epsilon), rows)
    if mechanism == "exponential":
        # A selection of bounded range eps costs eps (pure) or eps^2/8 (zCDP); groups multiply eps.
        each = round_down(float(epsilon / selections(totals) / unit) * (1 - 2.0**-40))
        return Recipe(mechanism, each, rows)
    raise InputError(f"cannot plan from a budget: {mechanism} is planned by accuracy; give within=")


def _counts(mechanism: str, noise: Fraction, terms: Terms) -> bool:
    """Whether the budgets of the session and of the table have a theorem for so little noise."""
    gaussian_only = "gdp" in (terms.session.currency, terms.table.currency)
    return not gaussian_only or mechanism != "gaussian" or noise > _LEAST_VARIANCE


def _epsilon_of_rho(rho: float) -> float:
    """The largest epsilon with epsilon*tanh(epsilon/2) <= rho, from below; positive where rho is.

    It is at most rho + 2 sqrt(rho), since tanh(y) >= y/(1+y). That bound shrinks with rho, so that halving it
    reaches every epsilon.
    """
    low, high = 0.0, rho + 2 * math.sqrt(rho)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * math.tanh(middle / 2) <= rho else (low, middle)
    return low * (1 - 2.0**-40)


def _within(
    mechanism: str, totals: Workload, request: Request, promise: Promise, terms: Terms, aim: int | None
) -> Recipe | None:
    """The cheapest recipe that is certain to be within; None if there is none."""

    def wide(recipe: Recipe) -> float:
        return widths(totals, recipe, promise, terms.rows, aim).whole

    within = request.within
    assert within is not None
    cap = terms.rows if request.rows is None else min(request.rows, terms.rows)
    if mechanism in ("gaussian", "laplace"):
        if cap < terms.rows:
            return None
        largest = Recipe(mechanism, _MOST_NOISE[mechanism], terms.rows)
        if wide(largest) <= within:
            return largest
        start = 4.0 * spans(totals)[0] ** (2 if mechanism == "gaussian" else 1)
        noise = most_noise(lambda noise: wide(Recipe(mechanism, noise, terms.rows)), within, start)
        recipe = Recipe(mechanism, noise, terms.rows)
        fits = noise > 0 and wide(recipe) <= within
        return recipe if fits and _counts(mechanism, noise, terms) else None
    if mechanism == "exponential":
        least = Recipe(mechanism, _LEAST_EPSILON, terms.rows)
        if wide(least) <= within:
            return least
        rate = most_noise(lambda inverse: wide(Recipe(mechanism, 1 / inverse, terms.rows)), within, 1.0)
        recipe = Recipe(mechanism, round_up(1 / rate) if rate else Fraction(10**6), terms.rows)
        return recipe if wide(recipe) <= within else None
    if mechanism == "votes":
        rounds = len(totals.measurements)

        def voting(count: int) -> Recipe:
            return Recipe(mechanism, Fraction(count), count * rounds, FLIP)

        count = _fewest(lambda m: wide(voting(m)) <= within, cap // rounds)
        return None if count is None else voting(count)
    return _subsample(totals, within, promise, cap, terms, wide)


def _subsample(
    totals: Workload, within: float, promise: Promise, cap: int, terms: Terms, wide: Callable[[Recipe], float]
) -> Recipe | None:
    """Rows without replacement: half again as many as a noiseless sample would need, then Laplace noise."""
    if len(totals.measurements) > 1:
        return None
    sensitivity = totals.sensitivity().l1

    def sampling(count: int, scale: Fraction) -> Recipe:
        return Recipe("subsampled-laplace", scale, count)

    least = _fewest(lambda m: wide(sampling(m, Fraction(1, 1000))) <= 0.6 * within, cap)
    if least is None:
        return None
    largest = sampling(least, _MOST_NOISE["subsampled-laplace"])
    if wide(largest) <= within:
        return largest
    scale = most_noise(lambda scale: wide(sampling(least, scale)), within, 4.0 * max(1, sensitivity))
    recipe = sampling(least, scale)
    return recipe if scale > 0 and wide(recipe) <= within else None


def _fewest(holds: Callable[[int], bool], most: int) -> int | None:
    """The least count in 1..most for which something monotone holds."""
    if most < 1 or not holds(most):
        return None
    low, high = 0, most
    while high - low > max(1, high >> 12):
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _best(found: list[Plan], terms: Terms) -> Plan:
    """The least cost; among near-equal costs the fewest rows, if sampling pays at all."""
    cheapest = min(found, key=lambda made: made.charge.session)
    near = [
        made
        for made in found
        if made.cost <= NEARLY_EQUAL * max(cheapest.cost, 1 / UNITS)
        and (made.rows_read * PAYS <= terms.rows or made is cheapest)
    ]
    chosen = min(near, key=lambda made: made.rows_read)
    others = tuple(
        Alternative(made.mechanism, made.rho, made.rows_read) for made in found if made is not chosen
    )
    return replace(chosen, alternatives=others)


def _fixed_plan(totals: Workload, request: Request, terms: Terms) -> Plan:
    """In a session planned for validity every answer has the same recipe."""
    fixed = terms.fixed
    assert fixed is not None
    if any(getattr(request, name) is not None for name in ("within", "rho", "epsilon", "mechanism", "rows")):
        raise InputError(
            "cannot plan again: this session was planned for all its answers at once; ask without "
            "within=, rho=, epsilon=, "
            "mechanism= or rows="
        )
    if totals.statistic.kind == "quantile" or not _answers(fixed.mechanism, totals):
        raise MechanismError(
            f"this session answers by {fixed.mechanism} only, one number at a time; open another for this"
        )
    if fixed.odds and totals.statistic.kind == "mean":
        raise MechanismError(
            "an odds interval is for a fraction, a count or a sum; open another session for a mean"
        )
    if fixed.mechanism == "votes":
        count = int(fixed.noise)
        recipe = Recipe("votes", fixed.noise, count * len(totals.measurements), fixed.flip)
    else:
        recipe = Recipe("gaussian", fixed.noise, terms.rows, per_span=True)
    return finish(totals, recipe, Promise(terms.target, 0.0), terms)


def _impossible(totals: Workload, request: Request, moment: Moment, terms: Terms) -> str:
    """Says what could be certified instead."""
    nearest = None
    if request.within is not None:
        mechanism = mechanisms_for(totals, Request(within=request.within), terms)[0]

        def wider(times: int) -> Request:
            return Request(within=min(float(request.within or 0) * 1.25**times, sys.float_info.max))

        times = _fewest(
            lambda times: _plan_by(mechanism, totals, wider(times), moment, terms) is not None, 300
        )
        nearest = None if times is None else wider(times).within
        if nearest is not None and nearest >= range_length(totals, terms.rows):
            nearest = None
    what = f"within={request.within:g}" if request.within is not None else "this request"
    advice = "no width can be certified" if nearest is None else f"about within={nearest:.3g} can be"
    spent = total_rho(moment.table.units, terms) if terms.target == "population" else 0.0
    after = f" after answers of rho {spent:.2g} in all on this table" if spent else ""
    return f"{what} cannot be certified for the {terms.target} with {terms.rows:,} rows{after}; {advice}"
