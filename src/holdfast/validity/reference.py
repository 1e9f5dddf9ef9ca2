"""Our earlier theorems as complete widths: named references and cross-checks of the shipped forms."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from holdfast.privacy.rounding import down, up
from holdfast.validity.average_kl import information_term, information_votes_term
from holdfast.validity.gaussian_answers import MOST_QUERIES, tuned
from holdfast.validity.martingale import posterior_term, posterior_votes_term
from holdfast.validity.normal_quantile import hazard, two_sided_quantile
from holdfast.validity.search import least
from holdfast.validity.transfer import approximate_term, classic_term, concentrated_term, gaussian_term


def transfer(
    rows: int,
    queries: int,
    beta: float,
    standard_deviation: float | None = None,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    sample_error: float = 0.0,
) -> float:
    """T1° as a width. Default: Gaussian noise of s counts (tuned when not given), CVaR plus T1° on its
    profile.

    Guarantee: Pr[max_j |a_j - q_j(P)| > width] <= beta, for every adaptive analyst.
    Requires: with rho, or with epsilon (and delta): any mechanism or mixture whose whole transcript has that
    loss; `sample_error` then bounds the CVaR at beta of max_j |a_j - q_j(S)|, for which (alpha0,
    beta0)-accuracy of answers in [0,1] gives alpha0 + (1 - alpha0) beta0/beta.
    Reference: docs/theorems.md, Theorems 3 and 4.
    """
    if rho is not None:
        return up(sample_error) + concentrated_term(beta, rho)
    if epsilon is not None:
        return up(sample_error) + approximate_term(beta, epsilon, delta)
    return _gaussian(rows, queries, beta, standard_deviation, gaussian_term)


def t1(rows: int, queries: int, beta: float, standard_deviation: float | None = None) -> float:
    """T1, the older f-DP transfer, with the CVaR of Gaussian noise. Reference: docs/theorems.md, Theorem
    6."""
    return _gaussian(rows, queries, beta, standard_deviation, classic_term)


def t2(rows: int, queries: int, beta: float, standard_deviation: float | None = None) -> float:
    """T2 (mutual information) with the CVaR of Gaussian noise. Reference: docs/theorems.md, Theorem 12."""
    return _gaussian(rows, queries, beta, standard_deviation, information_term)


def t4(rows: int, queries: int, beta: float, standard_deviation: float | None = None) -> float:
    """T4 (posterior martingale) with the CVaR of Gaussian noise. Reference: docs/theorems.md, Theorem 15."""
    return _gaussian(rows, queries, beta, standard_deviation, posterior_term)


def t3(rows: int, queries: int, beta: float, votes: int | None = None, flip: float = 0.25) -> float:
    """T3 (mutual information) with the CVaR of the votes. Reference: docs/theorems.md, Theorem 13."""
    return _votes(rows, queries, beta, votes, flip, information_votes_term)


def t4v(rows: int, queries: int, beta: float, votes: int | None = None, flip: float = 0.25) -> float:
    """T4v (posterior martingale with remainder) with the CVaR of the votes. Theorem 16 of
    docs/theorems.md."""
    return _votes(rows, queries, beta, votes, flip, posterior_votes_term)


def votes_cvar(queries: int, beta: float, effective: float) -> float:
    """CVaR at beta of the largest of k sampling errors: (s + Q(s)/phi(s))/(2 sqrt e), s = sqrt(2
    ln(2k/beta)).

    From Hoeffding, Pr[|error| > x] <= 2 exp(-2 e x^2) with e = m(1-2a)^2. Reference: docs/theorems.md, Lemma
    13.1.
    """
    s = math.sqrt(2.0 * math.log(2.0 * queries / beta))
    return up((s + 1.0 / hazard(s)) / (2.0 * math.sqrt(effective)), s)


@lru_cache(maxsize=4096)
def _gaussian(
    rows: int,
    queries: int,
    beta: float,
    standard_deviation: float | None,
    term: Callable[[float, float], float],
) -> float:
    """sigma phi(z)/Q(z) + 1/(2n) + term(beta, mu), 2k Q(z) = beta, mu^2 = k/(s^2 - 4)."""
    if queries > MOST_QUERIES:
        return math.inf
    beta = down(beta)
    tail = hazard(two_sided_quantile(beta, queries))

    def width(s: float) -> float:
        if not s > 2.0:
            return math.inf
        mu = up(math.sqrt(queries / ((s - 2.0) * (s + 2.0))))
        return up((s * tail + 0.5) / rows) + term(beta, mu)

    return tuned(width, rows, queries, 1)[0] if standard_deviation is None else width(standard_deviation)


@lru_cache(maxsize=4096)
def _votes(
    rows: int,
    queries: int,
    beta: float,
    votes: int | None,
    flip: float,
    term: Callable[[int, int, float, float], float],
) -> float:
    if not 0.0 < flip < 0.5 or queries > MOST_QUERIES:
        return math.inf

    def width(m: int) -> float:
        noise = votes_cvar(queries, beta, m * (1.0 - 2.0 * flip) ** 2)
        return noise + term(rows, queries * m, flip, beta)

    if votes is not None:
        return width(votes)
    return least(lambda x: width(max(1, round(math.exp(x)))), 1.0, math.log(rows) + 7.0, 45)[0]
