"""Max-information: how far a p-value must be corrected when private answers chose the test."""

from __future__ import annotations

import math

from holdfast.check import positive, probability, whole
from holdfast.errors import InputError
from holdfast.privacy.rounding import down, up
from holdfast.validity.search import least


def max_information(*, rows: int, epsilon: float, failure: float) -> float:
    """Nats of max-information between n independent rows and an epsilon-DP transcript, except with
    probability b.

    Guarantee: for every set O of pairs, Pr[(S, Pi) in O] <= e^I Pr[(S', Pi) in O] + b, with S' independent of
    Pi. I = min(eps n, eps^2 n/2 + eps sqrt(n ln(2/b)/2)).
    Requires: pure epsilon-DP (replace one row) for the whole transcript; independent rows.
    Reference: Dwork et al. 2015 (NIPS, "Generalization in adaptive data analysis and holdout reuse"), Theorem
    20.
    """
    n, eps, b = whole("rows", rows), positive("epsilon", epsilon), probability("failure", failure)
    return up(min(eps * n, eps * eps * n / 2.0 + eps * math.sqrt(n * math.log(2.0 / b) / 2.0)))


def corrected_level(level: float, *, rows: int, epsilon: float, failure: float | None = None) -> float:
    """The level to compare a p-value with, so that the chosen test is wrong with probability at most `level`.

    Guarantee: reject when p <= result = (level - b) e^{-I}: a true null hypothesis, chosen from the answers,
    is rejected with probability at most `level`. 0 when nothing can be certified.
    Requires: as `max_information`; the p-value is computed on the same rows and is valid for each fixed test.
    b = `failure` is tuned from the public numbers when not given. Reference: as `max_information`, section 4.
    """
    alpha = probability("level", level)
    if failure is not None:
        b = probability("failure", failure)
        if b >= alpha:
            raise InputError(
                f"expected less than level={alpha:g} for failure, got {b:g}; spend less of the level on it"
            )
        return _at(alpha, rows, epsilon, b)
    rows, epsilon = whole("rows", rows), positive("epsilon", epsilon)
    loss, _ = least(lambda x: -_at(alpha, rows, epsilon, alpha * math.exp(x)), -30.0, -1e-3, 50)
    return -loss


def _at(level: float, rows: int, epsilon: float, failure: float) -> float:
    information = max_information(rows=rows, epsilon=epsilon, failure=failure)
    return down((level - failure) * math.exp(-information), level) if information < 700.0 else 0.0
