"""P-values for tests of samplers, and the rate at which they may be wrong.

A statistical test here fails by accident with probability at most FALSE_ALARM. A sampler's test must also
show that its neighbours (scale x 0.9 and x 1.1) are rejected; otherwise it has no power and proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

FALSE_ALARM = 1e-9


def chi_square(observed: NDArray[np.int64] | Sequence[int], probabilities: Sequence[float]) -> float:
    """The p-value of counts against cell probabilities that sum to 1. Rare cells are merged."""
    counts = np.asarray(observed, dtype=float)
    expected = np.asarray(probabilities) * counts.sum()
    assert abs(expected.sum() - counts.sum()) < 1e-6 * counts.sum(), "probabilities must sum to 1"
    merged: list[list[float]] = [[0.0, 0.0]]
    for o, e in zip(counts, expected, strict=True):
        if merged[-1][1] >= 50:
            merged.append([0.0, 0.0])
        merged[-1][0] += o
        merged[-1][1] += e
    if len(merged) > 1 and merged[-1][1] < 50:
        o, e = merged.pop()
        merged[-1][0] += o
        merged[-1][1] += e
    if len(merged) == 1:
        return 1.0
    pairs = np.array(merged)
    return float(stats.chi2.sf(((pairs[:, 0] - pairs[:, 1]) ** 2 / pairs[:, 1]).sum(), len(pairs) - 1))


def fits(draws: NDArray[np.int64], below: Callable[[int], float], *, cells: int = 200) -> float:
    """The p-value of integer draws against the law with P(X < k) = below(k), in at most `cells` cells.

    The first hundredth of the draws cuts the cells, the others are counted in them.
    """
    pilot, ranked = np.sort(draws[: draws.size // 100]), np.sort(draws[draws.size // 100 :])
    edges = np.unique(pilot[np.linspace(0, pilot.size - 1, cells + 1)[1:-1].astype(np.int64)])
    observed = np.diff(np.searchsorted(ranked, edges, side="left"), prepend=0, append=ranked.size)
    reached = [below(int(k)) for k in edges]
    return chi_square(observed, np.diff([0.0, *reached, 1.0]).tolist())


def binomial(successes: int, trials: int, probability: float) -> float:
    """The two-sided p-value of a number of successes."""
    return float(stats.binomtest(successes, trials, probability).pvalue)


def uniform(counts: NDArray[np.int64] | Sequence[int]) -> float:
    """The p-value of counts against equal cells."""
    return chi_square(counts, [1 / len(counts)] * len(counts))
