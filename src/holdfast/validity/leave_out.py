"""The leave-out theorem: what answers with Gaussian noise say about the population, by the information spent before.

Notation: n rows, m of them left out, n' = n - m, kappa = m/(2 n'(n-1)), I the information 1/sigma^2 of all earlier
answers added up, b > 0 the tilt, Q the upper tail of the standard normal law, hazard = phi/Q.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr

from holdfast.errors import InputError
from holdfast.privacy.rounding import down, up
from holdfast.validity.normal_quantile import hazard, log_upper_tail, upper_quantile
from holdfast.validity.search import least

LEAST_TANGENT = 1.3307
"""From here on the tail of discrete Gaussian noise, moved by half a step, lies below every tangent that is used."""
_FURTHEST = 9.0
_POINTS = 61

LADDER = tuple(0.95 * 0.95**step for step in range(168))
"""The shares of the rows that a plan may leave out; all that is charged in one number holds for each of them."""
_RUNG = 7
"""Every seventh of them, each 0.7 of the one before, is in the mixture of those who plan later."""


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """How many rows are left out: numbers m in 1..n-1, with weights that add up to at most 1.

    Requires: fixed before the first answer of the table's one transcript. Choosing m from answers, or from noise that
    was chosen along the way, breaks the theorem; several numbers with weights are the price of not knowing.
    """

    rows: int
    sizes: tuple[int, ...]
    weights: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if not self.sizes or len(self.sizes) != len(self.weights):
            raise InputError("expected a weight for each number of rows to leave out, got others")
        if not all(1 <= m < self.rows for m in self.sizes):
            raise InputError(f"expected to leave out 1 to {self.rows - 1} rows, got {self.sizes}")
        if not all(w > 0 for w in self.weights) or math.fsum(self.weights) > 1:
            raise InputError(f"expected positive weights of at most 1 in all, got {self.weights}")

    def charges(self, information: float) -> tuple[float, ...]:
        """What scalar Gaussian answers of that information charge, for each m: kappa I/4."""
        return tuple(up(kappa(self.rows, m) * information / 4) for m in self.sizes)

    def exponent(self, charged: Sequence[float], tilt: float) -> float:
        """-ln sum_m w_m exp(-A_m - b^2/(8m)), rounded up: bD exceeds it by t with probability at most e^-t.

        Guarantee: E exp(b(q(S) - q(P)) - exponent) <= 1 for every q: X -> [0,1] and b that the transcript chooses.
        Requires: rows independent; `charged` bounds the charges A_m of everything released before (docs/theorems.md,
        Theorem 22), tilt a function of the past.
        Reference: docs/theorems.md, Theorem 22 (leave m rows out), averaged over the weights.
        """
        terms = [
            a + tilt * tilt / (8 * m) - math.log(w)
            for a, m, w in zip(charged, self.sizes, self.weights, strict=True)
        ]
        smallest = min(terms)
        return up(smallest - math.log(math.fsum(math.exp(smallest - term) for term in terms)), smallest)

    def any_statistic(self, charged: Sequence[float], beta: float, statistics: int = 1) -> float:
        """How far q(S) is from q(P) at most, for a q that the whole transcript chooses; both sides.

        Guarantee: Pr[|q(S) - q(P)| > this] <= beta, for all of the `statistics` together.
        Reference: docs/theorems.md, Theorem 22, Corollary A.
        """
        log_miss = up(math.log(2 * statistics) - math.log(down(beta)))
        smallest = min(self.sizes)
        centre = 0.5 * math.log(8 * smallest * log_miss)
        return least(
            lambda x: up((self.exponent(charged, math.exp(x)) + log_miss) / math.exp(x)),
            centre - 2,
            centre + 6,
        )[0]

    def half_width(self, charged: Sequence[float], sigma: float, beta: float, step: float = 0.0) -> float:
        """The half-width of one answer q(S) + N(0, sigma^2), missed with probability at most beta, both sides.

        With `step` > 0 the noise is discrete Gaussian on multiples of `step`, and the values are too.
        Guarantee: Pr[|a - q(P)| > this] <= beta. The least over tangent points u of
            sigma u + (exponent(b) + ln Q(u) + ln(2/beta))/b,  b = hazard(u)/sigma,
        plus step/2 where u >= 1.3307, or a whole step for any u.
        Requires: q and sigma functions of the past; charges of the past only, not of this answer.
        Reference: docs/theorems.md, Theorem 23 (refined).
        """
        return _half_width(self, tuple(charged), sigma, beta, step)

    def tangent(
        self, charged: Sequence[float], sigma: float, log_miss: float, low: float, high: float, least: float
    ) -> float:
        """Where (exponent(b) + max(least, ln Q(u) + u hazard(u)) + log_miss)/b is about least, b = hazard(u)/sigma.

        Any point is valid where such a half-width is claimed, so this is a search and proves nothing.
        """
        sizes, weights = np.array(self.sizes), np.array(self.weights)
        for _ in range(3):
            u = np.linspace(low, high, _POINTS)
            log_tail = log_ndtr(-u)
            slope = np.exp(-u * u / 2 - math.log(2 * math.pi) / 2 - log_tail)
            b = slope / sigma
            terms = np.asarray(charged)[:, None] + b * b / (8 * sizes[:, None]) - np.log(weights)[:, None]
            smallest = terms.min(axis=0)
            exponent = smallest - np.log(np.exp(smallest - terms).sum(axis=0))
            best = int(((exponent + np.maximum(least, log_tail + u * slope) + log_miss) / b).argmin())
            low, high = float(u[max(best - 1, 0)]), float(u[min(best + 1, _POINTS - 1)])
        return (low + high) / 2


@lru_cache(maxsize=8192)
def _half_width(
    left_out: LeaveOut, charged: tuple[float, ...], sigma: float, beta: float, step: float
) -> float:
    log_miss = up(math.log(2) - math.log(down(beta)))

    def at(u: float, moved: float) -> float:
        b = hazard(u) / sigma
        log_tail = log_upper_tail(u)
        size = abs(log_tail) + log_miss
        rest = (left_out.exponent(charged, b) + log_tail + log_miss) / b
        return up(sigma * u + rest + moved, sigma * abs(u) + size / b)

    most = max(LEAST_TANGENT + 1, upper_quantile(down(beta) / 2) + 1)
    near, far = (
        left_out.tangent(charged, sigma, log_miss, low, most, -math.inf)
        for low in (LEAST_TANGENT, -_FURTHEST)
    )
    return min(at(near, step / 2), at(far, step))


def kappa(rows: int, left_out: int) -> float:
    """m/(2 (n-m)(n-1)): what leaving m rows out costs for each unit of variance over squared noise."""
    return up(left_out / (2 * (rows - left_out) * (rows - 1)))


@lru_cache(maxsize=64)
def ladder(rows: int) -> tuple[int, ...]:
    """The numbers of rows that plans on so many rows may leave out, the largest first."""
    return tuple(dict.fromkeys(min(rows - 1, max(1, round(rows * share))) for share in LADDER))


@lru_cache(maxsize=64)
def recorded_grid(rows: int) -> LeaveOut:
    """The mixture for everybody who plans after the table's first answer.

    A function of the number of rows alone, which is public from the beginning: nothing that was told can move it.
    """
    sizes = tuple(dict.fromkeys(min(rows - 1, max(1, round(rows * share))) for share in LADDER[::_RUNG]))
    return each_of(rows, sizes)


def each_of(rows: int, sizes: Sequence[int]) -> LeaveOut:
    """Several numbers of rows to leave out, with equal weights."""
    return LeaveOut(rows, tuple(sizes), (math.nextafter(1 / len(sizes), 0.0),) * len(sizes))


_FIRST = 0.9
"""The share of a chance that the first of several numbers of rows has; it is the one that is planned for."""


_OWN = 0.95
"""The weight of the numbers of rows that a place leaves out; the rest is the grid's, in case others ask much."""

GRID_SHARE = (1 - _OWN) * (1 - 2**-40)
"""The weight of the recorded grid beside what a place leaves out: what claims by the grid may have of its chance, so
that it does not matter who chooses which claim takes the place (docs/theorems.md, Theorem 91)."""


@lru_cache(maxsize=1024)
def planned_place(rows: int, *sizes: int) -> LeaveOut:
    """A plan's numbers of rows to leave out for a place, nine tenths on the first, with some of the grid beside them.

    What others are told cannot make such a place useless: it is never much wider than by the grid alone.
    """
    grid, others = recorded_grid(rows), len(sizes) - 1
    first = _OWN * _FIRST if others else _OWN
    own = (first, *((_OWN - first) * (1 - 2**-40) / others for _ in range(others)))
    return LeaveOut(rows, (*sizes, *grid.sizes), (*own, *(GRID_SHARE * weight for weight in grid.weights)))


def planned_sizes(rows: int, left_out: LeaveOut) -> tuple[int, ...]:
    """The numbers that `planned_place` was made of; none for the recorded grid."""
    grid = recorded_grid(rows)
    return () if left_out == grid else left_out.sizes[: -len(grid.sizes)]
