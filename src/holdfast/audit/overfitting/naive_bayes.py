"""Analysts that add up what many answers told them about a hidden label.

Each of k coins agrees with the label half of the time. Exact answers tell by how much a coin agrees *in the
sample*, and a vote with the log-odds as weights is right on the sample far more often than on new rows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from holdfast.audit.overfitting.chance import Generator
from holdfast.audit.overfitting.game import Referee, Rows, Truths, Vector


def single_adaptive_analyst(ask: Referee, generator: Generator) -> None:
    """k-1 coins, then the naive-Bayes vote over them.

    Against exact answers the last error is about 0.399 sqrt(k/n).
    Reference: Rogers et al. 2020, Algorithm 5, with ln(a/(1-a)) for its misprint ln(a/(a-1)).
    """
    columns = np.arange(1, ask.queries)
    ask_vote(ask, columns, log_odds(ask_coins(ask, columns), ask.rows))


def quadratic_adaptive_analyst(ask: Referee, generator: Generator) -> None:
    """Question i is the vote over all earlier coins when i is a perfect square, and a new coin otherwise.

    Reference: Rogers et al. 2020, section 4 ("quadratic-adaptive" queries).
    """
    weights = np.empty(0)
    for root in range(1, math.isqrt(ask.queries) + 1):
        if len(weights):
            ask_vote(ask, np.arange(1, 1 + len(weights)), weights)
        fresh = np.arange(1, 1 + min(2 * root, ask.left)) + len(weights)
        weights = np.concatenate([weights, log_odds(ask_coins(ask, fresh), ask.rows)])


REPEATS = 10
_BLOCK = 512


def repeating_analyst(ask: Referee, generator: Generator) -> None:
    """Each coin is asked about ten times and the answers are averaged; then the vote over all coins.

    Fresh noise on a repeated question averages out; exact answers lose nothing.
    """
    columns = np.arange(1, 1 + (ask.queries - 1) // REPEATS)
    total = np.zeros(len(columns))
    for _ in range(REPEATS):
        total += ask_coins(ask, columns)
    ask_vote(ask, columns, log_odds(total / REPEATS, ask.rows))


def log_odds(answers: Vector, rows: int) -> Vector:
    """ln(a/(1-a)), with answers kept off 0 and 1."""
    clipped = np.clip(answers, 1.0 / (4 * rows), 1.0 - 1.0 / (4 * rows))
    return np.log(clipped) - np.log1p(-clipped)


def ask_coins(ask: Referee, columns: NDArray[np.int64], guesses: Vector | None = None) -> Vector:
    """Ask how often some coins agree with the label. In the population: half of the time."""
    if not len(columns):
        return np.empty(0)
    return ask.many(lambda rows: _coins(rows, columns), np.full(len(columns), 0.5), guesses)


def ask_vote(ask: Referee, columns: NDArray[np.int64], weights: Vector, guess: float | None = None) -> float:
    """Ask how often the weighted vote of some coins is right. In the population: half of the time."""

    def vote(rows: Rows) -> Truths:
        margin = signed_sum(rows, columns, weights)
        # The label decides ties, so that both sides are equally likely.
        return np.where(margin == 0.0, rows[:, 0], margin > 0.0)

    return ask(vote, 0.5, guess)


def signed_sum(rows: Rows, columns: NDArray[np.int64], weights: Vector) -> Vector:
    """For each row the sum of weights of true coins minus that of false ones."""
    light = weights.astype(np.float32)
    total = np.full(len(rows), -light.sum(dtype=np.float64))
    for start in range(0, len(columns), _BLOCK):
        stop = min(start + _BLOCK, len(columns))
        total += 2.0 * (_coins(rows, columns[start:stop]).astype(np.float32) @ light[start:stop])
    return total


def _coins(rows: Rows, columns: NDArray[np.int64]) -> Truths:
    """Some columns; neighbours are a view, not a copy."""
    first, last = int(columns[0]), int(columns[-1])
    if last - first == len(columns) - 1 and bool(np.all(np.diff(columns) == 1)):
        return rows[:, first : last + 1]
    return rows[:, columns]
