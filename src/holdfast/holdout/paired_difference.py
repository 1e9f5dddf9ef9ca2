"""By how much one score exceeds another: models that agree on most rows differ by little, and by little noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from holdfast.holdout.design import DIFFERENCE_NOISE, DISAGREEMENT_NOISE, KNOWN_NOISE, Design
from holdfast.holdout.label_release import Rows, noisy_difference
from holdfast.holdout.look_meter import Charges, Difference, Meter, Pair, Place
from holdfast.holdout.metric import GRID, Metric
from holdfast.holdout.outcome import Outcome
from holdfast.privacy import event, rule
from holdfast.privacy.rounding import round_up, up
from holdfast.session.answer import Answer
from holdfast.validity.leave_out_intervals import difference_interval, difference_tangent
from holdfast.validity.normal_quantile import upper_quantile


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two models' row values under one metric.

    `known` bounds the mean of |first - second| whatever the labels are; None where that takes the labels or the
    features, and is told with noise first. `expect` is a guess of it from before the look.
    """

    metric: Metric
    first: Rows
    second: Rows
    known: float | None
    expect: float


def compared(meter: Meter, asked: Comparison, place: Place, charged: Charges) -> Outcome:
    """The difference with its interval, and what it told.

    Guarantee: with probability 1 - `place.chance` the interval holds the difference in the population.
    Requires: as `Meter`; the comparison is fixed before the look, and so are the noises and the tangent.
    Reference: docs/theorems.md, Theorem 28 (3D') and Theorem 53. Cost: all rows.
    """
    plan, known = meter.plan, asked.known
    if known is None:
        scale = asked.expect * place.sigma**2
        noise = _variance(plan, DIFFERENCE_NOISE * scale)
        doubt = _variance(plan, DISAGREEMENT_NOISE * (1 - asked.expect) * scale)
    else:
        noise, doubt = _variance(plan, KNOWN_NOISE * max(known, asked.expect) * place.sigma**2), None
    sigma, size_sigma = _sigma(plan, noise), 0.0 if doubt is None else _sigma(plan, doubt)
    before, left_out = charged[place.index], place.epoch.left_out
    thought = asked.expect if known is None else known
    tangent = difference_tangent(left_out, before, thought, size_sigma, sigma, place.chance)
    value, shown = noisy_difference(plan, asked.first, asked.second, noise, doubt)
    told: Pair | Difference
    if shown is None:
        assert known is not None
        told, size = Difference(known, sigma), known
    else:
        told, size = Pair(shown, size_sigma, sigma, asked.expect), shown
    low, high = difference_interval(
        left_out, before, size, size_sigma, value, sigma, place.chance, 1 / (GRID * plan.rows), tangent
    )
    own = sigma * upper_quantile(place.chance / 2)
    return Outcome(_answer(plan, asked.metric, value, low, high, own, _rho(noise, doubt)), told=(told,))


def _variance(plan: Design, squared: float) -> Fraction:
    """A noise on the mean as one on the sum, in squared steps of the grid."""
    return round_up(Fraction(squared * (GRID * plan.rows) ** 2))


def _sigma(plan: Design, variance: Fraction) -> float:
    return math.sqrt(variance) / (GRID * plan.rows)


def _rho(noise: Fraction, doubt: Fraction | None) -> float:
    """One label moves the difference by two rows at most, and its size by one."""
    found = rule.zcdp(event.Gaussian((2 * GRID) ** 2, noise)).rho
    return up(found if doubt is None else found + rule.zcdp(event.Gaussian(GRID**2, doubt)).rho)


def _answer(
    plan: Design, metric: Metric, value: float, low: float, high: float, own: float, rho: float
) -> Answer:
    span, slack = metric.high - metric.low, 2 * metric.rounding
    low, high = max(-1.0, low - slack), min(1.0, high + slack)
    value, half = min(high, max(low, value)), (high - low) / 2
    return Answer(
        question=f"{metric.name} of the first less the second",
        value=span * value,
        low=span * low,
        high=span * high,
        confidence=plan.confidence,
        noise=span * min(half, own),
        sampling=0.0,
        population=span * max(0.0, half - own),
        target="population",
        rho=rho,
        epsilon=None,
        rows_read=plan.rows,
        mechanism="gaussian",
        explanation=f"by the variance of the difference (Theorem 53), one of {plan}",
    )
