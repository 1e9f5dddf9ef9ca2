"""Running totals from noise that is added before them: the square-root factorisation on whole numbers.

Let A be the T x T lower triangle of ones, so that Ax are the running totals of the groups' totals x, and C the lower
triangular Toeplitz matrix of the whole numbers F(k), nearest to `FINENESS` f(k), f(0) = 1, f(k) = (1 - 1/(2k)) f(k-1);
f is the square root of A: f*f = 1, 1, 1, ... . What is told is y = Cx + z, whole numbers with independent discrete
Gaussian noise z; Ax + Hz follows from it, H = A C^-1, which is Toeplitz too, with entries h(k) of about f(k)/FINENESS.
Proofs: docs/theorems.md, Theorem 136.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

FINENESS = 2**12
"""How many units of the noise's grid a row is, in the first of its totals."""
LONGEST = 2**13
"""The most groups that are added up one after another."""
_FLOATS = 2.0**-38
"""More than the floats of a decoding can have moved it, relative to the sum of |h| times the largest total."""


def root_coefficients(count: int) -> NDArray[np.float64]:
    """f(0), ..., f(count-1): the square root of the running sum."""
    f = np.ones(count)
    k = np.arange(1, count)
    np.cumprod(1 - 0.5 / k, out=f[1:])
    return f


@dataclass(frozen=True, eq=False)
class Strategy:
    """The factorisation for so many groups, with what one row of one group can do. In units of the grid."""

    factors: NDArray[np.int64]
    """F."""
    weights: NDArray[np.float64]
    """h."""
    apart: int
    """The squared distance of the farthest two rows in different groups."""
    longest: int
    """The squared length of what one row adds."""

    @property
    def whole(self) -> int:
        """The sum of F: the most that one row adds to any number that is told, and to all of them."""
        return int(self.factors.sum())

    def norm(self, groups: int) -> float:
        """The squared length of the weights of the first so many groups' running total, rounded up."""
        return float(np.sum(self.weights[:groups] ** 2)) * (1 + 2.0**-40)

    def rank_norm(self, rank: float) -> float:
        """The longest squared weights of a running total less `rank` times the last one, rounded up."""
        norms = np.cumsum(self.weights**2)
        together = np.correlate(self.weights, self.weights, "full")[len(norms) - 1 :][::-1]
        return float(np.max(norms + rank**2 * norms[-1] - 2 * rank * together)) * (1 + 2.0**-36)

    def encoded(self, totals: NDArray[np.int64]) -> NDArray[np.int64]:
        """Cx for each line of groups' totals, exact in int64. Its time depends on the shape alone."""
        size = len(self.factors)
        lines = totals.reshape(-1, size)
        return np.stack([np.convolve(line, self.factors)[:size] for line in lines]).reshape(totals.shape)

    def decoded(self, told: NDArray[np.int64]) -> tuple[NDArray[np.float64], float]:
        """The running totals that were told, line by line, and how far floats may have moved them."""
        size = len(self.factors)
        lines = told.reshape(-1, size).astype(np.float64)
        found = np.stack([np.convolve(line, self.weights)[:size] for line in lines])
        slack = _FLOATS * float(np.abs(self.weights).sum()) * float(np.abs(lines).max(initial=1.0))
        return found, slack


@lru_cache(maxsize=32)
def strategy(groups: int) -> Strategy:
    """The factorisation for so many groups."""
    assert 1 <= groups <= LONGEST
    factors = np.rint(root_coefficients(groups) * FINENESS).astype(np.int64)
    weights, real = np.zeros(groups), factors.astype(np.float64)
    for k in range(groups):
        weights[k] = (1 - real[1 : k + 1] @ weights[:k][::-1]) / real[0]
    squares = np.cumsum(factors**2)
    lags = np.correlate(factors, factors, "full")[groups:]  # of 1, 2, ... groups
    apart = squares[-1] + squares[:-1][::-1] - 2 * lags
    return Strategy(factors, weights, int(np.max(apart, initial=0)), int(squares[-1]))
