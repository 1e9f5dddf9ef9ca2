"""Many releases of one pure epsilon: four theorems, from the simplest to the exact one."""

from __future__ import annotations

import math

import numpy as np

from holdfast.check import Number, exact, integer, probability
from holdfast.privacy.rounding import float_up, up


def basic_composition(epsilon: Number, queries: int) -> float:
    """k releases of epsilon-DP are k*epsilon-DP. Reference: Dwork et al. 2006."""
    return float_up(exact("epsilon", epsilon) * integer("queries", queries))


def lecture_composition(epsilon: Number, queries: int, delta: Number) -> float:
    """sqrt(2k ln(1/delta)) epsilon + 2k epsilon^2, as taught: valid, with a second term at least four times
    loose.

    Reference: Dwork, Rothblum and Vadhan 2010, in the form in which it is taught.
    Not capped by basic composition: it is here to be compared
    with.
    """
    eps, k, log_delta = _parameters(epsilon, queries, delta)
    return up(math.sqrt(2.0 * k * log_delta) * eps + 2.0 * k * eps * eps)


def advanced_composition(epsilon: Number, queries: int, delta: Number) -> float:
    """sqrt(2k ln(1/delta)) epsilon + k epsilon tanh(epsilon/2), or k*epsilon if that is less.

    Guarantee: k adaptively chosen epsilon-DP releases are (result, delta)-DP.
    Reference: Rogers et al. 2020, A.6; Whitehouse et al. 2023, eq. 2. Cost: O(1).
    """
    eps, k, log_delta = _parameters(epsilon, queries, delta)
    tight = up(math.sqrt(2.0 * k * log_delta) * eps + k * eps * math.tanh(eps / 2))
    return min(basic_composition(epsilon, queries), tight)


def optimal_composition(epsilon: Number, queries: int, delta: Number) -> float:
    """The least epsilon that holds for every k-fold adaptive composition of epsilon-DP mechanisms.

    Guarantee: (result, delta)-DP, and no smaller result is true of all such mechanisms but for rounding.
    Reference: Kairouz, Oh and Viswanath 2015, Thm 3.3: randomized response is the worst case, so its k-fold
    profile, a sum over binomial outcomes, is evaluated at the result and must not exceed delta.
    Cost: O(k) time and memory.
    """
    eps, k, log_delta = _parameters(epsilon, queries, delta)
    total = basic_composition(epsilon, queries)
    if eps == 0.0 or eps > 300.0:
        return total
    flips = np.arange(k // 2 + 1)
    loss = (k - 2 * flips) * eps
    factorials = np.array([math.lgamma(i + 1.0) for i in range(k + 1)])
    log_p = (
        factorials[k]
        - factorials[flips]
        - factorials[k - flips]
        - flips * eps
        - k * math.log1p(math.exp(-eps))
    )
    # lgamma errs by a few units in the last place of the largest term; 2^-48 of it covers that.
    slack = math.exp(2.0**-48 * (4.0 * float(factorials[k]) + 3.0 * total + 1.0))

    def profile(target: float) -> float:
        seen = loss > target
        parts = np.exp(log_p[seen]) * -np.expm1(target - loss[seen])
        return up(float(parts.sum()) * slack)

    d = math.exp(-log_delta)
    low, high = 0.0, total
    if profile(low) <= d:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if profile(middle) > d else (low, middle)
    return min(total, up(high))


def _parameters(epsilon: Number, queries: int, delta: Number) -> tuple[float, int, float]:
    eps = float_up(exact("epsilon", epsilon))
    return eps, integer("queries", queries), -math.log(probability("delta", delta))
