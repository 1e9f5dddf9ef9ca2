"""Answers with logistic noise on the leave-out meter: pure epsilon, and covered like Gaussian answers.

Noise of scale B, on the scale of a mean, has the density proportional to 1/cosh(x/2B)^2, or that law on multiples of a
step. Notation as in `leave_out`; H(r) = -r ln r - (1-r) ln(1-r).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from holdfast.privacy.rounding import down, up
from holdfast.validity.leave_out import LeaveOut

Floats = NDArray[np.float64]

TELLS_LIKE = math.sqrt(2)
"""Logistic noise of scale B tells what Gaussian noise of standard deviation B times this tells (Theorem 101)."""
_FURTHEST = 40.0
_POINTS = 61


def logistic_told(radius_squared: float, scale: float) -> float:
    """Numbers told together with logistic noise of this scale each: 2 R^2/B^2, R the radius of a ball that holds every
    row's vector; a scalar in [0,1] has R^2 = 1/4.

    Reference: docs/theorems.md, Theorem 101; discrete logistic noise tells no more.
    """
    return up(2 * radius_squared / scale**2)


def logistic_half_width(
    left_out: LeaveOut, charged: Sequence[float], scale: float, beta: float, step: float = 0.0
) -> float:
    """The half-width of one answer q(S) + logistic noise, missed with probability at most beta, both sides.

    With `step` > 0 the noise is discrete logistic on multiples of `step`, and the values are too.
    Guarantee: Pr[|a - q(P)| > this] <= beta. The least over tilts b = r/B, 0 < r <= 1, of
        (exponent(b) + ln(2/beta) - H(r))/b,
    plus step/2 where r >= 1/2, or a whole step for any r.
    Requires: q and scale functions of the past; charges of the past only, not of this answer.
    Reference: docs/theorems.md, Theorem 102.
    """
    return _half_width(left_out, tuple(charged), scale, beta, step)


@lru_cache(maxsize=8192)
def _half_width(
    left_out: LeaveOut, charged: tuple[float, ...], scale: float, beta: float, step: float
) -> float:
    log_miss = up(math.log(2) - math.log(down(beta)))

    def at(u: float, moved: float) -> float:
        b = _share(u) / scale
        rest = left_out.exponent(charged, b) + log_miss - down(_entropy(u))
        return up(rest / b + moved, (log_miss + 1) / b)

    near, far = (_best(left_out, charged, scale, log_miss, low) for low in (0.0, -_FURTHEST))
    return min(at(near, step / 2), at(_FURTHEST, step / 2), at(far, step))


def _share(u: float) -> float:
    """r = 1/(1 + e^-u)."""
    return 1 / (1 + math.exp(-u))


def _entropy(u: float) -> float:
    """H(r), where ln r = -ln(1 + e^-u) and ln(1-r) = -ln(1 + e^u)."""
    return _share(u) * math.log1p(math.exp(-u)) + _share(-u) * math.log1p(math.exp(u))


def _best(left_out: LeaveOut, charged: tuple[float, ...], scale: float, log_miss: float, low: float) -> float:
    """u = ln(r/(1-r)) from `low` on where the half-width is about least.

    Any point is valid where such a half-width is claimed, so this is a search and proves nothing.
    """
    sizes, weights, high = np.array(left_out.sizes), np.array(left_out.weights), _FURTHEST
    for _ in range(3):
        u = np.linspace(low, high, _POINTS)
        r = 1 / (1 + np.exp(-u))
        entropy = r * np.log1p(np.exp(-u)) + (1 - r) * np.log1p(np.exp(u))
        b = r / scale
        terms = np.asarray(charged)[:, None] + b * b / (8 * sizes[:, None]) - np.log(weights)[:, None]
        smallest = terms.min(axis=0)
        exponent = smallest - np.log(np.exp(smallest - terms).sum(axis=0))
        best = int(((exponent + log_miss - entropy) / b).argmin())
        low, high = float(u[max(best - 1, 0)]), float(u[min(best + 1, _POINTS - 1)])
    return (low + high) / 2


def noise_table(log_miss: float) -> tuple[Floats, Floats, Floats]:
    """(s, f(s), b s) along r, for schedules of falling noise: s that tells as much, f its least half-width but for what
    was told, b the tilt there; in units of 1/sqrt(n).

    f = min over b of b/8 + (L - H(r))/b, r = b B; at the minimum b^2 = 8 (L + ln(1-r)), so B = r/b follows from r.
    """
    last = log_miss + math.log(-math.expm1(-log_miss))  # there 1 - r = e^-L
    u = np.concatenate([np.linspace(-_FURTHEST, last - 1, 3000)[:-1], last - np.logspace(0, -9, 3000)])
    r, log_rest = 1 / (1 + np.exp(-u)), np.logaddexp(0.0, u)
    square = 8 * (log_miss - log_rest)
    r, u, square = r[square > 0], u[square > 0], square[square > 0]
    entropy = r * np.logaddexp(0.0, -u) + (1 - r) * np.logaddexp(0.0, u)
    b = np.sqrt(square)
    return TELLS_LIKE * r / b, b / 8 + (log_miss - entropy) / b, TELLS_LIKE * r
