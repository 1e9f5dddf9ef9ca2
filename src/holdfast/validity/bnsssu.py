"""Bassily, Nissim, Smith, Steinke, Stemmer, Ullman 2016: the monitor argument, printed and with free
constants."""

from __future__ import annotations

import math

from holdfast.privacy.conversion import approx_to_zcdp
from holdfast.privacy.rounding import up
from holdfast.validity.normal_quantile import profile_at, two_sided_quantile, upper_quantile, upper_tail
from holdfast.validity.search import least, least_power, tuned


def bnsssu(rows: int, queries: int, beta: float, standard_deviation: float | None = None) -> float:
    """The unrounded theorem: (tau' + 2 s beta' + e^eps - 1 + s delta) / (1 - (1-beta)^s), everything free.

    Guarantee: Pr[max_j |a_j - q_j(P)| > width] <= beta for Gaussian noise (standard deviation in counts;
    tuned when not given), with the exact Gaussian profile. For given noise and s the best beta' has
    phi(z) = sigma/(4ks) and the best epsilon has Q(t) = 1/s, eps = mu t - mu^2/2; any choice is valid.
    Requires: answers in [0,1] (clipping helps), k adaptive statistical queries.
    Reference: Bassily et al. 2016, Theorem 7.2 before rounding = Rogers et al. 2020, eq. (7).
    """

    def width(s_counts: float, monitors: float) -> float:
        sigma, mu = s_counts / rows, math.sqrt(queries) / s_counts
        z = math.sqrt(max(1.0, 2.0 * math.log(4.0 * queries * monitors / (sigma * math.sqrt(2.0 * math.pi)))))
        inner = sigma * z + 2.0 * monitors * min(1.0, 2.0 * queries * upper_tail(z))
        t = max(mu / 2.0, upper_quantile(1.0 / monitors))
        epsilon = mu * t - mu * mu / 2.0
        if epsilon > 5.0:
            return math.inf
        inner += math.expm1(epsilon) + monitors * profile_at(t, mu)
        return up(inner / -math.expm1(monitors * math.log1p(-beta)))

    def best(log_s: float) -> float:
        return least(lambda x: width(math.exp(log_s), math.exp(x)), 0.7, 14.0, 40)[0]

    return tuned(best, rows, standard_deviation)


def bnsssu_printed(rows: int, queries: int, beta: float) -> float:
    """The printed theorem: (alpha/64, alpha beta/32)-DP and (alpha/8, alpha beta/16) on the sample give
    (alpha, beta).

    Guarantee: the least alpha for which one Gaussian noise meets both; privacy by the tight zCDP conversion.
    Requires: as `bnsssu`. Reference: Bassily et al. 2016, main transfer theorem = Fish et al. 2020, Theorem
    4.
    """
    if not _printed_holds(rows, queries, beta, 1.0 - 1e-12):
        return math.inf
    return least_power(lambda alpha: _printed_holds(rows, queries, beta, alpha), math.log(1e-9), 0.0, 50)


def _printed_holds(rows: int, queries: int, beta: float, alpha: float) -> bool:
    rho = approx_to_zcdp(alpha / 64.0, alpha * beta / 32.0)
    if rho <= 0.0:
        return False
    sigma = math.sqrt(queries / (2.0 * rho)) / rows
    return up(sigma * two_sided_quantile(alpha * beta / 16.0, queries)) <= alpha / 8.0
