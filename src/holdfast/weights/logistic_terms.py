"""Multiplicative weights on the meter of the leave-out theorem: by comparisons with logistic noise alone.

Letters: n rows, N points, k questions, c alarms, W the half-width for the population, T the threshold of both sides,
tau_i what a comparison after i alarms is sure of, r the reach of a run's secret threshold noise,
gamma_i = T - tau_i - r: how far the population is from the guess, at least, where the alarm is raised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from holdfast.errors import InputError
from holdfast.mechanisms import allocation
from holdfast.mechanisms.accuracy import laplace_reach, logistic_reach
from holdfast.mechanisms.values import round_down
from holdfast.planning.promise import rounded
from holdfast.planning.recipe_information import told_by, units_told
from holdfast.privacy.rounding import down, up
from holdfast.query.region import GRID
from holdfast.validity.leave_out import recorded_grid
from holdfast.validity.leave_out_tails import comparison_half_width
from holdfast.validity.told import comparison_told

_ROUNDING = 4
"""Steps: the guess, the threshold and the gap are each rounded to whole ones."""
_BLOCKS = 16
"""The alarms are planned in so many blocks, each with the tau of its last one."""
_ALARMS = np.unique(np.geomspace(1, 20_000, 64).astype(int))
_EPSILONS = np.geomspace(1e-6, 300, 260)
_SHARES = np.array([0.2, 0.3, 0.387, 0.5, 0.62, 0.75, 0.88])
"""Of a run's epsilon, for its threshold; 0.387 is the best where privacy decides."""
_TRIES, _NARROWER = 24, 0.985


@dataclass(frozen=True, slots=True)
class Looks:
    """What every comparison rests on, fixed when the weights are opened; public.

    Guarantee: with probability 1 - beta, for every adaptive analyst: a look without an alarm says that the population
    is within `half_width` of the guess, an alarm that it is on its side of the guess by `gain` or more, each as it was
    when the look was taken.
    Requires: independent rows; one unit a row; `told` is what was told of the table, the alarm under way included,
    when the question was known.
    Reference: docs/theorems.md, Theorem 60.
    """

    rows: int
    threshold: float
    rate: float
    beta: float
    """Of one comparison; at most two of the four ways to be wrong are open to a look."""
    reach: float
    """r, with the rounding to whole steps."""
    table_reach: float
    """The same with the noise of a comparison, for the table."""
    tells: int
    """What an alarm tells, in the ledger's units."""

    def half_width(self, told: int) -> float:
        """T + tau + r."""
        return up(self.threshold + _tau(self.rows, rounded(told), self.rate, self.beta) + self.reach)

    def gain(self, told: int) -> float:
        """T - tau - r; not positive where an alarm would say nothing."""
        return down(self.threshold - _tau(self.rows, rounded(told), self.rate, self.beta) - self.reach)


@lru_cache(maxsize=4096)
def _tau(rows: int, told: int, rate: float, beta: float) -> float:
    grid = recorded_grid(rows)
    return comparison_half_width(grid, grid.charges(told_by(told, rows)), rate, beta)


@dataclass(frozen=True, slots=True)
class LogisticTerms:
    """A plan: what is fixed, and what follows from it while nobody else is told anything."""

    looks: Looks
    run_epsilon: Fraction
    threshold_share: float
    alarms: int
    within: float
    least_gain: float


def logistic_terms(
    rows: int,
    points: int,
    questions: int,
    beta: float,
    told: int,
    *,
    secret: float,
    most: float,
    pure: bool,
    within: float | None,
) -> LogisticTerms:
    """The least W that `most` pays for, in epsilon or rho; or with `within` the least cost that keeps it. InputError
    where there is none.

    `beta` is the chance of all comparisons, `secret` that of the secret noise of all thresholds beside it.
    A search by leading terms, which proves nothing; what it finds is certified by `_certified`, and by `Looks` again.
    """
    wished = 1.0 if within is None else within
    aim, log_points = wished, up(math.log(points))
    for _ in range(_TRIES):
        found = _search(
            rows, log_points, questions, beta, secret, told_by(told, rows), most, pure, aim, within
        )
        made = None if found is None else _certified(rows, log_points, questions, beta, secret, told, *found)
        if made is not None and made.within <= wished:
            return made
        if found is None:
            break
        aim *= _NARROWER * (1.0 if made is None else wished / made.within)
    wide = "no error below 1" if within is None else f"no within={within:g} with the budget that there is"
    raise InputError(
        f"cannot plan: these weights certify {wide} for {questions:,} questions of the population on {rows:,} rows "
        f"and {points:,} points; give more budget, fewer columns, a wider promise, or ask independently"
    )


