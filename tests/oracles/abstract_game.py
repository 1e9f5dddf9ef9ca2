"""Exact miss probabilities of answers with fresh noise, when a hidden state moves the mean of each query.

A game has finitely many hidden states; in state t the empirical mean of query j is off by bias[t, j] from the
population's. This is all that Theorems V, W, J0 and the anytime forms know of the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np


def tail(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def gaussian_miss(chance: np.ndarray, bias: np.ndarray, sigma: np.ndarray, width: np.ndarray) -> float:
    """Pr[some |bias + sigma g| > width]: queries in sequence, independent noise."""
    total = 0.0
    for p, row in zip(chance, bias, strict=True):
        stays = 1.0
        for d, s, t in zip(row, sigma, width, strict=True):
            stays *= 1.0 - tail((t - d) / s) - tail((t + d) / s)
        total += float(p) * (1.0 - stays)
    return total


def interval_miss(
    chance: np.ndarray,
    truth: np.ndarray,
    bias: np.ndarray,
    law: Callable[[float], tuple[np.ndarray, np.ndarray]],
    interval: Callable[[float], tuple[float, float]],
) -> float:
    """Pr[some truth outside interval(answer)], where law(mean) gives (answers, probabilities)."""
    total = 0.0
    for p, row in zip(chance, bias, strict=True):
        stays = 1.0
        for w, d in zip(truth, row, strict=True):
            answers, weights = law(float(w + d))
            inside = 0.0
            for answer, weight in zip(answers, weights, strict=True):
                low, high = interval(float(answer))
                inside += float(weight) * (low <= w <= high)
            stays *= inside
        total += float(p) * (1.0 - stays)
    return total


def worst_mean(chance: np.ndarray, bias: np.ndarray, beta: float) -> float:
    """An alpha_* that holds for this game: the mean of the largest |bias| on a set of states of probability
    beta."""
    left, total = beta, 0.0
    largest = np.abs(bias).max(axis=1)
    for i in np.argsort(-largest):
        take = min(left, float(chance[i]))
        total += take * float(largest[i])
        left -= take
        if left <= 0.0:
            break
    return total / beta


def odds_excess(chance: np.ndarray, truth: np.ndarray, bias: np.ndarray, epsilon: float) -> float:
    """A delta(epsilon) that holds for this game: E max over j and sides of (D~ - t_eps(w~))_+."""
    r = math.exp(epsilon)

    def moved(w: np.ndarray) -> np.ndarray:
        return (r - 1.0) * w * (1.0 - w) / (1.0 + (r - 1.0) * w)

    up, down = bias - moved(truth)[None, :], -bias - moved(1.0 - truth)[None, :]
    return float((chance * np.maximum(0.0, np.maximum(up, down)).max(axis=1)).sum())
