"""Intervals by the leave-out theorem that are narrower than a half-width: rare events, differences, ratios.

Each is for one release with Gaussian noise, and covers the population value with probability 1 - beta. `charged` bounds
the charges of all that was told before, at the same m, and not of this release. Notation as in `leave_out`: m rows are
left out, b = hazard(z)/sigma is the tilt, t = b/m. With `step` > 0 noise and values are on multiples of the step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from holdfast.privacy.rounding import MARGIN, down, up
from holdfast.validity.leave_out import LEAST_TANGENT, LeaveOut, kappa
from holdfast.validity.normal_quantile import hazard, log_upper_tail, upper_quantile
from holdfast.validity.search import least

_CELLS = 32
_LARGEST_POWER = 700.0


def rare_interval(
    left_out: LeaveOut, charged: Sequence[float], sigma: float, answer: float, beta: float, step: float = 0.0
) -> tuple[float, float]:
    """Bounds for q(P) around an answer q(S) + N(0, sigma^2): narrow near 0 and near 1.

    For each m in `left_out.sizes`, with x_lo = a - sigma z - A/b and x_hi = a + sigma z + A/b inside [0,1],
        (e^{t x_lo} - 1)/(e^t - 1) <= q(P) <= 1 - (e^{t(1 - x_hi)} - 1)/(e^t - 1),
    and all are intersected; each has its weight's share of beta, z = Q^{-1}(beta w/2).
    Requires: question and sigma functions of the past, sizes and weights fixed before the first answer. Earlier answers
    may be charged by `rare_charge`, each decided before it.
    Reference: docs/theorems.md, Theorem 28 (3R).
    """
    low, high = 0.0, 1.0
    for m, w, a in zip(left_out.sizes, left_out.weights, charged, strict=True):
        z = _tangent(beta * w, step)
        b = hazard(z) / sigma
        reach = up(sigma * z + a / b + step / 2)
        low = max(low, _share(b / m, answer - reach))
        high = min(high, up(1 - _share(b / m, 1 - answer - reach), 1.0))
    return (low, high) if low <= high else (high, low)


def rare_reach(
    left_out: LeaveOut, charged: Sequence[float], sigma: float, beta: float, step: float = 0.0
) -> float:
    """The most that an end of `rare_interval` can be away from its answer, whichever answer in [0,1] that is.

    With r = sigma z + A/b and y = 1 - a - r the upper end is r + y - (e^{ty} - 1)/(e^t - 1) above the answer, which is
    concave in y and largest where e^{ty} = (e^t - 1)/t, or at the least answer, 0; the lower end is its mirror image.
    """
    found = 1.0
    for m, w, a in zip(left_out.sizes, left_out.weights, charged, strict=True):
        z = _tangent(beta * w, step)
        b = hazard(z) / sigma
        reach, t = up(sigma * z + a / b + step / 2), b / m
        if reach < 1:
            y = min(1 - reach, max(0.0, (t + math.log(-math.expm1(-t)) - math.log(t)) / t)) if t else 0.5
            found = min(found, up(reach + y - _share(t, y), 1.0))
    return found


def difference_interval(
    left_out: int,
    charged: float,
    disagreement: float,
    disagreement_sigma: float,
    difference: float,
    sigma: float,
    beta: float,
    step: float = 0.0,
    tangent: float | None = None,
) -> tuple[float, float]:
    """Bounds for f(P), f = q_1 - q_2 in [-1,1], from the raw answers e = mean|f| + noise and a = f(S) + noise.

    G = m ln cosh t, A = charged + G e + G^2 su^2/2, w = sigma z + A/b:
        (e^{t(a - w)} - 1)/tanh t <= f(P) <= (1 - e^{-t(a + w)})/tanh t.
    With a `tangent` u in the place of z, b = hazard(u)/sigma and w = sigma u + (A + ln Q(u) + ln(2/beta))/b.
    Requires: f, both noises, beta, m and u fixed before e. The raw e: clamped to [0,1] it is false; so is a tilt, and
    with it a sigma or a beta, that is chosen after e.
    Reference: docs/theorems.md, Theorem 28 (3D'), Theorem 53 for u.
    """
    z, missed, sizes = _tangent(beta, step), 0.0, 0.0
    if tangent is not None:
        z = max(tangent, LEAST_TANGENT) if step else tangent
        tail, log_miss = log_upper_tail(z), math.log(2) - math.log(down(beta))
        missed, sizes = tail + log_miss, abs(tail) + abs(log_miss)
    b = hazard(z) / sigma
    t = b / left_out
    gain = up(left_out * _log_cosh(t))
    paid = charged + gain * disagreement + (gain * disagreement_sigma) ** 2 / 2 + missed
    size = charged + gain * abs(disagreement) + (gain * disagreement_sigma) ** 2 + sizes
    reach = up(sigma * z + paid / b + step / 2, sigma * z + size / b)
    ends = -_signed(t, difference - reach), _signed(t, -difference - reach)
    return min(ends), max(ends)


def difference_tangent(
    left_out: int, charged: float, disagreement: float, disagreement_sigma: float, sigma: float, beta: float
) -> float:
    """Where `difference_interval` is about narrowest for a disagreement that is expected, or known.

    Any tangent is valid that is chosen before e, so this is a search and proves nothing.
    """

    def width(u: float) -> float:
        low, high = difference_interval(
            left_out, charged, disagreement, disagreement_sigma, 0.0, sigma, beta, 0.0, u
        )
        return high - low

    return least(width, LEAST_TANGENT, max(LEAST_TANGENT + 1, upper_quantile(down(beta) / 2)), 20)[1]


def mixed_difference_interval(
    left_out: LeaveOut,
    charged: Sequence[float],
    disagreement: float,
    disagreement_sigma: float,
    difference: float,
    sigma: float,
    beta: float,
    step: float = 0.0,
) -> tuple[float, float]:
    """Bounds for f(P) as `difference_interval` has them, over several numbers m of rows with weights w.

    The lower end is the least x with b(a - sigma z) <= -ln sum_m w_m exp(-A_m - G_m e - G_m^2 su^2/2
    - m ln(1 + x tanh(b/m))), G_m = m ln cosh(b/m); the upper end is that of -f, mirrored.
    Requires: as `difference_interval`; sizes and weights fixed before the first answer of the table.
    Reference: docs/theorems.md, Theorem 37.
    """
    z = _tangent(beta, step)
    b = hazard(z) / sigma
    paid = []
    for m, w, a in zip(left_out.sizes, left_out.weights, charged, strict=True):
        gain = up(m * _log_cosh(b / m))
        parts = (a, gain * disagreement, (gain * disagreement_sigma) ** 2 / 2, -math.log(w))
        paid.append(up(math.fsum(parts), math.fsum(map(abs, parts)) + (gain * disagreement_sigma) ** 2))
    sizes, before = np.array(left_out.sizes, float), np.array(paid)
    tilts = np.tanh(b / sizes)

    def least(answer: float) -> float:
        """From below, where f(P) can be at least."""
        need = b * (answer - sigma * z - step / 2)
        low, high = -1.0, 1.0
        for _ in range(50):
            x = (low + high) / 2
            terms = before + sizes * np.log1p(x * tilts)
            smallest = float(terms.min())
            exponent = smallest - math.log(float(np.exp(smallest - terms).sum()))
            size = abs(need) + float(np.abs(terms).min()) + sizes.max()
            low, high = (low, x) if up(exponent, size) >= need else (x, high)
        return low

    ends = least(difference), -least(-difference)
    return min(ends), max(ends)


def difference_charge(
    rows: int,
    left_out: int,
    disagreement: float,
    disagreement_sigma: float,
    sigma: float,
    guess: float,
) -> float:
    """What the pair (e, a) of `difference_interval` charges to what comes after it.

    kappa c^2/su^2 + G e + G^2 su^2/2, G = kappa/sigma^2 + kappa(1-2c)/su^2, c a guess of mean|f| from before e.
    Guarantee: the pair is a (p)-step of Theorem 24 with this charge, e raw.
    Reference: docs/theorems.md, Theorem 28 (3D').
    """
    k, noise = kappa(rows, left_out), disagreement_sigma**2
    gain = k / sigma**2 + k * (1 - 2 * guess) / noise
    parts = (k * guess**2 / noise, gain * disagreement, gain**2 * noise / 2)
    return up(math.fsum(parts), math.fsum(abs(part) for part in parts) + 2 * k * abs(disagreement) / noise)


def ratio_interval(
    left_out: LeaveOut,
    charged: Sequence[float],
    numerator: float,
    denominator: float,
    sigma: float,
    beta: float,
    step: float = 0.0,
) -> tuple[float, float]:
    """Bounds for q_1(P)/q_2(P), 0 <= q_1 <= q_2 <= 1 on every row: a mean over those that meet a condition (Fieller).

    All c in [0,1] with |A_1 - c A_2| <= W(sigma sqrt(1 + c^2)), W the half-width of one answer with that noise.
    Requires: A_1 = q_1(S) + N(0, sigma^2) and A_2 = q_2(S) + N(0, sigma^2), told together; they charge as two scalar
    answers to what comes after. Discrete noise is bounded by its moments.
    Reference: docs/theorems.md, Theorem 28 (ratios).
    """
    low, high = math.inf, -math.inf
    for cell in range(_CELLS):
        first, last = cell / _CELLS, (cell + 1) / _CELLS
        noise = up(sigma * math.hypot(1, last))
        wide = (
            moments_half_width(left_out, charged, noise, beta)
            if step
            else left_out.half_width(charged, noise, beta)
        )
        if denominator == 0:
            ends = (first, last) if abs(numerator) <= wide else (1.0, 0.0)
        else:
            places = sorted(((numerator - wide) / denominator, (numerator + wide) / denominator))
            margin = MARGIN * (abs(numerator) + wide) / abs(denominator)
            ends = max(first, places[0] - margin), min(last, places[1] + margin)
        if ends[0] <= ends[1]:
            low, high = min(low, ends[0]), max(high, ends[1])
    return (low, high) if low <= high else (0.0, 1.0)


def _tangent(beta: float, step: float) -> float:
    """z with 2 Q(z) <= beta, large enough for discrete noise."""
    return max(upper_quantile(down(beta) / 2), LEAST_TANGENT if step else -math.inf)


def _share(t: float, x: float) -> float:
    """(e^{tx} - 1)/(e^t - 1) rounded down, x cut to [0,1]."""
    x = min(1.0, x)
    if x <= 0:
        return 0.0
    return down(math.exp(t * (x - 1)) * math.expm1(-t * x) / math.expm1(-t) * (1 - MARGIN * t))


def _signed(t: float, x: float) -> float:
    """(1 - e^{tx})/tanh t inside [-1,1], rounded up: at least -f(P) where e^{tx} <= 1 + f(P) tanh t."""
    power = min(t * x, _LARGEST_POWER)
    size = (1 + abs(power)) * math.exp(power) / math.tanh(t)
    return max(-1.0, min(1.0, up(-math.expm1(power) / math.tanh(t), size)))


def _log_cosh(t: float) -> float:
    """ln cosh t, also where t is small or large."""
    if t > 1:
        return t + math.log1p(math.exp(-2 * t)) - math.log(2)
    return math.log1p(math.expm1(t) ** 2 / (2 * math.exp(t)))


def moments_half_width(left_out: LeaveOut, charged: Sequence[float], noise: float, beta: float) -> float:
    """The half-width of noise with E e^{bN} <= e^{b^2 s^2/2}: the least of b s^2/2 + (exponent(b) + ln(2/beta))/b."""
    log_miss = up(math.log(2) - math.log(down(beta)))
    centre = 0.5 * math.log(2 * log_miss / noise**2)

    def at(x: float) -> float:
        b = math.exp(x)
        return up(b * noise**2 / 2 + (left_out.exponent(charged, b) + log_miss) / b)

    return least(at, centre - 12, centre + 4)[0]
