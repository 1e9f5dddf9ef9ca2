"""Dwork, Feldman, Hardt, Pitassi, Reingold, Roth 2015: the first high-probability transfer theorem."""

from __future__ import annotations

import math

from holdfast.privacy.rounding import up
from holdfast.validity.normal_quantile import log_upper_tail, two_sided_quantile
from holdfast.validity.search import least, least_power


def dfhprr(rows: int, queries: int, beta: float, standard_deviation: float | None = None) -> float:
    """t + sigma Q^{-1}(beta/4k): Theorem 10 at beta/2 for the worst query of the transcript, noise at beta/2.

    Guarantee: Pr[max_j |a_j - q_j(P)| > width] <= beta for Gaussian noise of standard deviation s counts
    (tuned when not given). The worst query is post-processing of the transcript, so Theorem 10 needs no union
    over k.
    Requires: t >= sqrt(48 ln(8/beta)/n), and the transcript is (t/4, exp(-4 ln(16/beta)/t))-DP; checked here
    with the exact Gaussian profile in logarithms, as such deltas underflow.
    Reference: Dwork et al. 2015 (STOC), Theorem 10, as quoted by Rogers et al. 2020, Theorem B.1.
    """
    half, z = beta / 2.0, two_sided_quantile(beta / 2.0, queries)
    least_t = up(math.sqrt(48.0 * math.log(4.0 / half) / rows))

    def width(log_t: float) -> float:
        t = math.exp(log_t)
        s = _least_noise(t / 4.0, -4.0 * math.log(8.0 / half) / t, queries)
        if standard_deviation is not None:
            return up(t + standard_deviation * z / rows) if standard_deviation >= s else 10.0 + s
        return up(t + s * z / rows)

    if least_t >= 1.0:
        return math.inf
    value = least(width, math.log(least_t) + 1e-12, 0.0, 60)[0]
    return value if value < 1.0 else math.inf


def _least_noise(epsilon: float, log_delta: float, queries: int) -> float:
    """The least standard deviation (counts) that keeps k counts (epsilon, e^log_delta)-DP, on the private
    side."""

    def private(s: float) -> bool:
        return _log_profile(epsilon, math.sqrt(queries) / s) <= log_delta

    return least_power(private, -20.0, 60.0, 70)


def _log_profile(epsilon: float, mu: float) -> float:
    """ln delta_GDP(epsilon; mu), rounded up where the two terms cancel."""
    first = log_upper_tail(epsilon / mu - mu / 2.0)
    second = epsilon + log_upper_tail(epsilon / mu + mu / 2.0)
    gap = min(0.0, second - first)
    return up(first + (math.log(-math.expm1(gap)) if gap < -1e-9 else math.log(1e-9)), abs(first))
