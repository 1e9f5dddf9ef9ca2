"""How far noise reaches: the half-widths that the additive mechanisms and the votes are certified to keep.

Two measures. The *tail*: the least h with Pr[|error| > h] <= allowance. The *overshoot*: the least h with
E(|error| - h)_+ <= allowance, which the transfer theorems need (docs/theorems.md, common step).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from holdfast.mechanisms.values import ROUND_UP, round_down
from holdfast.mechanisms.votes import votes_deviation

_NORMAL = NormalDist()


def gaussian_reach(variance: Fraction, allowance: float, overshoot: bool) -> int:
    """For discrete Gaussian noise, in counts.

    Tail: Pr[|N_Z| >= h+1] <= 2 Q(h/sigma). Overshoot: E(|N_Z| - h)_+ = 2 sum over m > h of Pr[N_Z >= m]
    <= 2 [Q(h/sigma) + sigma (phi(z) - z Q(z))], z = h/sigma.
    Reference: Canonne, Kamath, Steinke 2020, Proposition 25: Pr[N_Z >= m] <= Pr[N >= m-1].
    """
    sigma = math.sqrt(variance)
    if not overshoot:
        return math.ceil(sigma * quantile(allowance / 2) * ROUND_UP)
    z = _least_z(lambda z: 2 * (_tail(z) + sigma * _excess(z)) <= allowance)
    return math.ceil(sigma * z * ROUND_UP)


def subgaussian_reach(deviation: float, allowance: float, overshoot: bool) -> float:
    """For noise with E e^{bN} <= e^{b^2 s^2/2}, such as sums of discrete Gaussian noises with weights.

    Tail: Pr[|N| > h] <= 2 e^{-h^2/(2 s^2)}. Overshoot: its integral from h on, 2 s sqrt(2 pi) Q(h/s).
    Reference: Canonne, Kamath, Steinke 2020, Lemma 19 (each is sub-Gaussian; independent ones add up).
    """
    if overshoot:
        tail = allowance / (2 * deviation * math.sqrt(2 * math.pi))
        return deviation * quantile(min(tail, 0.5)) * ROUND_UP
    return deviation * math.sqrt(2 * math.log(2 / allowance)) * ROUND_UP if allowance < 2 else 0.0


def laplace_reach(scale: Fraction, allowance: float, overshoot: bool) -> int:
    """For discrete Laplace noise, in counts: Pr[|Z| > h] = 2 e^{-h r}/(e^r + 1), r = 1/scale, and
    E(|Z| - h)_+ = the sum of Pr[|Z| > m] over m >= h = that divided by (1 - e^{-r})."""
    rate = min(float(1 / scale), 700.0)
    log_tail = math.log(2) - math.log1p(math.exp(rate))
    if overshoot:
        log_tail -= math.log(-math.expm1(-rate))
    return max(0, math.ceil((log_tail - math.log(allowance)) / rate * ROUND_UP))


def logistic_reach(scale: Fraction, allowance: float) -> int:
    """For logistic noise, in counts: Pr[|L| > h] = 2/(1 + e^{h/scale})."""
    return max(0, math.ceil(float(scale) * math.log(2 / allowance - 1) * ROUND_UP)) if allowance < 1 else 0


def discrete_logistic_reach(scale: Fraction, allowance: float, overshoot: bool) -> int:
    """For discrete logistic noise, in counts: Pr[|N| > h] <= 2/(1 + e^{(h + 1/2) r}), r = 1/scale (docs/theorems.md,
    Theorem 102), and E(|N| - h)_+, the sum of these over m >= h, is at most 2 e^{-(h + 1/2) r}/(1 - e^{-r})."""
    rate = min(float(1 / scale), 700.0)
    if overshoot:
        log_tail = math.log(2) - rate / 2 - math.log(-math.expm1(-rate)) - math.log(allowance)
    else:
        log_tail = math.log(2 / allowance - 1) - rate / 2 if allowance < 1 else 0.0
    return max(0, math.ceil(log_tail / rate * ROUND_UP))


def votes_reach(count: int, flip: Fraction, allowance: float, overshoot: bool) -> float:
    """For the mean of `count` votes, on the scale of the mean, sampling included.

    Tail: Pr[|error| > x] <= 2 Q(z) at x = sigma_v z + 1/(m(1-2a)), z >= 1 (Zubkov-Serov with Pinsker).
    Overshoot: the integral of Hoeffding's 2 e^{-x^2/(2 sigma_v^2)}, 2 sigma_v sqrt(2 pi) Q(z).
    """
    sigma = votes_deviation(count, flip)
    if overshoot:
        tail = allowance / (2 * sigma * math.sqrt(2 * math.pi))
        return sigma * quantile(min(tail, 0.5)) * ROUND_UP
    shift = 1 / (count * (1 - 2 * float(flip)))
    return (sigma * max(1.0, quantile(allowance / 2)) + shift) * ROUND_UP


def sample_reach(
    count: int, rows: int, scale: Fraction, allowance: float, overshoot: bool, span: int = 1
) -> float:
    """For the mean of `count` rows drawn without replacement, contributions in 0..span, plus Laplace noise on
    their sum; on the scale of a mean in [0,1].

    Half of the allowance goes to each. Sampling: Pr[|error| > x] <= 2 exp(-2 l x^2/f), f = 1 - (l-1)/n
    (Hoeffding-Serfling).
    """
    left = (1 - (count - 1) / rows) / count
    total = count * span
    noise = laplace_reach(scale, allowance / 2 * (total if overshoot else 1), overshoot) / total
    if left <= 0:
        return noise
    if overshoot:
        sigma = math.sqrt(left) / 2
        tail = allowance / 2 / (2 * sigma * math.sqrt(2 * math.pi))
        return noise + sigma * quantile(min(tail, 0.5)) * ROUND_UP
    return noise + math.sqrt(math.log(4 / allowance) / 2 * left) * ROUND_UP


def most_noise(reach: Callable[[Fraction], float], half_width: float, start: float) -> Fraction:
    """The most noise whose reach is at most `half_width`, to 20 bits and from below; `start` is a guess.

    Requires: reach grows with the noise.
    """
    low, high = 0.0, start
    while reach(round_down(high)) <= half_width:
        low, high = high, 2 * high
    if low == 0.0:
        low = high
        while low > 1e-12 and reach(round_down(low)) > half_width:
            high, low = low, low / 2
    for _ in range(24):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if reach(round_down(middle)) <= half_width else (low, middle)
    return round_down(low)


@lru_cache(maxsize=65536)
def quantile(tail: float) -> float:
    """Q^{-1}(tail): what a standard Gaussian exceeds with probability `tail`; at least 0."""
    return max(0.0, -_NORMAL.inv_cdf(max(tail, 1e-300)))


def _tail(z: float) -> float:
    return 0.5 * math.erfc(z / math.sqrt(2))


def _excess(z: float) -> float:
    """E(N - z)_+ of a standard Gaussian; beyond z = 10 by the upper bound phi(z)/z^2 (no cancellation)."""
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return density - z * _tail(z) if z < 5 else density / (z * z)


def _least_z(holds: Callable[[float], bool]) -> float:
    low, high = 0.0, 40.0
    for _ in range(48):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
