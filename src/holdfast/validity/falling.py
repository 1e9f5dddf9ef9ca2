"""Falling noise: as information is spent, each answer needs less noise to stay within one common half-width.

In units of 1/sqrt(n), with s = sigma sqrt(n), w = tau sqrt(n) and y = sqrt(I/n)/4, the half-width at the best number of
rows to leave out is y + f(s), f(s) = min over u of s u + h/(8s) + (s/h)(ln Q(u) + ln(2k/beta)), h = hazard(u). So with
a common width w an epoch that ends at y may use s(w - y), the inverse of f, and holds 16 s^2 (y^2 - y'^2) answers,
y' being where it began. Logistic noise has an f of its own, s being the noise of Gaussian answers that tell as much.
The breakpoints are chosen by dynamic programming on a grid, or where epochs are many by a rule; what is then certified
is computed from the integers of the plan alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from holdfast.privacy.rounding import down, round_up, up
from holdfast.validity.leave_out import LeaveOut, ladder, recorded_grid
from holdfast.validity.leave_out_logistic import TELLS_LIKE, logistic_half_width, noise_table
from holdfast.validity.normal_quantile import upper_quantile
from holdfast.validity.option import EPOCHS, Epoch

_POINTS = 129
_FINE_POINTS = 2001
_FURTHEST = 600.0
_LEAST = 1e-3
"""Less noise than this, in units of 1/sqrt(n), makes nothing narrower."""

Floats = NDArray[np.float64]
Table = tuple[Floats, Floats, Floats]


@dataclass(frozen=True)
class Schedule:
    """The noise of every place of a plan for `queries` answers on `rows` rows, all within `half_width`.

    Guarantee: with probability 1 - beta every answer is within `half_width` of the population, for every adaptive
    analyst and at any stopping time. `information` bounds n^2 mu^2 of Gaussian DP up to the last answer.
    Requires: the first session on an untouched table; answers are scalar means into [0,1] of values on the grid 1/g
    plus discrete Gaussian noise; the noise of place j is that of its epoch, or more. With `law` "logistic" the noise is
    discrete logistic, and an epoch has the variance of Gaussian noise that tells as much.
    Reference: docs/theorems.md, Theorem 23; Theorem 102 for logistic noise.
    """

    rows: int
    queries: int
    beta: float
    grid: int
    epochs: tuple[Epoch, ...]
    begun: float = 0.0
    """The information that was told before the first of these answers."""
    mixed: bool = False
    """Whether somebody was answered before this was planned: then the mixture over the recorded grid holds."""
    law: str = "gaussian"

    def left_out(self, epoch: Epoch) -> LeaveOut:
        """What the theorem leaves out for the answers of an epoch."""
        return recorded_grid(self.rows) if self.mixed else LeaveOut(self.rows, (epoch.left_out,))

    def epoch_of(self, place: int) -> Epoch:
        """The epoch that holds the answer in this place, counted from 1."""
        for epoch in self.epochs:
            if place <= epoch.answers:
                return epoch
            place -= epoch.answers
        raise IndexError(place)

    def sigma(self, epoch: Epoch) -> float:
        """The noise of an epoch's answers, on the scale of a mean in [0,1]."""
        return math.sqrt(epoch.noise) / (self.grid * self.rows)

    def information_before(self, place: int) -> float:
        """What is told before this place: the sum of 1/sigma^2."""
        spent, left = self.begun, place - 1
        for epoch in self.epochs:
            count = min(left, epoch.answers)
            spent += count / self.sigma(epoch) ** 2
            left -= count
        return spent

    @cached_property
    def information(self) -> float:
        """What all these answers together tell."""
        return self.information_before(self.queries + 1) - self.begun

    def width_at(self, place: int) -> float:
        """The certified half-width of the answer in this place."""
        epoch = self.epoch_of(place)
        left_out = self.left_out(epoch)
        charged = left_out.charges(up(self.information_before(place)))
        step = 1 / (self.grid * self.rows)
        if self.law == "logistic":
            scale = up(self.sigma(epoch) / TELLS_LIKE)
            return logistic_half_width(left_out, charged, scale, down(self.beta) / self.queries, step)
        return left_out.half_width(charged, self.sigma(epoch), down(self.beta) / self.queries, step)

    @cached_property
    def half_width(self) -> float:
        """The widest of all: within an epoch widths grow, so the last answer of each is computed."""
        last, widest = 0, 0.0
        for epoch in self.epochs:
            last += epoch.answers
            widest = max(widest, self.width_at(last))
        return widest


