"""Submitters who overfit a leaderboard on purpose. Labels are fair coins, so every model is worth 1/2.

Each attacker is a generator of submissions: it yields predictions for the rows of the test set and is sent
what the board answered. It never sees a label.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.noise.bits import Bits

Labels = NDArray[np.int64]
Attack = Generator[NDArray[np.float64], float, Callable[[], NDArray[np.float64]]]
"""Yields predictions, gets scores, and in the end returns a function for the predictions on fresh rows."""


@dataclass(frozen=True, slots=True)
class World:
    """Public facts: how many rows are in the test set and in the fresh one, and where luck comes from."""

    rows: int
    fresh: int
    bits: Bits

    def coins(self, count: int) -> Labels:
        """Fair coins."""
        packed = self.bits.chunks(-(-count // 8), 8).astype(np.uint8)
        return np.unpackbits(packed, count=count).astype(np.int64)


def majority_vote(world: World, submissions: int, every: int = 40) -> Attack:
    """Random classifiers; each is counted for or against as its score is above or below 1/2.

    Every `every` submissions their majority is submitted. Against exact scores it reaches
    Phi(sqrt(2k/(pi n))): 0.79 at k = n. Reference: Blum and Hardt 2015, section 5, with signs.
    """
    held, fresh = np.zeros(world.rows), np.zeros(world.fresh)

    def vote(votes: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(votes == 0.0, world.coins(len(votes)), votes > 0.0).astype(np.float64)

    for number in range(1, submissions + 1):
        if number % every == 0:
            yield vote(held)
            continue
        said = world.coins(world.rows + world.fresh)
        score = yield said[: world.rows].astype(np.float64)
        weight = 1.0 if score >= 0.5 else -1.0
        held += weight * (2.0 * said[: world.rows] - 1.0)
        fresh += weight * (2.0 * said[world.rows :] - 1.0)
    return lambda: vote(fresh)


def hill_climbing(world: World, submissions: int, flips: int = 10) -> Attack:
    """A guess for each of n cells of the input; flip a few at a time and keep what scores better."""
    cells = world.rows
    place = world.bits.integers_below(cells, world.rows)
    elsewhere = world.bits.integers_below(cells, world.fresh)
    guess = world.coins(cells).astype(np.float64)
    best = yield guess[place]
    for _ in range(submissions - 1):
        trial = guess.copy()
        chosen = world.bits.integers_below(cells, flips)
        trial[chosen] = 1.0 - trial[chosen]
        score = yield trial[place]
        if score > best:
            guess, best = trial, score
    return lambda: guess[elsewhere]


def log_loss_oracle(world: World, submissions: int, most: float = 4.9, labels_each: int = 6) -> Attack:
    """Chances that spell labels in binary: each submission reads `labels_each` of them off the log-loss.

    Row i of a group gets log-odds -d 2^i, every other row 1/2; then n times the loss, less what it would be
    if all labels were 0, is d times the number whose binary digits are the labels.
    Reference: Whitehill 2018. Returns the labels that it read, for the rows of the test set.
    """
    d = most / 2.0 ** (labels_each - 1)
    odds = -d * 2.0 ** np.arange(labels_each)
    read = np.full(world.rows, 0.5)
    for start in range(0, min(world.rows, submissions * labels_each), labels_each):
        group = np.arange(start, min(start + labels_each, world.rows))
        chances = np.full(world.rows, 0.5)
        chances[group] = 1.0 / (1.0 + np.exp(-odds[: len(group)]))
        score = yield chances
        zero = (world.rows - len(group)) * np.log(2.0) - np.log1p(-chances[group]).sum()
        number = round((world.rows * score - zero) / d)
        spelt = min(max(number, 0), 2 ** len(group) - 1)
        read[group] = [(spelt >> i) & 1 for i in range(len(group))]
    return lambda: read
