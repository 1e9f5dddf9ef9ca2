"""Published bounds through mutual information: bits of S in the transcript turned into a half-width.

The information of k Gaussian answers is I <= k/(8 n sigma^2) nats (row-wise chain rule, docs/theorems.md,
Theorem 12). With rho = 1/(8 n^2 sigma^2) this is rho k n, the quantity in the papers' formulas, and their
noise term (1/(2n)) sqrt(ln(4k/beta)/rho) is then exactly sigma sqrt(2 ln(4k/beta)). Read with rho = 1/(2 n^2
sigma^2), as zCDP has it, that noise term would be half of what the tail needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from holdfast.privacy.rounding import up
from holdfast.validity.search import least, tuned


def gaussian_information(rows: int, queries: int, standard_deviation: float) -> float:
    """I(S; transcript) <= k n/(8 s^2) nats for k Gaussian answers with s = n sigma counts. Theorem 12."""
    return up(rows * queries / (8.0 * standard_deviation * standard_deviation))


def russo_zou(rows: int, queries: int, beta: float, standard_deviation: float | None = None) -> float:
    """sigma sqrt(2 ln(4k/beta)) + (2/beta) sqrt((I + ln 2)/(2n)): bias in expectation, then Markov.

    Guarantee: Pr[max_j |a_j - q_j(P)| > width] <= beta for Gaussian noise (counts; tuned when not given).
    Requires: k adaptive statistical queries. The absolute value costs ln 2 (Donsker-Varadhan on both signs).
    Reference: Russo and Zou 2016, |E bias| <= sd sqrt(2I) with sd = 1/(2 sqrt n).
    """

    def population(information: float) -> float:
        return 2.0 / beta * math.sqrt((information + math.log(2.0)) / (2.0 * rows))

    return _tuned(rows, queries, beta, standard_deviation, population)


def xu_raginsky(rows: int, queries: int, beta: float, standard_deviation: float | None = None) -> float:
    """sigma sqrt(2 ln(4k/beta)) + sqrt((2/n)(2I/beta + ln(4/beta))).

    Guarantee and Requires: as `russo_zou`.
    Reference: Xu and Raginsky 2017, Theorem 3, as used by Rogers et al. 2020, eq. (14); natural logarithms.
    """

    def population(information: float) -> float:
        return math.sqrt(2.0 / rows * (2.0 * information / beta + math.log(4.0 / beta)))

    return _tuned(rows, queries, beta, standard_deviation, population)


def rogers(rows: int, queries: int, beta: float, standard_deviation: float | None = None) -> float:
    """sigma sqrt(2 ln(4k/beta)) + sqrt(min over l of (2I - ln(1-l))/l / (2 n beta)). The best published
    bound.

    Guarantee and Requires: as `russo_zou`.
    Reference: Rogers et al. 2020, Theorem 2.1 (Gaussian noise), through their Theorem C.2 and Chebyshev.
    """
    return _tuned(rows, queries, beta, standard_deviation, lambda i: second_moment(rows, beta, i))


def blanc(rows: int, queries: int, beta: float, votes: int | None = None) -> float:
    """m plain votes an answer (one random row, one bit, no flip): sampling error plus `second_moment` at
    4km/n.

    Guarantee: Pr[max_j |a_j - q_j(P)| > width] <= beta.
    Requires: fresh uniform rows for every vote, indices secret; n >= 2; m tuned when not given. Not private.
    Reference: Blanc 2023, Theorem 2: I <= 4 E[sum w (r-1)]/n with w = 1, r = 2; then Rogers et al., Theorem
    C.2.
    """

    def width(m: float) -> float:
        information = 4.0 * queries * m / rows
        return up(
            math.sqrt(math.log(4.0 * queries / beta) / (2.0 * m)) + second_moment(rows, beta, information)
        )

    if votes is not None:
        return width(votes)
    value = least(lambda x: width(round(math.exp(x))), 0.0, math.log(rows) + 5.0, 60)[0]
    return value if value < 1.0 else math.inf


def feldman_steinke(rows: int, queries: int, beta: float) -> float:
    """(4/beta) max(tau/2, tau^2), tau = sqrt(sqrt(2k ln 2k)/n): noise scaled to the variance, then Markov.

    Guarantee: Pr[max_j |a_j - q_j(P)| > width] <= beta, at the largest standard deviation 1/2 of a query.
    Requires: Gaussian noise of variance max(var/t, 1/T), T = n^2/k, t = n sqrt(2 ln(2k)/k).
    Reference: Feldman and Steinke 2018, Theorem 1.1: E max |error|/max(tau sd, tau^2) <= 4.
    """
    tau = math.sqrt(math.sqrt(2.0 * queries * math.log(2.0 * queries)) / rows)
    return up(4.0 / beta * max(tau / 2.0, tau * tau))


def second_moment(rows: int, beta: float, information: float) -> float:
    """sqrt(min over l in (0,1) of (2I - ln(1-l))/l / (2 n beta)): Chebyshev at beta/2; any l is valid.

    Reference: Rogers et al. 2020, Theorem C.2: E (q(S) - q(P))^2 <= (1/4n) min over l of (2I - ln(1-l))/l.
    """

    def at(logit: float) -> float:
        odds = math.exp(logit)
        return (2.0 * information + math.log1p(odds)) * (1.0 + odds) / odds

    return up(math.sqrt(least(at, -3.0, 40.0, 45)[0] / (2.0 * rows * beta)))


def _tuned(
    rows: int,
    queries: int,
    beta: float,
    standard_deviation: float | None,
    population: Callable[[float], float],
) -> float:
    tail = math.sqrt(2.0 * math.log(4.0 * queries / beta))

    def width(log_s: float) -> float:
        s = math.exp(log_s)
        return up(s / rows * tail + population(gaussian_information(rows, queries, s)))

    return tuned(width, rows, standard_deviation, beyond=3.0)
