"""The exact privacy profile of Gaussian noise: mu-GDP to and from (epsilon, delta).

delta(epsilon) = Q(a) - e^epsilon Q(b) with a = epsilon/mu - mu/2 and b = a + mu. Since phi(a) = e^epsilon
phi(b) this is phi(a) (R(a) - R(b)), R being Mills' ratio: no large number is subtracted from another. For
small mu the difference is the integral of -R' from a to b.
"""

from __future__ import annotations

import math

from holdfast.check import Number, exact, exact_positive, probability
from holdfast.privacy.normal_tail import density, mills, mills_slope, tail
from holdfast.privacy.rounding import MARGIN, down, float_up, up

_LEAST = 5e-324
# Gauss-Legendre on [-1, 1], 8 points: error below 1e-16 for an interval no longer than 1/4.
_NODES = (0.1834346424956498, 0.5255324099163290, 0.7966664774136267, 0.9602898564975363)
_WEIGHTS = (0.3626837833783620, 0.3137066458778873, 0.2223810344533745, 0.1012285362903763)


def gdp_delta(epsilon: Number, mu: Number) -> float:
    """The least delta for which mu-GDP implies (epsilon, delta)-DP, rounded up.

    Reference: Balle and Wang 2018, Thm 8; Dong, Roth and Su 2019, Cor. 2.13. Cost: microseconds.
    """
    eps, m = float(exact("epsilon", epsilon)), float_up(exact("mu", mu))
    return _delta(eps, m) if m else 0.0


def gdp_epsilon(mu: Number, delta: Number) -> float:
    """The least epsilon for which mu-GDP implies (epsilon, delta)-DP.

    Guarantee: gdp_delta(result, mu) <= delta, checked before it is returned. Cost: a few Newton steps.
    """
    m, d = float_up(exact("mu", mu)), probability("delta", delta)
    if m == 0.0 or _delta(0.0, m) <= d:
        return 0.0
    # delta(epsilon) <= Q(a) <= exp(-a^2/2), which is d at this upper end.
    low, high = 0.0, m * m / 2 + m * math.sqrt(-2.0 * math.log(d))
    eps = high
    for _ in range(60):
        value = _delta(eps, m)
        low, high = (eps, high) if value > d else (low, eps)
        a, b = eps / m - m / 2, eps / m + m / 2
        slope = density(a) * mills(b) if a < 40.0 else 0.0
        step = eps + math.log(value / d) * value / slope if slope else low
        following = step if low < step < high else (low + high) / 2
        if abs(following - eps) <= 1e-14 * eps:
            break
        eps = following
    grow = MARGIN
    while _delta(eps, m) > d:
        eps, grow = eps * (1.0 + grow), 2.0 * grow
    return up(eps)


def approx_to_gdp(epsilon: Number, delta: Number) -> float:
    """The largest mu that still implies (epsilon, delta)-DP, rounded down far enough for its square to be
    safe too.

    Guarantee: gdp_delta(epsilon, result) <= delta, checked before it is returned. Cost: a few Newton steps.
    """
    eps, d = float(exact_positive("epsilon", epsilon)), probability("delta", delta)
    root = math.sqrt(-2.0 * math.log(d))
    low = high = mu = 2.0 * eps / (root + math.sqrt(root * root + 2.0 * eps))  # as in gdp_epsilon
    while _delta(eps, high) <= d:
        low, high = high, 2.0 * high
    for _ in range(60):
        value = _delta(eps, mu)
        low, high = (low, mu) if value > d else (mu, high)
        slope = density(eps / mu - mu / 2)
        step = mu - math.log(value / d) * value / slope if slope else high
        following = step if low < step < high else (low + high) / 2
        if abs(following - mu) <= 1e-14 * mu:
            break
        mu = following
    shrink = MARGIN
    while mu > 0.0 and _delta(eps, mu) > d:
        mu, shrink = max(0.0, mu * (1.0 - shrink)), 2.0 * shrink
    return down(mu)


def _delta(eps: float, mu: float) -> float:
    a, b = eps / mu - mu / 2, eps / mu + mu / 2
    if a > 38.6:
        return _LEAST  # Q(38.6) is below the least float
    if mu < 0.25:
        centre, half = (a + b) / 2, mu / 2
        integral = half * sum(
            w * (mills_slope(centre + half * x) + mills_slope(centre - half * x))
            for x, w in zip(_NODES, _WEIGHTS, strict=True)
        )
        value = size = density(a) * integral
    elif a > 0.0:
        value, size = density(a) * (mills(a) - mills(b)), density(a) * mills(a)
    else:
        value, size = tail(a) - density(a) * mills(b), 1.0
    # a and b carry rounding errors of b/2^52 each, which move phi(a) by a factor 1 + |a| b/2^52.
    return min(1.0, up(value * (1.0 + 2.0**-50 * min(abs(a) * b, 2.0**50)), size))
