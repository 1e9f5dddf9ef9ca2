"""How much a release tells of the rows, in one number that holds for every number of rows that a plan may leave out.

The number is an information I: for each m on the ladder the release is a (p)-step of Theorem 24 that charges at most
kappa I/4, what scalar Gaussian answers charge whose 1/sigma^2 add up to I. So one number does for all releases.
"""

from __future__ import annotations

import math
from functools import lru_cache

from holdfast.privacy.rounding import down, up
from holdfast.validity.leave_out import kappa, ladder
from holdfast.validity.leave_out_charges import comparison_charge, rare_charge
from holdfast.validity.leave_out_intervals import difference_charge
from holdfast.validity.leave_out_votes import vote_charge

_LARGEST_RATE = 1e100
"""Beyond this its square leaves the floats, and everything is told anyway."""


def gaussian_told(radius_squared: float, sigma: float) -> float:
    """Numbers told together with noise sigma each: 4 R^2/sigma^2, R the radius of a ball that holds every row's vector.

    Reference: docs/theorems.md, Theorem 24 (vectors); discrete Gaussian noise tells no more.
    """
    return up(4 * radius_squared / sigma**2)


def rare_told(rows: int, sigma: float, answer: float) -> float:
    """A Gaussian answer in [0,1], read off the answer; inf on a handful of rows. At most what one of 1/2 tells.

    Reference: docs/theorems.md, Theorem 25. The charge over kappa grows with m, so the largest m on the ladder decides.
    """
    if rows < 2:
        return math.inf
    most = ladder(rows)[0]
    return up(4 * rare_charge(rows, most, sigma, answer) / down(kappa(rows, most)))


def difference_told(
    rows: int, disagreement: float, disagreement_sigma: float, sigma: float, guess: float
) -> float:
    """A difference after its disagreement, read off the (raw) disagreement; at least 0.

    Reference: docs/theorems.md, Theorems 28 and 37. The charge over kappa grows with m.
    """
    most = ladder(rows)[0]
    charge = difference_charge(rows, most, disagreement, disagreement_sigma, sigma, guess)
    return up(4 * charge / down(kappa(rows, most))) if charge > 0 else 0.0


def votes_told(rows: int, votes: int, flip: float) -> float:
    """So many votes; inf where a rung of the ladder has no bound.

    Reference: docs/theorems.md, Theorem 27.
    """
    return up(votes * _a_vote(rows, flip))


@lru_cache(maxsize=64)
def _a_vote(rows: int, flip: float) -> float:
    if rows < 3:
        return math.inf
    return max(up(4 * vote_charge(rows, m, flip) / down(kappa(rows, m))) for m in ladder(rows))


@lru_cache(maxsize=256)
def selection_told(rows: int, epsilon: float) -> float:
    """One choice by the exponential mechanism of this epsilon among scores that are row-wise means into [0,1].

    Reference: docs/theorems.md, Theorem 24 (selection).
    """
    return comparison_told(rows, epsilon * rows / 2)


def quantile_told(rows: int, epsilon: float) -> float:
    """One smoothed selection of this epsilon by its rank, smoothing = rate: 2 theta.

    Reference: docs/theorems.md, Theorem 33.
    """
    return up(2 * comparison_told(rows, epsilon * rows / 2))


@lru_cache(maxsize=256)
def comparison_told(rows: int, rate: float) -> float:
    """An alarm, q(S) + Logistic(1/rate) > T; answers below tell nothing.

    Reference: docs/theorems.md, Theorem 24 (comparisons).
    """
    if rows < 2 or rate > _LARGEST_RATE:
        return math.inf
    return max(up(4 * comparison_charge(rows, m, rate) / down(kappa(rows, m))) for m in ladder(rows))


def smoothed_choice_told(rows: int, epsilon: float) -> float:
    """One choice by the smoothed errors of `holdfast.synthesis.smoothed_choice`: a selection among candidates with
    their signs, and what its floats may add: scores on a grid of 2^20 steps, and sums that err by rows/2^44.

    Reference: docs/theorems.md, Theorem 95.
    """
    if rows < 2:
        return math.inf
    rounding = 2 * epsilon * (2.0**-20 + rows * 2.0**-45)
    return up(selection_told(rows, epsilon) + max(4 * rounding / down(kappa(rows, m)) for m in ladder(rows)))
