"""From the sample to the population, step by step: one query, a family, one chosen after looking, a private one.

Every function returns a half-width alpha for n independent rows and queries h into [0, 1]: h(S) is the mean
over the rows, h(P) the mean over the population.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.check import exact_positive, integer, probability
from holdfast.validity.hoeffding import hoeffding
from holdfast.validity.transfer import transfer_width


def estimation_width(rows: int, *, confidence: float = 0.95) -> float:
    """One query fixed before the rows were seen: sqrt(ln(2/beta)/(2n)). Reference: Hoeffding 1963."""
    return family_width(rows, 1, confidence=confidence)


def family_width(rows: int, queries: int, *, confidence: float = 0.95) -> float:
    """All of a family fixed beforehand, at once: sqrt(ln(2|H|/beta)/(2n)). Reference: Hoeffding and a union."""
    n, k = integer("rows", rows), integer("queries", queries)
    return hoeffding(n, k, 1 - probability("confidence", confidence))


def expected_gap(epsilon: float, delta: float = 0.0) -> float:
    """A query chosen by an (epsilon, delta)-DP mechanism: |E[h(S) - h(P)]| <= tanh(epsilon/4) + (1-tanh) delta.

    Guarantee: exact for delta = 0, subset selection on one row attains it. The usual e^epsilon - 1 +
    delta is never less. Reference: docs/theorems.md, Theorem 4, with an event that always happens.
    """
    t = math.tanh(float(exact_positive("epsilon", epsilon)) / 4)
    return min(1.0, t + (1 - t) * _delta(delta))


def likely_gap(rows: int, epsilon: float, delta: float = 0.0, *, confidence: float = 0.95) -> float:
    """The same mechanism with high probability: Pr[|h(S) - h(P)| > result] <= beta = 1 - confidence.

    h(S) itself is not released, so the event is not decided by the output. Add h(S) to it with Laplace noise of
    scale s/n: the output is (epsilon + 1/s, delta)-DP and the event for the noisy value is decided by it; then
    take the noise off again. Both sides at beta/2, the best s out of a grid.
    Reference: docs/theorems.md, Theorem 4; Dwork et al. 2015 and Bassily et al. 2016 for the claim.
    """
    n, beta = integer("rows", rows), 1 - probability("confidence", confidence)
    eps, failure = float(exact_positive("epsilon", epsilon)), _delta(delta)

    def width(s: float) -> float:
        total = eps + 1 / s
        term = transfer_width(
            n, beta / 2, lambda e: failure if e >= total else 1.0, low=total, high=2 * total
        )
        # CVaR of |Lap(s)| at beta/2 is s (1 + ln(2/beta)); its tail at beta/2 is s ln(2/beta).
        return term + s / n * (1 + 2 * math.log(2 / beta))

    return min(1.0, *(width(2.0**k) for k in range(-3, 40)))


@dataclass(frozen=True, slots=True)
class Memoriser:
    """h_S: 1 on the rows of the sample and 0 elsewhere. h_S(S) = 1; on a population without atoms h_S(P) = 0."""

    sample: NDArray[np.float64]

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.isin(rows, self.sample).astype(np.float64)


def _delta(delta: float) -> float:
    return 0.0 if delta == 0 else probability("delta", delta)
