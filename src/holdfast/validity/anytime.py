"""No fixed number of queries: a capacity, epochs that double, or noise chosen answer by answer."""

from __future__ import annotations

import math
from functools import lru_cache

from holdfast.privacy.rounding import down, up
from holdfast.validity.gaussian_answers import gaussian_width, population_term
from holdfast.validity.normal_quantile import two_sided_quantile, upper_quantile


def capacity(mu: float, standard_deviation_counts: float, grid: int = 1) -> int:
    """(A) How many answers with noise s a cap mu allows: floor(mu^2 (s^2 - 4)/g^2).

    Guarantee: `gaussian_width` with this k holds at any stopping rule, as no further query can be answered.
    Reference: docs/theorems.md, Theorem 18 (A).
    """
    s = standard_deviation_counts
    return max(0, math.floor(down(mu * mu * (s - 2.0) * (s + 2.0) / (grid * grid)))) if s > 2.0 else 0


def capacity_width(
    rows: int, beta: float, mu: float, standard_deviation_counts: float, grid: int = 1
) -> float:
    """(A) The width of each of the `capacity` answers; inf when not even one fits."""
    k = capacity(mu, standard_deviation_counts, grid)
    return gaussian_width(rows, k, beta, standard_deviation_counts, grid) if k else math.inf


def epoch(query: int) -> int:
    """(B) The epoch l of query j = 1, 2, ...: 2^l <= j < 2^(l+1)."""
    return query.bit_length() - 1


def epoch_noise(rows: int, level: int, grid: int = 1) -> float:
    """(B) The standard deviation (counts of 1/g) for all answers of epoch l. Public numbers only.

    It grows like 2^(l/4), as the best noise for k queries does; 0.6 balances noise and population.
    """
    return grid * (2.5 + 0.6 * math.sqrt(rows) * math.exp2(level / 4.0))


@lru_cache(maxsize=1024)
def epoch_width(rows: int, beta: float, level: int, grid: int = 1) -> float:
    """(B) The width of every answer of epoch l; it grows slowly and visibly with l, and no k is needed.

    Guarantee: Pr[some |a_j - q_j(P)| > its width, at any time] <= beta.
    J0 on the 2^l answers of epoch l at beta_l = beta/((l+1)(l+2)), mu_l^2 over all answers up to epoch l.
    Requires: as `gaussian_width`, with the noise `epoch_noise` of each epoch.
    Reference: docs/theorems.md, Theorem 18 (B).
    """
    share = down(beta / ((level + 1) * (level + 2)))
    mu_squared = 0.0
    for i in range(level + 1):
        mu_squared += 2.0**i * step(epoch_noise(rows, i, grid), grid)
    z = max(1.0, two_sided_quantile(share, 2**level))
    noise = up((epoch_noise(rows, level, grid) * z + 0.5) / (grid * rows))
    return noise + population_term(share, up(math.sqrt(mu_squared)))


def step(standard_deviation_counts: float, grid: int = 1) -> float:
    """(C) What one answer adds to the budget: g^2/(s^2 - 4), rounded up; inf for s <= 2."""
    s = standard_deviation_counts
    return up(grid * grid / ((s - 2.0) * (s + 2.0))) if s > 2.0 else math.inf


@lru_cache(maxsize=65536)
def adaptive_width(
    rows: int,
    beta: float,
    query: int,
    standard_deviation_counts: float,
    budget: float,
    base: float,
    grid: int = 1,
    share: float = 0.5,
) -> float:
    """(C) The width of answer j when its noise was chosen from the transcript and the number of answers is
    open.

    Guarantee: Pr[some |a_j - q_j(P)| > its width, at any time] <= beta.
    sigma_j z_j + 1/(2gn) + alpha_*(b2_l, sqrt(base 2^l)): b1 = share * beta, z_j = Q^{-1}(b1 w_j/2) and at
    least 1, w_j = 1/(j(j+1)); b2_l = (beta - b1)/((l+1)(l+2)), l least with budget <= base 2^l.
    Requires: as `gaussian_width` but sigma_j may differ and depend on the transcript; `budget` is the sum of
    `step` over the answers up to and with j; base and share are fixed beforehand.
    Reference: docs/theorems.md, Theorem 18 (C): the quantile, not the CVaR, at the price of splitting beta.
    """
    s = standard_deviation_counts
    if not s > 2.0:
        return math.inf
    b1 = down(share * beta)
    level = max(0, math.ceil(math.log2(up(budget / base)))) if budget > base else 0
    b2 = down(down(beta - b1) / ((level + 1) * (level + 2)))
    z = max(1.0, upper_quantile(down(b1 / (2.0 * query * (query + 1.0)))))
    noise = up((s * z + 0.5) / (grid * rows))
    return noise + population_term(b2, up(math.sqrt(base * 2.0**level)))
