"""Privacy from not being looked at: amplification by secret subsets, replace-one neighbours."""

from __future__ import annotations

import math

from holdfast.check import Number, exact, integer
from holdfast.privacy.rounding import float_up, up


def subsampled(epsilon: Number, rows: int, of: int) -> float:
    """epsilon of an epsilon-DP mechanism run on `rows` of `of` rows drawn without replacement.

    Guarantee: ln(1 + (rows/of)(e^epsilon - 1))-DP. Requires: the subset is uniform and stays secret.
    Reference: Balle, Barthe and Gaboardi 2018, Thm 9; tight. Cost: O(1).
    """
    n = integer("of", of)
    ell = integer("rows", rows, 1, n, "draw fewer rows")
    eps = float_up(exact("epsilon", epsilon))
    return min(eps, _log_one_plus(eps, ell / n)) if eps else 0.0


def subsampled_with_replacement(epsilon: Number, rows: int, of: int) -> float:
    """epsilon of an epsilon-DP mechanism run on `rows` independent draws out of `of` rows.

    Guarantee: rows * ln(1 + (e^epsilon - 1)/of)-DP, for every epsilon-DP mechanism on tables of `rows` rows.
    Requires: the draws stay secret. Reference: docs/theorems.md, section 5, with the condition "if that is <= epsilon"
    dropped: change the law of one draw at a time. With the other draws fixed in law, g(u) = P(output | this
    draw is u) moves by at most e^epsilon, so swapping the replaced row inside this draw changes the average
    of g by at most the factor 1 + (e^epsilon - 1)/of; multiply over the draws. Attained by Laplace noise. The
    printed Prop. 7 of Fish et al. (and the formula without replacement) claim less and are false here. Cost:
    O(1).
    """
    ell, n = integer("rows", rows), integer("of", of)
    eps = float_up(exact("epsilon", epsilon))
    return up(ell * _log_one_plus(eps, 1.0 / n)) if eps else 0.0


def _log_one_plus(epsilon: float, share: float) -> float:
    """ln(1 + share (e^epsilon - 1)), rounded up."""
    if epsilon < 700.0:
        return up(math.log1p(share * math.expm1(epsilon)))
    terms = epsilon, math.log(share)
    return up(sum(terms) + math.exp(-epsilon) / share, sum(map(abs, terms)))
