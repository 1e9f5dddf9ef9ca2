"""What the margins of a voting classifier say of its error on the population.

Setting: n independent rows S, a finite class H of functions into {-1, 1}, f a weighted average of members with
weights that sum to 1. The margin of a row is y f(x). Each bound holds with probability 1 - delta for all f at
once, so f may have been fitted to the same rows; it bounds Pr[y f(x) <= 0].
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from holdfast.mechanisms.values import ROUND_UP

Vector = NDArray[np.float64]

_MOST_DRAWS = 1 << 22


def schapire_bound(margins: Vector, log_hypotheses: float, delta: float) -> float:
    """inf over N and theta of P_S[yf <= theta] + 2 e^{-N theta^2/8} + sqrt(ln(N (N+1)^2 |H|^N/delta)/(2n)).

    Reference: Schapire, Freund, Bartlett, Lee 1998, Theorem 1, with its constants.
    """
    ranked, share = _levels(margins)
    best = 1.0
    for draws in _draws(len(margins)):
        tail = 2 * np.exp(-draws * ranked**2 / 8)
        room = math.sqrt(_cover(draws, log_hypotheses, delta) / (2 * len(margins)))
        best = min(best, float(np.min(share + tail, initial=1.0)) + room)
    return min(1.0, best * ROUND_UP)


def kth_margin_bound(margins: Vector, log_hypotheses: float, delta: float) -> tuple[float, int]:
    """(bound, k): the least over k and N of e + kl^{-1}((k-1)/n + e; ln(N (N+1)^2 |H|^N/delta)/n), where theta
    is the k-th smallest margin, e = e^{-N theta^2/8}, and kl^{-1}(p; c) is the greatest q with
    kl(p || q) <= c. k = 1 is a minimum-margin bound.

    Guarantee: as above. Proof: draw N members by their weights and let g be their mean. For a fixed threshold
    (N+1 matter), N and g, Chernoff gives kl(P_S[yg <= theta/2] || P_D[yg <= theta/2]) <= c; a union over
    |H|^N means, N+1 thresholds and N with weights 1/(N(N+1)). Averaged over g, both sides move by at most e
    (Hoeffding), and kl^{-1} is concave in p.
    Reference: the idea of the k-th margin is Gao and Zhou 2013; this form is derived here and has no condition
    on |H|. It is never above `schapire_bound` (Pinsker).
    """
    ranked, share = _levels(margins)
    n = len(margins)
    best, place = 1.0, 1
    for draws in _draws(n):
        cover = _cover(draws, log_hypotheses, delta) / n
        tail = np.exp(-draws * ranked**2 / 8)
        # kl^{-1} is at least p, so only the lowest few need the inversion.
        for i in np.argsort(share + 2 * tail)[:3]:
            p = min(1.0, float(share[i] + tail[i]))
            value = float(tail[i]) + kl_inverse(p, cover)
            if value < best:
                best, place = value, round(float(share[i]) * n) + 1
    return min(1.0, best * ROUND_UP), place


def breiman_bound(smallest: float, rows: int, log_hypotheses: float, delta: float) -> tuple[float, str]:
    """(bound, why it does not apply): R (ln 2n + ln(1/R) + 1) + ln(|H|/delta)/n, R = 32 ln(2|H|)/(n theta^2).

    Requires: the smallest margin theta is above 4 sqrt(2/|H|), and R <= 2n; otherwise the bound is 1.
    It is no evidence that the smallest margin drives generalisation (Reyzin and Schapire 2006).
    Reference: Breiman 1999, Theorem 2.
    """
    if smallest <= 0 or math.log(smallest) <= math.log(4 * math.sqrt(2)) - log_hypotheses / 2:
        return 1.0, "needs a smallest margin above 4 sqrt(2/|H|)"
    R = 32 * (math.log(2) + log_hypotheses) / (rows * smallest**2)
    if 2 * rows < R:
        return 1.0, "needs R <= 2n"
    value = R * (math.log(2 * rows) - math.log(R) + 1) + (log_hypotheses - math.log(delta)) / rows
    return min(1.0, max(0.0, value) * ROUND_UP), ""


def kl_inverse(p: float, room: float) -> float:
    """The greatest q in [p, 1] with kl(p || q) <= room, rounded up."""
    low, high = p, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _kl(p, middle) <= room else (low, middle)
    return min(1.0, high * ROUND_UP)


def _kl(p: float, q: float) -> float:
    near = 0.0 if p <= 0 else p * math.log(p / q)
    far = 0.0 if p >= 1 else (1 - p) * math.log((1 - p) / (1 - q)) if q < 1 else math.inf
    return near + far


def _levels(margins: Vector) -> tuple[Vector, Vector]:
    """Positive levels theta, and the share of rows whose margin is below each: theta may approach a margin."""
    ranked = np.sort(margins)
    share = np.searchsorted(ranked, ranked, side="left") / len(ranked)
    return ranked[ranked > 0], share[ranked > 0]


def _draws(rows: int) -> list[int]:
    return sorted(
        {round(2 ** (k / 4)) for k in range(4 * _MOST_DRAWS.bit_length()) if 2 ** (k / 4) <= 64 * rows}
    )


def _cover(draws: int, log_hypotheses: float, delta: float) -> float:
    return math.log(draws) + 2 * math.log(draws + 1) + draws * log_hypotheses - math.log(delta)
