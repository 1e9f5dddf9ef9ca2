"""How much a release tells of the rows, in one number that holds for every number of rows that a plan may leave out.

The number is an information I: for each m on the ladder the release is a (p)-step of Theorem 24 that charges at most
kappa I/4, what scalar Gaussian answers charge whose 1/sigma^2 add up to I. So one number does for all releases.
"""

from __future__ import annotations

import math
from functools import lru_cache

from holdfast.privacy.rounding import down, up
from holdfast.validity.leave_out import kappa, ladder
from holdfast.validity.leave_out_charges import selection_charge
from holdfast.validity.leave_out_votes import vote_charge

_LARGEST_RATE = 1e100
"""Beyond this its square leaves the floats, and everything is told anyway."""


def gaussian_told(radius_squared: float, sigma: float) -> float:
    """Numbers told together with noise sigma each: 4 R^2/sigma^2, R the radius of a ball that holds every row's vector.

    Reference: docs/theorems.md, Theorem 24 (vectors); discrete Gaussian noise tells no more.
    """
    return up(4 * radius_squared / sigma**2)


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
    rate = epsilon * rows / 2
    if rows < 2 or rate > _LARGEST_RATE:
        return math.inf
    return max(up(4 * selection_charge(rows, m, rate) / down(kappa(rows, m))) for m in ladder(rows))