@lru_cache(maxsize=512)
def falling_noise(
    rows: int,
    queries: int,
    beta: float,
    *,
    most_information: float = math.inf,
    grid: int = 1,
    epochs: int = EPOCHS,
    least_noise: float = 0.0,
    begun: float = 0.0,
    mixed: bool = False,
    law: str = "gaussian",
    wider: float = 1.0,
) -> Schedule | None:
    """The schedule with the least common half-width, spending at most so much information; None if nothing fits.

    `most_information` is n^2 mu^2 of the privacy budget: privacy is never weakened to reach a width. `least_noise`
    bounds sigma from below, where fewer rows may be read. `begun` is the information that others were told. `law` is
    that of the noise, "gaussian" or "logistic". With `wider` the noise is the largest that so many times that
    half-width allows: the last places have next to none otherwise, which narrows next to nothing.
    """
    if rows < 2:
        return None
    table = _from(least_noise * math.sqrt(rows), _noise_table(math.log(2 * queries / beta), law))
    spent = begun / rows
    most = spent + most_information / rows
    counts = _counts(queries, table, spent, most, min(epochs, queries)) if table[0].size else None
    if counts is None:
        return None
    low = float(table[1][0]) + math.sqrt(spent) / 4
    width = _least(lambda w: _noises(w, counts, table, spent, most) is not None, low)
    noises = None if width is None else _noises(wider * width, counts, table, spent, most)
    if noises is None:
        return None
    found = _in_whole_numbers(rows, grid, counts, noises, table, spent)
    return Schedule(rows, queries, beta, grid, found, begun, mixed, law)


def _from(least_noise: float, table: Table) -> Table:
    """The part of a table with at least so much noise, which then begins with just that."""
    first = int(np.searchsorted(table[0], least_noise))
    noises, widths, hazards = (column[first:] for column in table)
    return noises, widths, hazards


def _least(holds: Callable[[float], bool], low: float) -> float | None:
    """The least width at which something holds that holds at all greater ones, up to a hundred-thousandth."""
    high = 2 * low
    while not holds(high):
        low, high = high, 2 * high
        if high > 1e9:
            return None
    while high / low > 1 + 1e-5:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _counts(queries: int, table: Table, spent: float, most: float, epochs: int) -> list[int] | None:
    """How many answers each epoch holds, by the continuous problem; every epoch at least one."""
    if epochs == queries:
        return [1] * queries
    first, furthest = math.sqrt(spent) / 4, math.sqrt(most) / 4
    low = float(table[1][0]) + first
    width = _least(lambda w: _answers(w, table, first, furthest, epochs)[0] >= queries, low)
    if width is None:
        return None
    _, places, noises = _answers(width, table, first, furthest, epochs)
    begun = np.concatenate([[first], places[:-1]])
    ideal = np.cumsum(16 * noises**2 * (places**2 - begun**2))
    ends = np.rint(ideal / ideal[-1] * queries).astype(np.int64)
    ends = np.maximum(ends, np.arange(1, epochs + 1))
    ends = np.minimum(ends, queries - np.arange(epochs)[::-1])
    return [int(count) for count in np.diff(np.concatenate([[0], ends]))]


def _noises(w: float, counts: list[int], table: Table, spent: float, most: float) -> list[float] | None:
    """The largest noise of each epoch with which its last answer is within w; None if an epoch has none.

    An answer is charged for what was released before it: f(s) + sqrt(I + (c-1)/s^2)/4 for the last of c answers.
    """
    noises, widths, _ = table
    found = []
    for count in counts:
        fits = np.flatnonzero(widths + np.sqrt(spent + (count - 1) / noises**2) / 4 <= w)
        if not fits.size:
            return None
        s = float(noises[fits[-1]])
        found.append(s)
        spent += count / s**2
    return found if spent <= most else None


