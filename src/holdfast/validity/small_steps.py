"""Theorem L: adaptive votes, and mixtures of small steps, have a Gaussian profile up to a tiny remainder."""

from __future__ import annotations

import math
from dataclasses import dataclass

from holdfast.privacy.rounding import up

# Suprema over d of phi(d), |d| phi(d) and |d^2 - 1| phi(d), with the factors of the proof, rounded up.
_THIRD, _THIRD_ROOT = 0.24198, 0.79789
_TIME, _TIME_ROOT = 0.19948, 0.12100


@dataclass(frozen=True, slots=True)
class NearGaussian:
    """A privacy profile delta(epsilon) <= delta_GDP(epsilon; mu) + e^epsilon err. `err` may never be
    dropped."""

    mu: float
    err: float


def vote_step(rows: int, flip: float) -> tuple[float, float, float]:
    """(v, b, m3) of one vote: bounds on E(x-1)^2, |x-1| and E|x-1|^3 for its likelihood ratio x.

    One row of n changes the bias of a vote, which lies in [a, 1-a], by at most B = (1-2a)/n.
    """
    a = flip
    shift = up((1.0 - 2.0 * a) / rows)
    return (
        up(shift * shift / (a * (1.0 - a))),
        up(shift / a),
        up(shift**3 * (1.0 / (a * a) + 1.0 / ((1.0 - a) * (1.0 - a)))),
    )


def votes_profile(rows: int, total: int, flip: float, slack: float) -> NearGaussian:
    """Theorem L for at most `total` adaptive votes, with T0 = slack * total * v.

    Guarantee: delta(epsilon) <= delta_GDP(epsilon; mu) + e^epsilon err at every epsilon, for every analyst.
    Requires: each vote reads a fresh uniform row (with replacement, index kept secret) and flips its bit with
    probability a fixed beforehand; at most `total` votes surely; T0 chosen from public numbers.
    Reference: docs/theorems.md, Theorem 9. The sum over votes is bounded by its first term plus an integral,
    since its terms fall. Cost: O(1).
    """
    v, b, m3 = vote_step(rows, flip)
    if not b < 1.0:
        return NearGaussian(math.inf, math.inf)
    start, span = slack * total * v, (total - 1) * v
    end = start + span
    third, time = m3 / 6.0 * (1.0 - b) ** -3, v * v / 4.0
    root, end_root, log = math.sqrt(start), math.sqrt(end), math.log1p(span / start)
    first = third * (_THIRD + _THIRD_ROOT * root) / start + time * (_TIME / root + _TIME_ROOT) / start
    rest = third * (_THIRD * log + 2.0 * _THIRD_ROOT * span / (end_root + root))
    rest += time * (2.0 * _TIME * span / (root * end_root * (end_root + root)) + _TIME_ROOT * log)
    return NearGaussian(up(math.sqrt(start + total * v)), up(first + rest / v))


def filter_profile(budget: float, largest: float, ratio: float, start: float) -> NearGaussian:
    """Theorem L′: steps chosen from the transcript under the sure cap sum of v_t <= budget.

    Guarantee: as `votes_profile`, whatever the order and the choice of the steps.
    Requires: each step is Gaussian (v_t = (Delta/sigma_t)^2, any size), or has chi^2 <= v_t <= largest and
    |dQ/dP - 1| <= ratio < 1 for every ordered pair of neighbours; start = T0 > largest. Fixed at opening.
    Reference: docs/theorems.md, Theorem 10. Cost: O(1).
    """
    low = start - largest
    if not (low > 0.0 and ratio < 1.0):
        return NearGaussian(math.inf, math.inf)
    high = low + budget
    log, roots = math.log1p(budget / low), budget / (math.sqrt(high) + math.sqrt(low))
    third = ratio / 6.0 * (1.0 - ratio) ** -3 * (_THIRD * log + 2.0 * _THIRD_ROOT * roots)
    time = largest / 4.0 * (2.0 * _TIME * roots / math.sqrt(low * high) + _TIME_ROOT * log)
    return NearGaussian(up(math.sqrt(start + budget)), up(third + time))


def pure_step(epsilon: float) -> tuple[float, float]:
    """(v, b) of an epsilon-DP step: (e^eps - 1)(1 - e^-eps) and e^eps - 1. Reference: Theorem 10."""
    return up(math.expm1(epsilon) * -math.expm1(-epsilon)), up(math.expm1(epsilon))


def bounded_range_step(eta: float) -> tuple[float, float]:
    """(v, b) of an eta-bounded-range step (exponential mechanism): sinh(eta/2)^2 and e^eta - 1. Theorem
    10."""
    return up(math.sinh(eta / 2.0) ** 2), up(math.expm1(eta))
