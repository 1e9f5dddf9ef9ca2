"""Comparisons and quantiles on the leave-out meter: what their outcome says about the population.

`charged` bounds the charges of all that was told before, for each m; the tilt b is at most the rate lam of the release,
and is chosen from public numbers. Notation as in `leave_out`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from holdfast.privacy.rounding import down, up
from holdfast.validity.leave_out import LeaveOut
from holdfast.validity.search import least

_SMALLEST = 12.0


def comparison_half_width(left_out: LeaveOut, charged: Sequence[float], rate: float, beta: float) -> float:
    """tau of a comparison q(S) + Logistic(1/rate) > T: the least over b <= rate of (exponent(b) + ln(1/beta))/b.

    Guarantee: Pr[quiet and q(P) > T + tau] <= beta, and Pr[alarm and q(P) < T - tau] <= beta. For several alarms in one
    step quiet needs one such term, and each alarm one.
    Requires: q, rate, T and beta functions of the past; T may hold secret noise, and then this is about T, not about
    the threshold that was announced.
    Reference: docs/theorems.md, Theorem 29.
    """
    return _tail(left_out, charged, rate, up(-math.log(down(beta))))


def secret_threshold_reach(scale: float, beta: float) -> float:
    """r with Pr[|rho| > r] <= beta for logistic rho of this scale: s ln(2/beta - 1). Once for each draw, both sides."""
    return max(0.0, up(scale * math.log(up(2 / down(beta) - 1))))


def quantile_half_width(
    left_out: LeaveOut, charged: Sequence[float], rate: float, smoothing: float, points: int, beta: float
) -> float:
    """tau of a point e, chosen among |E| by [1 + e^{a(r-F(e))} + e^{a(F(e-)-r)}]^{-lam/a}: F by the rows at most e.

    The least over b <= lam of (exponent(b) + ln(|E|/beta) + (lam/a) ln 3)/b.
    Guarantee: with probability 1 - beta, F_P(e-) <= r + tau and F_P(e) >= r - tau.
    Requires: r in [0,1]; a uniform base measure; every row mapped into the grid by a fixed monotone map; all functions
    of the past. It charges `quantile_charge` to what comes after.
    Reference: docs/theorems.md, Theorem 29.
    """
    if not 0 < smoothing <= rate:
        return math.inf
    log_miss = up(math.log(points) - math.log(down(beta)) + rate / smoothing * math.log(3))
    return _tail(left_out, charged, rate, log_miss)


def _tail(left_out: LeaveOut, charged: Sequence[float], rate: float, log_miss: float) -> float:
    """The least over b <= rate of (exponent(b) + log_miss)/b."""

    def at(x: float) -> float:
        b = rate * math.exp(-x)
        return up((left_out.exponent(charged, b) + log_miss) / b)

    return min(at(0.0), least(at, 0.0, _SMALLEST)[0])
