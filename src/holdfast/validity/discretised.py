"""Coarse answers: few possible transcripts, so a union over them. For small n; not private."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from holdfast.privacy.rounding import up
from holdfast.validity.search import least


def discretised(rows: int, queries: int, beta: float, cells: int | None = None) -> float:
    """Theorem D: the least alpha with (c^k - 1)/(c - 1) * 2 exp(-2n (alpha - alpha/c)^2) <= beta.

    Guarantee: Pr[max_j |a_j - q_j(P)| > alpha] <= beta, where a_j is the centre of the cell of width 2
    alpha/c that holds q_j(S). Only c cells can hold the mean of a query that did not fail yet: hence c, not
    1/alpha.
    Requires: n independent rows, k adaptive queries into [0,1], cells fixed beforehand and half open, no
    other release on these rows. Not private.
    Reference: docs/theorems.md, Theorem 14. Cost: a search over c.
    """
    return best_cells(rows, queries, beta)[0] if cells is None else _alpha(rows, queries, beta, max(2, cells))


def best_cells(rows: int, queries: int, beta: float) -> tuple[float, int]:
    """(alpha, c) where Theorem D's alpha is least. Public numbers only."""
    counts = range(2, 4 + 4 * math.ceil(math.log(queries + 2.0)))
    return min((_alpha(rows, queries, beta, c), c) for c in counts)


def _alpha(rows: int, queries: int, beta: float, c: int) -> float:
    log_miss = up(_log_nodes(c, queries) + math.log(2.0) - math.log(beta))
    return up(math.sqrt(log_miss / (2.0 * rows)) * c / (c - 1))


def description_length(rows: int, queries: int, beta: float, cells: int | None = None) -> float:
    """The plain union over all transcripts of m answers: 1/(2m) + sqrt(ln(2 (m^k-1)/((m-1) beta)) / (2n)).

    Guarantee: Pr[max_j |a_j - q_j(P)| > width] <= beta, where a_j is the centre of one of m equal cells of
    [0,1].
    Requires: as `discretised`. Not private.
    Reference: description length, Dwork et al. 2015 (Science), section on bounded description.
    """

    def alpha(m: int) -> float:
        return up(
            0.5 / m + math.sqrt(up(_log_nodes(m, queries) + math.log(2.0) - math.log(beta)) / (2.0 * rows))
        )

    if cells is not None:
        return alpha(cells)
    high = math.log(4.0 * rows + 4.0)
    return least(lambda x: alpha(max(1, round(math.exp(x)))), 0.0, high, 60)[0]


def discretised_blocks(rows: int, queries: int, beta: float, block: int, cells: int) -> tuple[float, float]:
    """(alpha, probability of a miss) of Theorem D in whole counts, with the exact binomial tail.

    Guarantee: answers (g (A // g) + (g-1)/2)/n to 0/1 queries, A the exact count and g = `block`, satisfy
    Pr[max_j |a_j - q_j(P)| > alpha = c g/(2n)] <= probability. Certified when that is at most beta.
    Requires: as `discretised`, and queries into {0,1}. Reference: docs/theorems.md, Theorem 14. Cost: O(n).
    """
    tail = binomial_tail(rows, ((cells - 1) * block + 1) / 2.0)
    log_miss = _log_nodes(cells, queries) + math.log(tail) if tail > 0.0 else -math.inf
    return up(cells * block / (2.0 * rows)), 1.0 if log_miss >= 0.0 else min(1.0, up(math.exp(log_miss)))


@lru_cache(maxsize=1024)
def binomial_tail(rows: int, distance: float) -> float:
    """An upper bound of sup over w of Pr[|Bin(n, w) - n w| >= distance]; never above Hoeffding's.

    Between grid points the count is stochastically monotone in w, which bounds each of the two tails by its
    value at the end of the cell with the threshold of the beginning.
    """
    from scipy.special import bdtr, bdtrc

    edges = np.linspace(0.0, 1.0, 16 * rows + 1)
    low, high = edges[:-1], edges[1:]
    above = np.ceil(rows * low + distance - 1e-9) - 1.0  # Pr[Bin >= j] = bdtrc(j - 1)
    below = np.floor(rows * high - distance + 1e-9)
    upper = np.where(above < rows, bdtrc(np.clip(above, 0, rows - 1), rows, high), 0.0)
    upper = np.where(above < 0, 1.0, upper)
    lower = np.where(below >= 0, bdtr(np.clip(below, 0, rows), rows, low), 0.0)
    exact = float(np.max(upper + lower)) * (1.0 + 1e-9)
    return min(exact, up(2.0 * math.exp(-2.0 * distance * distance / rows)))


def _log_nodes(c: int, k: int) -> float:
    """ln((c^k - 1)/(c - 1)), rounded up; ln k for c = 1."""
    if c == 1:
        return up(math.log(k))
    return up(k * math.log(c) + math.log1p(-math.exp(-k * math.log(c))) - math.log(c - 1), k * math.log(c))
