"""Hoeffding's inequality with a union over the queries: the bound for questions fixed beforehand."""

from __future__ import annotations

import math

from holdfast.privacy.rounding import up


def hoeffding(rows: int, queries: int, beta: float) -> float:
    """sqrt(ln(2k/beta) / (2n)), the half-width around exact answers.

    Guarantee: Pr[max_j |q_j(S) - q_j(P)| > width] <= beta.
    Requires: n independent rows; k queries into [0,1] chosen before any answer was seen. No privacy.
    Reference: Hoeffding 1963, Theorem 2.
    """
    return up(math.sqrt(up(math.log(2 * queries) - math.log(beta)) / (2.0 * rows)))
