"""The standard normal law for widths: quantile and hazard rounded up, the Gaussian profile along its
curve."""

from __future__ import annotations

import math
from statistics import NormalDist

from holdfast.privacy.normal_tail import density, mills
from holdfast.privacy.normal_tail import tail as upper_tail
from holdfast.privacy.rounding import up

__all__ = [
    "density",
    "hazard",
    "log_upper_tail",
    "profile_at",
    "two_sided_quantile",
    "upper_quantile",
    "upper_tail",
]

_STANDARD = NormalDist()


def upper_quantile(probability: float) -> float:
    """z with Q(z) <= probability, the least such z up to rounding; inf when probability is 0."""
    if probability <= 0.0:
        return math.inf
    z = -_STANDARD.inv_cdf(probability) if probability < 1.0 else -38.0
    # inv_cdf errs by a few units of the last place; walk up until the tail itself says that we are safe.
    step = 4e-16 * max(1.0, abs(z))
    while upper_tail(z) > probability * (1.0 - 1e-14):
        z += step
        step *= 2.0
    return z


def two_sided_quantile(beta: float, queries: int) -> float:
    """z with 2k Q(z) <= beta: the noise of k answers stays inside z standard deviations, both sides."""
    try:
        share = beta / (2.0 * queries)
    except OverflowError:
        return math.inf
    return upper_quantile(share)


def hazard(z: float) -> float:
    """phi(z)/Q(z) = E[g | g > z] for z >= -30, rounded up."""
    return up(1.0 / mills(z)) if z < math.inf else math.inf


def log_upper_tail(x: float) -> float:
    """ln Q(x), also where Q(x) underflows."""
    if x < 0.0:
        return math.log1p(-upper_tail(-x))
    return math.log(mills(x)) - 0.5 * x * x - 0.5 * math.log(2.0 * math.pi)


def profile_at(t: float, mu: float) -> float:
    """delta_GDP at epsilon = mu t - mu^2/2, that is Q(t - mu) - e^epsilon Q(t), plus 1e-15 for its rounding.

    Quick, and exact enough beside beta; `privacy.gdp_delta` has full relative accuracy.
    """
    return max(0.0, upper_tail(t - mu) - math.exp(mu * t - mu * mu / 2.0) * upper_tail(t)) + 1e-15
