"""How wide an answer will be that is read off sums of noisy totals (`holdfast.query.sums`). Public numbers only."""

from __future__ import annotations

import math

from holdfast.mechanisms.accuracy import subgaussian_reach
from holdfast.planning.mean import MARGIN
from holdfast.planning.plan import Recipe, Widths
from holdfast.planning.promise import Promise
from holdfast.privacy.filter import UNITS
from holdfast.privacy.rounding import up
from holdfast.query.statistic import Workload
from holdfast.validity.leave_out_intervals import moments_half_width

RANKED = ("quantile", "quantiles")
"""Kinds whose width is in rank."""


def sum_widths(totals: Workload, recipe: Recipe, promise: Promise, rows: int) -> Widths:
    """The half-widths that a recipe keeps: `totals` has one for each class of statements, in steps.

    Guarantee: every statement is within that of its class, all of them but with the chance of the promise.
    Reference: docs/theorems.md, Theorem 135. Between the end of an interval and the rank itself there are two of them.
    """
    assert totals.sums is not None
    reaches = sum_reaches(totals, recipe, promise, rows)
    alone = _reach(totals, max(totals.sums.norms), recipe, _noise_alone(promise), rows)
    noise = min(1.0, alone / max(reaches))
    kind, units = totals.statistic.kind, max(reaches)
    if kind == "independence":
        return Widths(reaches, math.inf, 0.0, 0.0, (noise, 0.0, 1 - noise))
    if kind in RANKED:
        whole = min(2 * units / (rows * totals.most), 2.0) * MARGIN
    else:
        whole = (units * totals.unit + totals.rounding) * MARGIN
    population = 0.0 if promise.target == "table" else whole * (1 - noise)
    return Widths(reaches, whole - population, 0.0, population)


def sum_reaches(totals: Workload, recipe: Recipe, promise: Promise, rows: int) -> tuple[float, ...]:
    """How far the statements of each class may be from what they are about, in steps."""
    assert totals.sums is not None
    return tuple(_reach(totals, norm, recipe, promise, rows) for norm in totals.sums.norms)


def _noise_alone(promise: Promise) -> Promise:
    """What the noise alone would need for the same chance."""
    if promise.target == "table" or promise.left_out is not None:
        return Promise("table", promise.allowance)
    return Promise("table", min(1.0, promise.allowance / promise.slack))


def _reach(totals: Workload, norm: float, recipe: Recipe, promise: Promise, rows: int) -> float:
    """How far a sum of totals with weights of this squared length may be from the target's, in steps."""
    assert totals.sums is not None
    (measurement,) = totals.measurements
    span, (scale,) = max(1, measurement.high - measurement.low), totals.scales
    each = promise.allowance / totals.sums.statements
    deviation = up(math.sqrt(recipe.noise) * scale * math.sqrt(norm))
    if promise.left_out is not None:
        charged = promise.left_out.charges(up(promise.information / UNITS * rows))
        return rows * span * moments_half_width(promise.left_out, charged, deviation / (rows * span), each)
    overshoot = promise.target == "population"
    reach = subgaussian_reach(deviation, each * rows * span if overshoot else each, overshoot)
    return reach + (promise.population + promise.slack) * rows * span
