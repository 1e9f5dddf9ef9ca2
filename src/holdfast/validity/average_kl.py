"""T2 and T3: transfer terms from mutual information, the best where beta is large (above about 0.25)."""

from __future__ import annotations

import math

from holdfast.privacy.rounding import up


def information_term(beta: float, mu: float) -> float:
    """T2: sqrt(I/(2 n beta)) with I <= n mu^2/8 for Gaussian answers, that is mu/(4 sqrt(beta)).

    Guarantee: E[q~(S) - q~(P) | E] <= result for events and queries that are functions of the transcript.
    Requires: all answers Gaussian, sum of (Delta/sigma_j)^2 <= mu^2 on every path.
    Reference: docs/theorems.md, Theorem 12.
    """
    return min(1.0, up(mu / (4.0 * math.sqrt(beta))))


def information_votes_term(rows: int, total: int, flip: float, beta: float) -> float:
    """T3: sqrt(I/(2 n beta)) with I <= N (1-2a)^2 n/(2 (n-1)^2 (1 - 4/(n-1))) for N votes.

    Guarantee: as `information_term`. Requires: at most N votes as in `votes_profile`; n >= 6 and a >= 2/n,
    else 1.
    Reference: docs/theorems.md, Theorem 13.
    """
    n = float(rows)
    if n < 6.0 or flip < 2.0 / n:
        return 1.0
    per_row = total * (1.0 - 2.0 * flip) ** 2 / (2.0 * (n - 1.0) ** 2 * (1.0 - 4.0 / (n - 1.0)))
    return min(1.0, up(math.sqrt(per_row / (2.0 * beta))))
