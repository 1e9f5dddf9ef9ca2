"""From privacy to population: how far a private transcript can move the mean of a query it chose.

Setting (docs/theorems.md, sections 1 and 2): n independent rows S, a transcript Pi, an event E of probability
beta and a query q~ into [0,1], both functions of Pi. Each term below bounds E[q~(S) - q~(P) | E].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from holdfast.privacy.conversion import zcdp_delta
from holdfast.privacy.rounding import up
from holdfast.validity.normal_quantile import density, profile_at, upper_quantile, upper_tail
from holdfast.validity.search import least

# Differences of tails of size beta, divided by beta: a few units of the last place of 1.
_CANCELLATION = 1e-13


def transfer_width(
    rows: int,
    beta: float,
    delta_of_epsilon: Callable[[float], float],
    *,
    sensitivity: float | None = None,
    low: float = 1e-9,
    high: float = 40.0,
) -> float:
    """T1°: n Delta * inf over epsilon of t + (1-t) delta(epsilon)/beta, t = tanh(epsilon/4).

    Guarantee: E[q~(S) - q~(P) | E] <= result for every event and query that are functions of the transcript.
    Any epsilon that the search meets gives a valid bound; it looks between `low` and `high`.
    Requires: delta_of_epsilon bounds the privacy profile (replace one row) of the *whole adaptive
    transcript*, for every analyst: fixed mechanisms composed, Gaussian noise under a sure cap, or a zCDP
    filter. Queries into [0,1] that are row means (Delta = 1/n, the default), or of the given sensitivity.
    Reference: docs/theorems.md, Theorem 4. Attained by pure DP at n = 1. Cost: some 60 profile values.
    """

    def bound(log_epsilon: float) -> float:
        epsilon = math.exp(log_epsilon)
        t = math.tanh(epsilon / 4.0)
        return t + (1.0 - t) * delta_of_epsilon(epsilon) / beta

    value, _ = least(bound, math.log(low), math.log(high), 55)
    scale = 1.0 if sensitivity is None else up(rows * sensitivity)
    return up(min(1.0, value) * scale, scale)


@lru_cache(maxsize=4096)
def concentrated_term(beta: float, rho: float) -> float:
    """T1° on the zCDP profile: about 0.744 sqrt(2 rho) at beta = 0.05. For mixed sessions.

    Requires: a zCDP filter that surely keeps the sum of all rho below `rho`. Reference: as `transfer_width`.
    """
    if rho <= 0.0:
        return 0.0
    scale = math.sqrt(2.0 * rho)
    return transfer_width(
        1, beta, lambda e: zcdp_delta(rho, e), low=0.05 * scale, high=20.0 * scale + 4.0 * rho
    )


def approximate_term(beta: float, epsilon: float, delta: float) -> float:
    """T1° at one (epsilon, delta): tanh(epsilon/4) + (1 - tanh(epsilon/4)) delta/beta.

    Requires: the transcript is (epsilon, delta)-DP. Reference: docs/theorems.md, Theorem 4.
    """
    t = math.tanh(epsilon / 4.0)
    return min(1.0, up(t + (1.0 - t) * delta / beta))


def gaussian_term(beta: float, mu: float) -> float:
    """T1° on the exact Gaussian profile: about 0.650 mu at beta = 0.05.

    Requires: the transcript is mu-GDP. Reference: docs/theorems.md, Theorem 4.
    """
    if mu <= 0.0 or mu > 20.0:
        return 0.0 if mu <= 0.0 else 1.0

    def bound(t: float) -> float:
        tanh = math.tanh((mu * t - mu * mu / 2.0) / 4.0)
        return tanh + (1.0 - tanh) * profile_at(t, mu) / beta

    return min(1.0, up(least(bound, mu / 2.0, mu / 2.0 + 12.0)[0]))


@lru_cache(maxsize=65536)
def sharp_term(beta: float, mu: float, err: float = 0.0) -> float:
    """T1*: the least transfer term that follows from delta(epsilon) <= delta_GDP(epsilon; mu) + e^epsilon
    err.

    Guarantee: E[q~(S) - q~(P) | E] <= result. With b = Q(t) - err, F(b) = Q(t - mu) and
    s(t) = b + F(b) + 2 e^{-mu^2/8} (Q(t - mu/2) - Q(t0 - mu/2)), Q(t0) = err, every t in (mu/2, t0] gives the
    valid bound (F(b) - b + tanh((mu t - mu^2/2)/4) (beta - s(t))) / beta; it is least where s(t) = beta. So
    the root need not be exact, and the result is certified at the t that was found.
    Requires: that profile for the whole adaptive transcript (Gaussian answers: err = 0; votes: Theorem 9).
    Reference: docs/theorems.md, Theorem 5. Cost: some ten Newton steps.
    """
    if mu <= 0.0 and err <= 0.0:
        return 0.0
    half, shrink = mu / 2.0, math.exp(-mu * mu / 8.0)
    end = upper_quantile(err) if err > 0.0 else 39.0
    if not end > half:
        return 1.0
    beyond = upper_tail(end - half) if err > 0.0 else 0.0

    def total(t: float) -> float:
        return upper_tail(t) - err + upper_tail(t - mu) + 2.0 * shrink * (upper_tail(t - half) - beyond)

    low, high, t = half, end, min(end, max(half, half + upper_quantile(min(0.5, beta / 4.0))))
    for _ in range(60):
        value = total(t)
        low, high = (t, high) if value > beta else (low, t)
        slope = density(t) + density(t - mu) + 2.0 * shrink * density(t - half)
        step = t + value * math.log(value / beta) / slope if value > 0.0 and slope > 0.0 else low
        following = step if low < step < high else (low + high) / 2.0
        if abs(following - t) < 1e-9:
            break
        t = following
    tanh = math.tanh((mu * t - mu * mu / 2.0) / 4.0)
    value = (upper_tail(t - mu) - upper_tail(t) + err + tanh * (beta - total(t))) / beta
    return min(1.0, up(value) + _CANCELLATION)


def classic_term(beta: float, mu: float) -> float:
    """T1: the older f-DP term 1 - 2b/beta with F(b) + b = beta, kept as a reference; about 1.169 mu at 0.05.

    Guarantee: as `sharp_term`; every epsilon gives the valid bound tanh(epsilon/2) + 2
    delta/(beta(1+e^epsilon)).
    Requires: the transcript is mu-GDP. Reference: docs/theorems.md, Theorem 6.
    """
    if mu <= 0.0 or mu > 20.0:
        return 0.0 if mu <= 0.0 else 1.0

    def bound(t: float) -> float:
        r = math.exp(mu * t - mu * mu / 2.0)
        return (r - 1.0) / (r + 1.0) + 2.0 * profile_at(t, mu) / (beta * (1.0 + r))

    return min(1.0, up(least(bound, mu / 2.0, mu / 2.0 + 12.0)[0]))
