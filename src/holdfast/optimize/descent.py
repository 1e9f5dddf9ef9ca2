"""The descent itself: private steps over rows that were paid for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.mechanisms.gaussian import add_gaussian
from holdfast.mechanisms.selection import exponential
from holdfast.mechanisms.votes import FLIP, unbiased, votes
from holdfast.optimize.certificate import SCORE, noise_norm, score_unit, slope
from holdfast.optimize.descent_plan import DescentPlan
from holdfast.optimize.objective import Loss, Vector

if TYPE_CHECKING:
    from holdfast.desk import Paid

_CACHED = 1 << 26
"""Numbers that may be kept in memory between steps."""


def blocks_of(paid: Paid, loss: Loss) -> Callable[[], Iterator[Any]]:
    """All rows, prepared; kept between steps if they fit."""

    def scan() -> Iterator[Any]:
        return (loss.prepare(block) for block in paid.scan(loss.columns))

    if paid.count * (loss.dimension + 2) > _CACHED:
        return scan
    kept: list[Any] = []

    def cached() -> Iterator[Any]:
        if not kept:
            kept.extend(scan())
        return iter(kept)

    return cached


def steepness(loss: Loss, made: DescentPlan, chance: float) -> float:
    """G': what the noisy gradients stay below, at the chance for which the plan is certified."""
    beta = chance if made.selecting is None else chance / 2
    return slope(loss) + noise_norm(loss.dimension, made.iterations, made.sigma, beta)


def descend(
    paid: Paid, loss: Loss, made: DescentPlan, steep: float, blocks: Callable[[], Iterator[Any]]
) -> Vector:
    """One run: the averaged iterate of `iterations` projected steps."""
    region, n, T = loss.region, paid.count, made.iterations
    theta, average = region.start, np.zeros(loss.dimension)
    for t in range(1, T + 1):
        if not made.rule.startswith("smooth"):
            average += (theta - average) / t
        if made.mechanism == "gaussian":
            total = np.sum([loss.total(theta, rows) for rows in blocks()], axis=0, dtype=np.int64)
            mean = np.asarray(add_gaussian(total, made.noise)) / n
        else:
            mean = by_votes(paid, loss, theta, int(made.noise))
        eta = _step_size(loss, made.rule, steep, t)
        theta = region.project(theta - eta * (mean * loss.step + loss.penalty * theta))
        if made.rule == "smooth":
            average += (theta - average) / t
    return theta if made.rule in ("smooth-last", "smooth-strong") else average


def _step_size(loss: Loss, rule: str, steep: float, t: int) -> float:
    if rule == "convex":
        return loss.region.diameter / (steep * math.sqrt(t))
    return 2 / (loss.strong * t) if rule == "strongly-convex" else 1 / (loss.smooth or math.inf)


def by_votes(paid: Paid, loss: Loss, theta: Vector, count: int) -> Vector:
    """The mean gradient in units, each coordinate by `count` fresh rows of its own."""
    d, span = loss.dimension, loss.span
    rows = loss.prepare(paid.draw(loss.columns, count * d))
    heights = loss.units(theta, rows, np.repeat(np.arange(d), count)) + span
    ones = [votes(column, levels=2 * span) for column in heights.reshape(d, count)]
    return np.array([2 * span * unbiased(one, count, FLIP) - span for one in ones])


def choose(loss: Loss, found: list[Vector], epsilon: Fraction, blocks: Callable[[], Iterator[Any]]) -> int:
    """The exponential mechanism on the losses, each row's counted from the start and put on a grid.

    One row moves a sum by at most 2 * 2^20 steps.
    """
    unit, start = score_unit(loss), loss.region.start
    sums = np.zeros(len(found), dtype=np.int64)
    n = 0
    for rows in blocks():
        base = loss.values(start, rows)
        n += len(base)
        for place, theta in enumerate(found):
            steps = np.nan_to_num((loss.values(theta, rows) - base) / unit, nan=0.0)
            sums[place] += int(np.rint(np.clip(steps, -SCORE, SCORE)).astype(np.int64).sum())
    public = [round(n * loss.penalty / 2 * float(theta @ theta) / unit) for theta in found]
    return exponential(-(sums + np.array(public)), sensitivity=2 * SCORE, epsilon=epsilon)
