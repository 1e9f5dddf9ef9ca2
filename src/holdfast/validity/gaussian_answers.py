"""Exact aggregates plus discrete Gaussian noise: the widths that sessions print."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from holdfast.privacy.rounding import down, up
from holdfast.validity.average_kl import information_term
from holdfast.validity.martingale import posterior_term
from holdfast.validity.normal_quantile import two_sided_quantile
from holdfast.validity.search import least
from holdfast.validity.transfer import sharp_term

# (1 + 1e-33)^k stays inside the margin that beta is given up to here (docs/theorems.md, Lemma 7).
MOST_QUERIES = 10**12


@lru_cache(maxsize=65536)
def gaussian_width(
    rows: int, queries: int, beta: float, standard_deviation_counts: float, grid: int = 1
) -> float:
    """J0: sigma z + 1/(2gn) + alpha_*, sigma = s/(gn), z = max(1, Q^{-1}(beta/2k)), alpha_* from
    `population_term`.

    Guarantee: Pr[some |a_j - q_j(P)| > width] <= beta, for every adaptive analyst and at any stopping time.
    Requires: n independent rows; at most k queries into [0,1] in total over all who see each other's answers;
    each a_j = (sum over rows of g q_j + N)/(g n) with fresh discrete Gaussian N of the one standard deviation
    s > 2, row values on the grid 1/g (rounding values to it first adds 1/(2g)); no other release on these
    rows.
    Reference: docs/theorems.md, Theorems 5 and 8 and Lemma 7 (mu^2 = k g^2/(s^2 - 4)).
    Cost: microseconds, cached.
    """
    s = standard_deviation_counts
    if not s > 2.0 or queries > MOST_QUERIES:
        return math.inf
    beta = down(beta)
    mu = up(grid * math.sqrt(queries / ((s - 2.0) * (s + 2.0))))
    z = max(1.0, two_sided_quantile(beta, queries))
    return up((s * z + 0.5) / (grid * rows)) + population_term(beta, mu)


def population_term(beta: float, mu: float) -> float:
    """The least of T1*, T2 and T4 for mu-GDP made of Gaussian answers only. All hold, so the minimum is free.

    T1* is the least for beta below about 0.25, T2 above. Reference: docs/theorems.md, Theorems 5, 12 and 15.
    """
    return min(sharp_term(beta, mu), information_term(beta, mu), posterior_term(beta, mu))


def gaussian_noise(rows: int, queries: int, beta: float, grid: int = 1) -> tuple[float, float]:
    """(width, standard deviation in counts of 1/g) where `gaussian_width` is least. Public numbers only."""
    return tuned(lambda s: gaussian_width(rows, queries, beta, s, grid), rows, queries, grid)


def gaussian(
    rows: int, queries: int, beta: float, standard_deviation: float | None = None, grid: int = 1
) -> float:
    """`gaussian_width`, at the best noise when none is given."""
    if standard_deviation is not None:
        return gaussian_width(rows, queries, beta, standard_deviation, grid)
    return gaussian_noise(rows, queries, beta, grid)[0]


def tuned(width: Callable[[float], float], rows: int, queries: int, grid: int) -> tuple[float, float]:
    """The best noise lies near s^2 = n sqrt(k)/8; two decades around it are searched."""
    if queries > MOST_QUERIES:
        return math.inf, math.inf
    centre = math.log(grid * (4.0 + 0.35 * math.sqrt(rows * math.sqrt(queries))))
    value, place = least(lambda x: width(2.0 + math.exp(x)), centre - 3.0, centre + 2.3, 40)
    return value, 2.0 + math.exp(place)
