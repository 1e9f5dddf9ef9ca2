"""Jung, Ligett, Neel, Roth, Sharifi-Malvajerdi, Shenfeld 2020: transfer by resampling from the posterior."""

from __future__ import annotations

import math

from holdfast.privacy.rounding import up
from holdfast.validity.normal_quantile import profile_at, two_sided_quantile, upper_quantile, upper_tail
from holdfast.validity.search import least, tuned


def jlnrss(rows: int, queries: int, beta: float, standard_deviation: float | None = None) -> float:
    """As published, for Gaussian noise: alpha + (e^eps - 1) + 3c with c = d and both halves of beta equal.

    Guarantee: Pr[max_j |a_j - q_j(P)| > width] <= beta: (alpha, beta c/2)-accuracy on the sample and
    (eps, beta c/2)-DP give alpha + (e^eps - 1) + c + 2d at d = c. eps comes from zCDP,
    rho + 2 sqrt(rho ln(sqrt(pi rho)/delta)). Noise (standard deviation in counts) and c are tuned when not
    given.
    Requires: answers in [0,1] (clipped), k adaptive statistical queries.
    Reference: Jung et al. 2020, Theorem 4; conversion: Bun and Steinke 2016, Lemma 3.6.
    """

    def width(s_counts: float, c: float) -> float:
        share = beta * c / 2.0
        rho = queries / (2.0 * s_counts * s_counts)
        epsilon = rho + 2.0 * math.sqrt(rho * max(0.0, math.log(math.sqrt(math.pi * rho) / share)))
        if epsilon > 5.0:
            return math.inf
        return up(s_counts * two_sided_quantile(share, queries) / rows + math.expm1(epsilon) + 3.0 * c)

    def best(log_s: float) -> float:
        return least(lambda x: width(math.exp(log_s), math.exp(x)), -20.0, -0.1, 40)[0]

    return tuned(best, rows, standard_deviation)


def jlnrss_exact(rows: int, queries: int, beta: float, standard_deviation: float | None = None) -> float:
    """The same theorem with the exact Gaussian profile and every constant free.

    Guarantee: as `jlnrss`. With a share w of beta for accuracy, the best c has phi(z) = sigma w beta/(2k) and
    the best epsilon has Q(t) = (1-w) beta/2, eps = mu t - mu^2/2; any choice is valid.
    Requires: as `jlnrss`. Reference: Jung et al. 2020, Theorem 4 and Lemmas 7 and 15; profile of Dong et al.
    2022.
    """

    def width(s_counts: float, w: float) -> float:
        sigma, mu = s_counts / rows, math.sqrt(queries) / s_counts
        z = math.sqrt(max(1.0, 2.0 * math.log(2.0 * queries / (sigma * w * beta * math.sqrt(2.0 * math.pi)))))
        total = sigma * z + 2.0 * queries * upper_tail(z) / (w * beta)
        t = max(mu / 2.0, upper_quantile((1.0 - w) * beta / 2.0))
        epsilon = mu * t - mu * mu / 2.0
        if epsilon > 5.0:
            return math.inf
        return up(total + math.expm1(epsilon) + 2.0 * profile_at(t, mu) / ((1.0 - w) * beta))

    def best(log_s: float) -> float:
        return least(lambda w: width(math.exp(log_s), w), 0.001, 0.999, 40)[0]

    return tuned(best, rows, standard_deviation)
