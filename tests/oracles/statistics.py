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


LogLaw = Callable[[NDArray[np.int64], float], NDArray[np.float64]]
"""The logarithm of the probability of each draw at a scale, up to what no scale changes."""


def laplace_log_law(draws: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    """P(X = x) = (1-q)/(1+q) q^|x| with q = exp(-1/scale)."""
    return np.log(np.tanh(0.5 / scale)) - np.abs(draws) / scale


def gaussian_log_law(draws: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    """P(X = x) is proportional to exp(-x^2/(2 scale^2)) over the integers."""
    support = np.arange(-int(40 * scale) - 1, int(40 * scale) + 2)
    return -(draws**2) / (2 * scale**2) - np.log(np.exp(-(support**2) / (2 * scale**2)).sum())


def scaled(draws: NDArray[np.int64], log_law: LogLaw, scale: float) -> float:
    """A p-value of `scale`: how much likelier a tenth less and a tenth more make the draws, on average, inverted.

    Under the law itself a likelihood ratio has expectation 1, and so has the mean of two: by Markov the p-value is
    below p with probability at most p, at every number of draws.
    """
    claimed, less, more = (float(log_law(draws, scale * factor).sum()) for factor in (1.0, 0.9, 1.1))
    return float(np.exp(min(0.0, claimed - np.logaddexp(less, more) + np.log(2))))
