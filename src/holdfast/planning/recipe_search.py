"""The cheapest recipe of one mechanism that keeps a width; which recipes can be drawn and counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from holdfast.errors import InputError
from holdfast.mechanisms.accuracy import most_noise
from holdfast.mechanisms.values import round_up
from holdfast.mechanisms.votes import FLIP
from holdfast.noise.law import LARGEST_SCALE
from holdfast.planning.plan import ADDED, SELECTED, Recipe
from holdfast.planning.promise import Promise
from holdfast.planning.terms import Terms
from holdfast.planning.width import spans, widths
from holdfast.query.statistic import Workload
from holdfast.validity.search import least

_MOST_NOISE = {
    "gaussian": Fraction(LARGEST_SCALE**2),
    "laplace": Fraction(LARGEST_SCALE),
    "logistic": Fraction(LARGEST_SCALE),
    "subsampled-laplace": Fraction(LARGEST_SCALE),
}
"""The largest variance or scale that the samplers take; votes take any number."""

_LEAST_EPSILON = Fraction(1, LARGEST_SCALE)
"""A selection with less tells nothing, and its width in rows would leave the floats."""

PAYS = 32
"""Sampling pays when it reads at most one row in this many; a scan of the rest is as quick."""

LEAST_VARIANCE = 4
"""Sessions that count mu squared take noise above this variance (docs/theorems.md, Lemma 7)."""

LEAST_NOISE = Fraction(1, 2**30)
"""The least variance of Gaussian noise that is drawn."""

LEAST_SCALE = Fraction(1, 2**15)
"""The least scale of logistic noise that is drawn."""


def refuse_undrawable(mechanism: str, noise: Fraction) -> None:
    """InputError if the samplers do not reach so far, or a selection would tell nothing."""
    if mechanism in SELECTED and noise < _LEAST_EPSILON:
        raise InputError(
            f"cannot plan: so little budget makes each selection's epsilon less than "
            f"2^-{LARGEST_SCALE.bit_length() - 1}, which tells nothing; give more"
        )
    if noise > _MOST_NOISE.get(mechanism, math.inf):
        raise InputError(
            f"cannot plan: so little budget needs noise beyond 2^{LARGEST_SCALE.bit_length() - 1} steps, which cannot "
            "be drawn; give more, or have the column declared in a narrower range or coarser steps"
        )


def is_counted(mechanism: str, noise: Fraction, terms: Terms) -> bool:
    """Whether the budgets of the session and of the table have a theorem for so little noise."""
    gaussian_only = "gdp" in (terms.session.currency, terms.table.currency)
    return not gaussian_only or mechanism != "gaussian" or noise > LEAST_VARIANCE


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


EXPECT = Fraction(1, 20)
"""On which share of the rows two conditions are guessed to disagree, where nobody says."""


def paired(recipe: Recipe, totals: Workload, promise: Promise) -> Recipe:
    """A difference by Gaussian noise is told after its disagreement, where the leave-out theorem covers it."""
    if recipe.mechanism != "gaussian" or totals.statistic.other is None or promise.left_out is None:
        return recipe
    return replace(recipe, expect=totals.statistic.expect or EXPECT)


def recipe_within(
    mechanism: str,
    totals: Workload,
    within: float,
    most_rows: int | None,
    promise: Promise,
    terms: Terms,
    aim: int | None,
    flip: Fraction = FLIP,
) -> Recipe | None:
    """The cheapest recipe that is certain to be within (by votes with this flip); None if there is none."""

    def wide(recipe: Recipe) -> float:
        return widths(totals, paired(recipe, totals, promise), promise, terms.rows, aim).whole

    cap = terms.rows if most_rows is None else min(most_rows, terms.rows)
    if mechanism in ADDED:
        if cap < terms.rows:
            return None
        largest = Recipe(mechanism, _MOST_NOISE[mechanism], terms.rows)
        if wide(largest) <= within:
            return largest
        span = spans(totals)[0] / totals.scales[0]
        start = 4.0 * span ** (2 if mechanism == "gaussian" else 1)
        if promise.left_out is not None:
            longest = 1.0 if totals.sums is None else max(totals.sums.norms)
            narrowest, start = _narrowest(mechanism, wide, terms.rows * span**2 / longest)
            if narrowest > within:
                return None
        noise = most_noise(lambda noise: wide(Recipe(mechanism, noise, terms.rows)), within, start)
        recipe = Recipe(mechanism, noise, terms.rows)
        fits = noise > 0 and wide(recipe) <= within
        return recipe if fits and is_counted(mechanism, noise, terms) else None
    if mechanism in SELECTED:
        weakest = Recipe(mechanism, _LEAST_EPSILON, terms.rows)
        if wide(weakest) <= within:
            return weakest
        rate = most_noise(lambda inverse: wide(Recipe(mechanism, 1 / inverse, terms.rows)), within, 1.0)
        recipe = Recipe(mechanism, round_up(1 / rate) if rate else Fraction(10**6), terms.rows)
        return recipe if wide(recipe) <= within else None
    if mechanism == "votes":
        rounds = len(totals.measurements)

        def voting(count: int) -> Recipe:
            return Recipe(mechanism, Fraction(count), count * rounds, flip)

        count = fewest(lambda m: wide(voting(m)) <= within, cap // rounds)
        return None if count is None else voting(count)
    return _subsample(totals, within, promise, cap, terms, wide)


def _narrowest(mechanism: str, wide: Callable[[Recipe], float], scale: float) -> tuple[float, float]:
    """(the least half-width that a noise gives by the leave-out theorem, its variance or scale).

    Below the sampling error, which is about `scale`, less noise is a few percent wider; above it the width grows.
    """
    power = 1 if mechanism == "gaussian" else 0.5

    def at(log_variance: float) -> float:
        return wide(Recipe(mechanism, round_up(Fraction(math.exp(log_variance * power))), 0))

    width, place = least(at, math.log(scale) - 9, math.log(scale) + 3, 14)
    return width, math.exp(place * power)


def _subsample(
    totals: Workload, within: float, promise: Promise, cap: int, terms: Terms, wide: Callable[[Recipe], float]
) -> Recipe | None:
    """Rows without replacement: half again as many as a noiseless sample would need, then Laplace noise."""
    if len(totals.measurements) > 1:
        return None
    sensitivity = totals.sensitivity().l1

    def sampling(count: int, scale: Fraction) -> Recipe:
        return Recipe("subsampled-laplace", scale, count)

    count = fewest(lambda m: wide(sampling(m, Fraction(1, 1000))) <= 0.6 * within, cap)
    if count is None:
        return None
    largest = sampling(count, _MOST_NOISE["subsampled-laplace"])
    if wide(largest) <= within:
        return largest
    scale = most_noise(lambda scale: wide(sampling(count, scale)), within, 4.0 * max(1, sensitivity))
    recipe = sampling(count, scale)
    return recipe if scale > 0 and wide(recipe) <= within else None


def fewest(holds: Callable[[int], bool], most: int) -> int | None:
    """The least count in 1..most for which something monotone holds."""
    if most < 1 or not holds(most):
        return None
    low, high = 0, most
    while high - low > max(1, high >> 12):
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