def _search(
    rows: int,
    log_points: float,
    questions: int,
    beta: float,
    secret: float,
    told: float,
    most: float,
    pure: bool,
    aim: float,
    within: float | None,
) -> tuple[Fraction, float, int] | None:
    """(epsilon of a run, its threshold's share, c) by leading terms: the least W, or the cheapest W up to `aim`."""
    c, e, share = _ALARMS[:, None, None], _EPSILONS[None, :, None], _SHARES[None, None, :]
    log_miss = np.log(2 * (questions + c) / beta) + math.log(len(recorded_grid(rows).sizes))
    rate = rows * e * (1 - share) / 2
    tilt = np.minimum(rate, np.sqrt(8 * rows * log_miss))
    fixed = log_miss / tilt + tilt / (8 * rows) + np.log(c / secret) / (rows * e * share)
    # the alarms tell more and more: their reach, its mean and its square, by an integral over them
    first, last = (np.sqrt(told + after * rate**2) / (4 * rows) for after in (1, c + 1))
    grown = np.maximum(last**2 - first**2, 1e-300)
    mean = np.where(last > first * 1.001, 2 / 3 * (last**3 - first**3) / grown, last)
    square = (first**2 + last**2) / 2
    last = fixed + last
    first, square = fixed + mean, fixed**2 + 2 * fixed * mean + square
    # c (T - reach)^2 on average, and (T + last)^2 = ln(N)/2, T above the last reach
    a, b, rest = c + 1.0, last - c * first, c * square + last**2 - log_points / 2
    threshold = np.maximum(1.001 * last, (-b + np.sqrt(np.maximum(0.0, b * b - a * rest))) / a)
    width, cost = threshold + last, c * (e if pure else e * np.tanh(e / 2)) + 0 * share
    good = (cost * (1 + 1e-6) <= most) & (width < aim)
    if not good.any():
        return None
    place = np.unravel_index(np.where(good, width if within is None else cost, np.inf).argmin(), good.shape)
    alarms, run, part = int(_ALARMS[place[0]]), float(_EPSILONS[place[1]]), float(_SHARES[place[2]])
    return round_down(run), part, alarms


def _certified(
    rows: int,
    log_points: float,
    questions: int,
    beta: float,
    secret: float,
    told: int,
    run: Fraction,
    share: float,
    alarms: int,
) -> LogisticTerms | None:
    """The least threshold with which so many alarms take the divergence to where nothing is off by more than W."""
    unit = rows * GRID
    noise = allocation.pure(GRID, run, 1, monotone=False, numeric=False, share=Fraction(share))
    rate = down(unit / float(noise.question))
    tells = units_told(comparison_told(rows, up(unit / float(noise.question))), rows)
    each = down(beta / (2 * (questions + alarms)))
    hidden = laplace_reach(noise.threshold, down(secret / alarms), False) + _ROUNDING
    table = hidden + logistic_reach(noise.question, each)
    ends = sorted({-(-alarms * (block + 1) // _BLOCKS) for block in range(_BLOCKS)})
    reach = up(hidden / unit)
    sure = [up(_tau(rows, rounded(told + end * tells), rate, each) + reach) for end in ends]
    many = [end - start for start, end in zip([0, *ends], ends, strict=False)]

    def enough(threshold: float) -> bool:
        fallen = math.fsum(n * max(0.0, threshold - s) ** 2 for n, s in zip(many, sure, strict=True))
        return 2 * down(fallen + (threshold + sure[-1]) ** 2) >= log_points

    low, high = sure[-1], 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    threshold = math.ceil(high * unit) / unit
    width, gain = up(threshold + sure[-1]), down(threshold - sure[-1])
    if not (enough(threshold) and gain > 0 and width < 1):
        return None
    looks = Looks(rows, threshold, rate, each, reach, up(threshold + table / unit), tells)
    return LogisticTerms(looks, run, share, alarms, width, gain)
