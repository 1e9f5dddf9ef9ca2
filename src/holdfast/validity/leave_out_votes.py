"""Votes on the leave-out meter: what one noisy bit charges, and the half-width of an answer by several.

A vote: a row drawn uniformly with replacement (index secret), its value in [0,1] rounded to a random bit, the bit
flipped with probability a. Its mean is p = a + (1-2a) q(S), and an answer is (A/M - a)/(1-2a), A the ones of M votes.
Notation as in `leave_out`: n rows, m of them left out, n' = n - m, kappa = m/(2 n'(n-1)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from holdfast.privacy.rounding import down, up
from holdfast.validity.leave_out import LeaveOut, kappa
from holdfast.validity.normal_quantile import hazard, log_upper_tail, upper_quantile

_LARGEST_POWER = 700.0
_FURTHEST = 9.0


@lru_cache(maxsize=4096)
def vote_charge(rows: int, left_out: int, flip: float) -> float:
    """What one vote charges, whatever it says; inf where the theorem has nothing to say (few rows, or tiny flips).

    c = ln(1 + kap' (e^{d'} - 1)/d'), d' = kap'/(4a(1-a)), kap' = kap4/(1 - 2 K kappa (1-a)/a), about kappa (1-2a)^2:
    to leading order what Gaussian noise of the same variance charges, whatever a is.
    Guarantee: a vote is a (p)-step of Theorem 24 with the charge c.
    Requires: n >= 3; fresh coins, and indices that are never shown; flip fixed before the vote.
    Reference: docs/theorems.md, Theorem 27.
    """
    lost, curvature = _lost(rows, left_out, flip)
    if not math.isfinite(lost):
        return math.inf
    crowded = 2 * curvature * kappa(rows, left_out) * (1 - flip) / flip
    kept = down(1 - crowded, 1 + crowded)
    if not kept > 0:
        return math.inf
    mean = up(lost / kept)
    most = up(mean / (4 * flip * (1 - flip)))
    if most > _LARGEST_POWER:
        return math.inf
    return up(math.log1p(mean * math.expm1(most) / most))


def votes_half_width(
    left_out: LeaveOut, charged: Sequence[float], votes: int, flip: float, beta: float
) -> float:
    """The half-width of one answer by M votes, missed with probability at most beta, both sides.

    With s = 1/(2(1-2a) sqrt(M)), the least over tangent points u of
        1/(M(1-2a)) + (exponent(b) + max(0, ln Q(u) + u hazard(u)) + ln(2/beta))/b,  b = hazard(u)/s.
    Guarantee: Pr[|answer - q(P)| > this] <= beta.
    Requires: question, M and flip functions of the past; `charged` bounds the charges of everything released before,
    for each m; not of this answer's votes.
    Reference: docs/theorems.md, Theorem 27. The shift by one vote is necessary.
    """
    return _half_width(left_out, tuple(charged), votes, flip, beta)


@lru_cache(maxsize=8192)
def _half_width(
    left_out: LeaveOut, charged: tuple[float, ...], votes: int, flip: float, beta: float
) -> float:
    if not 0 < flip < 0.5 or votes < 1 or math.inf in charged:
        return math.inf
    keep = 1 - 2 * flip
    sigma = up(1 / (2 * keep * math.sqrt(votes)))
    log_miss = up(math.log(2) - math.log(down(beta)))

    u = left_out.tangent(charged, sigma, log_miss, -_FURTHEST, upper_quantile(down(beta) / 2) + 1, 0.0)
    slope, log_tail = hazard(u), log_upper_tail(u)
    b = slope / sigma
    rest = left_out.exponent(charged, b) + max(0.0, log_tail + u * slope) + log_miss
    return up(1 / (votes * keep) + rest / b, (rest + abs(log_tail) + abs(u) * slope) / b)


def votes_as_noisy(sigma: float, flip: float) -> float:
    """How many votes together are as noisy as noise of this standard deviation, on the scale of a mean in [0,1]."""
    return 1 / (2 * (1 - 2 * flip) * sigma) ** 2


def plain_vote_loss(rows: int, left_out: int, flip: float) -> float:
    """kap4: what the plain law of a vote loses at most, on average over the bit; on one bit 1/(4a(1-a)) times that."""
    return _lost(rows, left_out, flip)[0]


def _lost(rows: int, left_out: int, flip: float) -> tuple[float, float]:
    """(kap4, K): the plain law of a vote loses at most kap4 v/p^2 on average; E_J p_J^-2 <= (1 + K E X^2)/p^2."""
    if rows < 3 or not 1 <= left_out < rows or not 0 < flip < 0.5:
        return math.inf, math.inf
    n, m, a, stay, keep = rows, left_out, flip, rows - left_out, 1 - 2 * flip
    above = down(max(1 - keep * m / (stay * a), a / (1 - a)), 1.0)  # 1 + X is at least this
    if not above > 0:
        return math.inf, math.inf
    third = keep * abs(n - 2 * m) / (stay * (n - 2) * a)
    fewer, more = min(m, stay), max(m, stay)
    fourth = (n - 1) / (stay**2 * more) * (3 * fewer * keep**2 / (4 * a * (1 - a)) + (keep / a) ** 2)
    lost = kappa(n, m) * keep**2 * (1 + 2 * third / 3 + fourth / (2 * above))
    return up(lost), up(3 + 4 * third + fourth * (1 + 4 * above) / above**2)
