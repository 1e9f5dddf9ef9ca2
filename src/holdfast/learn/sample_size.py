"""How many rows a private learner needs, and what a given number of rows certifies."""

from __future__ import annotations

import math

from holdfast.check import exact_positive, integer, probability
from holdfast.mechanisms.selection import selection_loss
from holdfast.mechanisms.values import ROUND_UP


def agnostic_rows(hypotheses: int, *, within: float, epsilon: float, confidence: float = 0.95) -> int:
    """Rows after which err_P(h) <= min over H of err_P + `within`, with probability `confidence`.

    Guarantee: m >= max{8 ln(4|H|/beta)/alpha^2, 4 (ln|H| + ln(2/beta))/(alpha epsilon)}: uniform convergence
    takes alpha/4 twice, the exponential mechanism alpha/2.
    Requires: independent rows; a class that was fixed without looking at them; the hypothesis is chosen by the
    exponential mechanism on empirical error.
    Reference: Kasiviswanathan et al. 2008, Theorem 3.4, with alpha/4 instead of alpha/2 as the slack.
    """
    H, alpha, eps, beta = _checked(hypotheses, within, epsilon, confidence)
    sampling = 8 * (math.log(4 * H) - math.log(beta)) / alpha**2
    return math.ceil(max(sampling, _selection_rows(H, alpha, eps, beta)) * ROUND_UP)


def realisable_rows(hypotheses: int, *, within: float, epsilon: float, confidence: float = 0.95) -> int:
    """As `agnostic_rows`, where some hypothesis of H is never wrong: err_P(h) <= `within`.

    Guarantee: m >= max{8 ln(2|H|/beta)/alpha, 4 (ln|H| + ln(2/beta))/(alpha epsilon)}. The chosen one errs on
    at most alpha/2 of the rows; one with err_P > alpha does that with probability at most e^{-m alpha/8}.
    Reference: Kasiviswanathan et al. 2008, Theorem 3.4; multiplicative Chernoff bound.
    """
    H, alpha, eps, beta = _checked(hypotheses, within, epsilon, confidence)
    sampling = 8 * (math.log(2 * H) - math.log(beta)) / alpha
    return math.ceil(max(sampling, _selection_rows(H, alpha, eps, beta)) * ROUND_UP)


def realisable_error(hypotheses: int, rows: int, epsilon: float, beta: float) -> float:
    """The least alpha for which `realisable_rows` is at most `rows`; at most 1."""
    H = integer("hypotheses", hypotheses, most=None)
    sampling = 8 * (math.log(2 * H) - math.log(beta)) / rows
    return min(1.0, max(sampling, _selection_rows(H, 1.0, epsilon, beta) / rows) * ROUND_UP)


def excess_by_union(hypotheses: int, rows: int, units: float, epsilon: float, beta: float) -> float:
    """err_P(h) - min err_P is at most this with probability 1 - beta, by uniform convergence over H.

    Guarantee: 2 sqrt(ln(4|H|/beta)/(2u)) + the selection's loss at beta/2; never more than what
    `agnostic_rows` inverts to. u = `units` is the number of rows over the most that belong to one person.
    Requires: a class that was fixed without looking at the rows.
    """
    H = integer("hypotheses", hypotheses, most=None)
    uniform = 2 * math.sqrt((math.log(4 * H) - math.log(beta)) / (2 * units)) * ROUND_UP
    return min(1.0, uniform + selection_loss(H, sensitivity=1, epsilon=epsilon, beta=beta / 2) / rows)


def _selection_rows(hypotheses: int, alpha: float, epsilon: float, beta: float) -> float:
    return 4 * (math.log(hypotheses) + math.log(2 / beta)) / (alpha * epsilon)


def _checked(
    hypotheses: int, within: float, epsilon: float, confidence: float
) -> tuple[int, float, float, float]:
    return (
        integer("hypotheses", hypotheses, most=None),
        probability("within", within),
        float(exact_positive("epsilon", epsilon)),
        1 - probability("confidence", confidence),
    )
