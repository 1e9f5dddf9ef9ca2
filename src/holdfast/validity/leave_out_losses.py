"""Steps whose loss is bounded on average only: Laplace answers, and votes where they have no charge of their own.

With such steps in a transcript a Hoelder exponent h > 1, fixed before the first answer, is in the place of 1: the meter
is then (charges)/h + losses, and the tilt costs h b^2/(8m). Notation as in `leave_out`.
"""

from __future__ import annotations

import math

from holdfast.privacy.rounding import down, up
from holdfast.validity.leave_out import kappa
from holdfast.validity.leave_out_votes import plain_vote_loss

_LARGEST_POWER = 700.0


def exponent_with_losses(left_out: int, hoelder: float, charged: float, lost: float, tilt: float) -> float:
    """h b^2/(8m) + charged/h + lost, rounded up: bD exceeds it by t with probability at most e^-t.

    Guarantee: E exp(b(q(S) - q(P)) - this) <= 1 for every q: X -> [0,1] and b >= 0 that the transcript chooses.
    Requires: `charged` bounds the charges of Theorem 24, `lost` the losses e of this file, at the same m and h, both
    fixed before the first answer; h = 1 only where nothing is lost.
    Reference: docs/theorems.md, Theorem 26.
    """
    if hoelder < 1 or (hoelder == 1 and lost > 0):
        return math.inf
    return up(hoelder * tilt * tilt / (8 * left_out) + charged / hoelder + lost)


def bounded_loss(mean: float, most: float, hoelder: float) -> float:
    """e of a step whose loss is between 0 and d, and at most kap on average.

    e = min{ d/h, ((h-1)/h) ln(1 + (kap/d)(e^{d/(h-1)} - 1)) }, at most about kap/h.
    Reference: docs/theorems.md, Theorem 26: the chord of the exponential function.
    """
    if hoelder <= 1:
        return math.inf
    flat, power = up(most / hoelder), most / (hoelder - 1)
    if power > _LARGEST_POWER or not mean < most:
        return flat
    return min(flat, up((hoelder - 1) / hoelder * math.log1p(mean / most * math.expm1(power))))


def laplace_loss(rows: int, left_out: int, scale: float, hoelder: float, step: float = 0.0) -> float:
    """A mean into [0,1] with Laplace noise of this scale B: kap = kappa/(4B^2), d = sqrt(kappa/2)/B.

    With `step` > 0 the noise is discrete Laplace on multiples of the step, and so are the true values: kap gains
    (step/B)^2/8.
    Reference: docs/theorems.md, Theorem 26.
    """
    k = kappa(rows, left_out)
    mean = up(k / (4 * scale**2) + (step / scale) ** 2 / 8)
    return bounded_loss(mean, up(math.sqrt(k / 2) / scale), hoelder)


def vote_loss(rows: int, left_out: int, flip: float, hoelder: float) -> float:
    """One vote, also where `vote_charge` is infinite: kap4 on average, kap4/(4a(1-a)) at most; n >= 3.

    Reference: docs/theorems.md, Theorems 26 and 27.
    """
    mean = plain_vote_loss(rows, left_out, flip)
    if math.isinf(mean):
        return math.inf
    return bounded_loss(mean, up(mean / (4 * flip * (1 - flip))), hoelder)


def laplace_half_width(exponent: float, scale: float, beta: float, step: float = 0.0) -> float:
    """The half-width of one answer with Laplace noise: B(ln(1/beta) + exponent), and half a step where it is discrete.

    Guarantee: Pr[|a - q(P)| > this] <= beta, both sides together.
    Requires: `exponent` is `exponent_with_losses` at the tilt 1/B for all that was told before, not for this answer;
    question and B functions of the past.
    Reference: docs/theorems.md, Theorem 26. Without the half step it is false for discrete noise.
    """
    return up(scale * (exponent - math.log(down(beta))) + step / 2)
