"""From one notion of privacy to another. Losses are rounded up, budgets are rounded down."""

from __future__ import annotations

import math

from holdfast.check import LARGEST, Number, exact, exact_positive, probability, refusal
from holdfast.privacy.profile import approx_to_gdp, gdp_delta, gdp_epsilon
from holdfast.privacy.rounding import down, float_up, up

__all__ = [
    "approx_to_gdp",
    "approx_to_zcdp",
    "gdp_delta",
    "gdp_epsilon",
    "pure_to_zcdp",
    "zcdp_delta",
    "zcdp_to_approx",
]

_TINIEST = 1e-290  # smaller rho are treated as this one, so that no intermediate step overflows


def pure_to_zcdp(epsilon: Number) -> float:
    """The rho of any epsilon-DP mechanism.

    Guarantee: epsilon-DP implies rho-zCDP with rho = epsilon * tanh(epsilon/2).
    Reference: Steinke 2024, "Tight RDP and zCDP bounds from pure DP". Tight: randomized response
    attains it at order 1. Cost: O(1).
    """
    eps = float_up(exact("epsilon", epsilon))
    return up(eps * math.tanh(eps / 2)) if eps else 0.0


def zcdp_to_approx(rho: Number, delta: Number) -> float:
    """The least epsilon for which rho-zCDP implies (epsilon, delta)-DP by the tight Rényi conversion.

    Guarantee: rho-zCDP implies (result, delta)-DP. Any order alpha gives a valid epsilon; we find the best
    one and evaluate the bound there, so that an imperfect search could only cost tightness.
    Reference: Canonne, Kamath and Steinke 2020, section 2.3. With t = alpha - 1 the bound is
    (1+t) rho - ln(1+1/t) + (ln(1/delta) - ln(1+t))/t, and its derivative vanishes exactly once, where
    rho t^2 + ln(1+t) = ln(1/delta). Cost: some ten Newton steps.
    """
    r, log_delta = float_up(exact("rho", rho)), -math.log(probability("delta", delta))
    if r == 0.0:
        return 0.0
    r = max(r, _TINIEST)
    low, high = 0.0, math.sqrt(log_delta / r)
    if log_delta < 700.0:
        high = min(high, math.expm1(log_delta))
    t = high
    for _ in range(100):
        gap = r * t * t + math.log1p(t) - log_delta
        low, high = (low, t) if gap > 0.0 else (t, high)
        step = t - gap / (2.0 * r * t + 1.0 / (1.0 + t))
        following = step if low < step < high else (low + high) / 2
        if abs(following - t) <= 1e-13 * t:
            break
        t = following
    return _epsilon_at(t, r, log_delta)


def approx_to_zcdp(epsilon: Number, delta: Number) -> float:
    """The largest rho that still implies (epsilon, delta)-DP, rounded down.

    Guarantee: zcdp_to_approx(result, delta) <= epsilon, checked before it is returned.
    Reference: the inverse of `zcdp_to_approx`; on the curve of optimal orders both rho and epsilon fall as t
    grows.
    Cost: a bisection of 64 steps.
    """
    eps, log_delta = float(exact_positive("epsilon", epsilon)), -math.log(probability("delta", delta))
    low, high = -345.0, math.log(math.expm1(log_delta)) if log_delta < 700.0 else log_delta
    for _ in range(64):
        middle = (low + high) / 2
        t = math.exp(middle)
        best = (log_delta - math.log1p(t)) / t / t * (1.0 + 2.0 * t) - math.log1p(1.0 / t)
        low, high = (middle, high) if best > eps else (low, middle)
    t = math.exp(high)
    terms = eps, math.log1p(1.0 / t), -(log_delta - math.log1p(t)) / t
    rho = down(sum(terms) / (1.0 + t), sum(map(abs, terms)) / (1.0 + t))
    shrink = 2.0**-44
    while rho > 0.0 and zcdp_to_approx(max(rho, _TINIEST), delta) > eps:
        rho, shrink = max(0.0, rho * (1.0 - shrink)), 2.0 * shrink
    return rho


def zcdp_delta(rho: Number, epsilon: Number) -> float:
    """The least delta for which rho-zCDP implies (epsilon, delta)-DP.

    Guarantee: rho-zCDP implies (epsilon, result)-DP. Reference: as `zcdp_to_approx`; the logarithm of the
    bound, t((1+t) rho - epsilon) - t ln(1+1/t) - ln(1+t), is convex in t. Cost: a bisection.
    """
    r, eps = float_up(exact("rho", rho)), float(exact("epsilon", epsilon))
    if r == 0.0:
        return 0.0
    r = max(r, _TINIEST)
    low, high = -700.0, 700.0
    for _ in range(64):
        middle = (low + high) / 2
        t = math.exp(middle)
        slope = (1.0 + 2.0 * t) * r - eps - math.log1p(1.0 / t)
        low, high = (middle, high) if slope < 0.0 else (low, middle)
    t = math.exp(high)
    terms = t * (1.0 + t) * r, -t * eps, -t * math.log1p(1.0 / t), -math.log1p(t)
    exponent = up(sum(terms), sum(map(abs, terms)))
    return 1.0 if not exponent < 0.0 else min(1.0, up(math.exp(exponent)))


def _epsilon_at(t: float, rho: float, log_delta: float) -> float:
    terms = (1.0 + t) * rho, -math.log1p(1.0 / t), (log_delta - math.log1p(t)) / t
    epsilon = up(sum(terms), sum(map(abs, terms)))
    if not epsilon < LARGEST:
        raise refusal("a number that gives a finite epsilon", "rho", rho, "add noise")
    return max(0.0, epsilon)
