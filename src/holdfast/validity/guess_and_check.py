"""Guess-and-Check: a guess stands unless the holdout contradicts it; only failures cost."""

from __future__ import annotations

import math

from holdfast.privacy.rounding import down, up
from holdfast.validity.search import least, most


def failure_share(beta: float, query: int, failures: int, cells: int) -> float:
    """ln beta_i, the logarithm of the error probability left for query i after f failures rounded to `cells`
    values.

    beta_i = beta c_{i-1} c_f / (C(i-1, f) L^f), c_j = 6/(pi^2 (j+1)^2): the shares of all i, f and all
    placements and values of the failures sum to at most beta. Rounded down.
    """
    log = math.log(beta) + _log_weight(query - 1) + _log_weight(failures)
    choose = math.lgamma(query) - math.lgamma(failures + 1) - math.lgamma(query - failures)
    return log - up(choose, math.lgamma(query)) - up(failures * math.log(cells))


def holdout_width(rows: int, log_share: float) -> float:
    """tau_h = sqrt(ln(2/beta_i)/(2 n_h)): how far the holdout mean can be from the population's."""
    return up(math.sqrt((math.log(2.0) - log_share) / (2.0 * rows)))


def guess_and_check(
    rows: int, queries: int, beta: float, failures: int | None = None, cells: int | None = None
) -> float:
    """1/L + sqrt(ln(2/beta_k)/(2n)): the half-width at query k when f of the earlier guesses failed.

    Guarantee: Pr[some |a_j - q_j(P)| > tau_j] <= beta for any guesser and any analyst. A guess stands iff it
    is within tau_j - tau_h of the holdout mean; a failed one is answered by the holdout mean rounded down to
    1/L.
    Requires: `rows` holdout rows that the guesser never sees. The default f = k-1 (every guess failed) is the
    worst case; a smaller f is a fact about the run, and the width is then specific to it. L is tuned when not
    given. Not private.
    Reference: Rogers et al. 2020, section 3 and Algorithm 2.
    """
    failed = queries - 1 if failures is None else min(failures, queries - 1)

    def width(count: int) -> float:
        return up(1.0 / count) + holdout_width(rows, failure_share(beta, queries, failed, count))

    if cells is not None:
        return width(cells)
    return least(lambda x: width(max(1, round(math.exp(x)))), 0.0, math.log(rows) + 2.0, 50)[0]


def checked(n: int, k: int, beta: float, failures: int) -> tuple[float, int]:
    """(width, cells) that bear the k-th look after at most so many failures, at the best number of cells."""
    steps = range(round(math.log(4.0 * n + 4.0) / math.log(1.15)))
    counts = {max(1, round(1.15**j)) for j in steps}
    return min((checked_width(n, beta, k, costliest(beta, k, 0, failures, c), c), c) for c in counts)


def checked_width(n: int, beta: float, look: int, failures: int, cells: int) -> float:
    """The half-width of Guess-and-Check at a look: a failed guess is answered by the centre of a cell."""
    return up(0.5 / cells + holdout_width(n, failure_share(beta, look, failures, cells)))


def costliest(beta: float, look: int, low: int, high: int, cells: int) -> int:
    """The number of failures from `low` to `high` at which the look is widest.

    More failures are not always worse: few placements are left when nearly all guesses failed. The share
    falls and then rises, because C(i-1, f) L^f / c_f is log-concave in f.
    """
    return low + most(
        lambda more: (
            low + more <= high
            and failure_share(beta, look, low + more, cells)
            <= failure_share(beta, look, low + more - 1, cells)
        )
    )


def _log_weight(j: int) -> float:
    """ln c_j, c_j = 6/(pi^2 (j+1)^2); the c_j sum to 1."""
    weight = math.log(6.0) - 2.0 * math.log(math.pi * (j + 1))
    return weight - 1e-14 * abs(weight)


def accept_slack(tau: float, rows: int, log_share: float) -> float:
    """tau - tau_h: the guess stands if it is no further than this from the holdout mean; 0 when it never
    stands."""
    return down(max(0.0, tau - holdout_width(rows, log_share)))
