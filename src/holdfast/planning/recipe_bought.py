"""What a budget buys: the least noise that costs no more."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

from holdfast.errors import InputError
from holdfast.ledger import Moment
from holdfast.mechanisms.values import round_down, round_up
from holdfast.planning.plain_answer import spare_units
from holdfast.planning.plan import SELECTED, Recipe
from holdfast.planning.plan_line import could_be
from holdfast.planning.recipe_event import selections
from holdfast.planning.recipe_search import LEAST_NOISE, LEAST_SCALE
from holdfast.planning.request import Request
from holdfast.planning.terms import Terms
from holdfast.privacy.filter import UNITS
from holdfast.privacy.rule import range_of_gdp
from holdfast.query.statistic import Workload


def amount_of(request: Request, moment: Moment, terms: Terms) -> tuple[float, str]:
    """The budget for one answer: as the request says, or an equal share of what the session's plan leaves."""
    if request.epsilon is not None:
        return request.epsilon, "pure"
    if request.rho is not None:
        # A session that counts mu squared counts twice as much of it.
        exactly = terms.session.currency == "gdp"
        return (min(2 * request.rho, sys.float_info.max), "gdp") if exactly else (request.rho, "zcdp")
    if terms.queries is None:
        raise InputError(
            "expected how exact, got nothing; say within= (accuracy), rho= or epsilon= (budget); or "
            "open the session with "
            "queries= to share its budget equally"
        )
    units = spare_units(moment, terms)
    if units <= 0:
        raise InputError(
            "cannot plan: the session's budget divided by its queries is less than a billionth; ask for fewer"
            f"{could_be(terms, moment)}"
        )
    return units / UNITS * (1 - 2.0**-20), terms.session.currency


def recipe_bought(mechanism: str, totals: Workload, amount: float, currency: str, terms: Terms) -> Recipe:
    """The least noise that costs at most `amount`."""
    unit, exact, rows = terms.rows_per_unit, Fraction(amount), terms.rows
    sensitivity = totals.sensitivity()
    if mechanism == "gaussian":
        squared = Fraction(sensitivity.l2_squared * unit**2)
        variance = round_up(squared / exact) + 4 if currency == "gdp" else round_up(squared / (2 * exact))
        # So little noise moves nothing; less would only leave the floats.
        return Recipe(mechanism, max(variance, LEAST_NOISE), rows)
    if mechanism == "logistic" and currency == "zcdp":
        # As Gaussian noise of variance 2 scale^2, or by the pure epsilon, whichever is less noise.
        smooth = math.sqrt(sensitivity.l2_squared * unit**2 / exact) / 2 * (1 + 2.0**-40)
        pure = sensitivity.l1 * unit / round_down(epsilon_of_rho(amount))
        return Recipe(mechanism, max(round_up(min(Fraction(smooth), pure)), LEAST_SCALE), rows)
    if currency == "pure":
        epsilon = exact
    elif currency == "gdp":
        # Each lies in a range: of epsilon for a selection, of twice as much for the others (Theorem 290).
        many, ranged = (selections(totals), 1) if mechanism in SELECTED else (1, 2)
        epsilon = round_down(range_of_gdp(exact / many) / ranged) * many
    elif mechanism in SELECTED:
        epsilon = round_down(2 * math.sqrt(2 * (amount / selections(totals)))) * selections(totals)
    else:
        epsilon = round_down(epsilon_of_rho(amount))
    if mechanism in ("laplace", "logistic"):
        scale = round_up(sensitivity.l1 * unit / epsilon)
        return Recipe(mechanism, max(scale, LEAST_SCALE) if mechanism == "logistic" else scale, rows)
    if mechanism in SELECTED:
        # A selection of bounded range eps costs eps (pure) or eps^2/8 (zCDP); groups multiply eps.
        each = round_down(float(epsilon / selections(totals) / unit) * (1 - 2.0**-40))
        return Recipe(mechanism, each, rows)
    raise InputError(f"cannot plan from a budget: {mechanism} is planned by accuracy; give within=")


def epsilon_of_rho(rho: float) -> float:
    """The largest epsilon with epsilon*tanh(epsilon/2) <= rho, from below; positive where rho is.

    It is at most rho + 2 sqrt(rho), since tanh(y) >= y/(1+y). That bound shrinks with rho, so that halving it
    reaches every epsilon.
    """
    low, high = 0.0, rho + 2 * math.sqrt(rho)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * math.tanh(middle / 2) <= rho else (low, middle)
    return low * (1 - 2.0**-40)