@lru_cache(maxsize=512)
def _noise_table(log_miss: float, law: str = "gaussian") -> Table:
    """(s, f(s), the hazard where f takes its minimum) along the tangent points u.

    There the derivative in u is 0, which says h^2 = 8 s^2 (ln Q(u) + ln(2k/beta)): s and f follow from u.
    """
    if law == "logistic":
        return _from_the_narrowest(*noise_table(log_miss))
    last = upper_quantile(math.exp(-log_miss)) if log_miss < _FURTHEST else math.sqrt(2 * log_miss)
    u = np.concatenate([np.linspace(-5.0, last - 1, 1000)[:-1], last - np.logspace(0, -9, 3000)])
    log_tail = log_ndtr(-u)
    rest = log_tail + log_miss
    u, log_tail, rest = u[rest > 0], log_tail[rest > 0], rest[rest > 0]
    h = np.exp(-u * u / 2 - math.log(2 * math.pi) / 2 - log_tail)
    s = h / np.sqrt(8 * rest)
    return _from_the_narrowest(s, s * u + np.sqrt(8 * rest) / 4, h)


def _from_the_narrowest(noises: Floats, widths: Floats, hazards: Floats) -> Table:
    """A table without the noise that is so little that more of it would be narrower: exact answers have the bound of
    Hoeffding, and a little noise has Gaussian tails."""
    first = max(int(widths.argmin()), int(np.searchsorted(noises, _LEAST)))
    return noises[first:], np.maximum.accumulate(widths[first:]), hazards[first:]


def _answers(
    w: float, table: Table, first: float, furthest: float, epochs: int
) -> tuple[float, Floats, Floats]:
    """(the most answers within w, where the epochs end, their noise), in units of 1/sqrt(n)."""
    noises, widths, _ = table
    end = min(w - float(widths[0]), furthest)
    if end <= first:
        return 0.0, np.empty(0), np.empty(0)

    def noise_at(y: Floats) -> Floats:
        return np.exp(np.interp(w - y, widths, np.log(noises)))

    if epochs > EPOCHS:
        # An epoch of length dx, x = y^2, loses |d(s^2)/dx| dx^2/2 against ever finer ones: the least in all where dx is
        # in proportion to |d(s^2)/dx|^(-1/2).
        y = np.linspace(first, end, _FINE_POINTS)
        steps = np.sqrt(np.maximum(-np.diff(noise_at(y) ** 2) * np.diff(y**2), 0.0))
        walked = np.concatenate([[0.0], np.cumsum(steps)])
        ends = np.interp(np.linspace(0.0, walked[-1], epochs + 1), walked, y)
        s = noise_at(ends[1:])
        return float((16 * s**2 * np.diff(ends**2)).sum()), ends[1:], s
    y = np.linspace(first, end, _POINTS)
    s = noise_at(y)
    gain = 16 * s[None, :] ** 2 * (y[None, :] ** 2 - y[:, None] ** 2)
    gain[np.tril_indices(_POINTS)] = -np.inf
    best = np.where(np.arange(_POINTS) == 0, 0.0, -np.inf)
    came_from = []
    for _ in range(epochs):
        reached = best[:, None] + gain
        came_from.append(reached.argmax(axis=0))
        best = reached.max(axis=0)
    at = int(best.argmax())
    total, path = float(best[at]), []
    for back in reversed(came_from):
        path.append(at)
        at = int(back[at])
    chosen = np.array(path[::-1])
    return total, y[chosen], s[chosen]


def _in_whole_numbers(
    rows: int, grid: int, counts: list[int], noises: list[float], table: Table, before: float
) -> tuple[Epoch, ...]:
    """Rational variances and rungs of the ladder to leave out; the rest is computed from these alone.

    The best share r/(1+r) to leave out has r = hazard/(s sqrt(I/n)), at the tangent point of f.
    """
    found, rungs = [], np.array(ladder(rows))
    for count, s in zip(counts, noises, strict=True):
        variance = round_up(Fraction((s * grid) ** 2 * rows))
        information = before + (count - 1) / s**2
        hazard = float(np.interp(s, table[0], table[2]))
        share = 1 / (1 + s * math.sqrt(information) / hazard)
        nearest = int(np.abs(np.log(rungs / (rows * share))).argmin())
        found.append(Epoch(count, variance, int(rungs[nearest])))
        before += count / s**2
    return tuple(found)
