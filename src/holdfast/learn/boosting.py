"""AdaBoost over decision stumps. Not private: it shows what margins say of new rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.check import integer
from holdfast.learn.labelled_rows import Labels, Matrix, labels, matrix
from holdfast.learn.stumps import Stumps

_SURE = 1e-12
"""A stump without error would get an infinite weight; its error counts as this much."""


@dataclass(frozen=True, slots=True)
class Boosted:
    """Stumps with their weights, in the order in which boosting chose them."""

    stumps: Stumps = field(repr=False)
    chosen: tuple[int, ...]
    weights: NDArray[np.float64] = field(repr=False)

    @property
    def log_hypotheses(self) -> float:
        """ln|H| of the class that was boosted, fixed before the rows were seen."""
        return math.log(self.stumps.size)

    def votes(self, rows: Matrix) -> NDArray[np.float64]:
        """What each stump says of each row: -1 or 1, one column for each round."""
        unique, where = np.unique(self.chosen, return_inverse=True)
        said = np.stack([np.where(self.stumps.predict(int(i), rows), 1.0, -1.0) for i in unique], axis=1)
        return said[:, where]

    def predict(self, rows: ArrayLike) -> Labels:
        """The weighted majority of the stumps."""
        return self.votes(matrix(rows)) @ self.weights > 0


def adaboost(stumps: Stumps, rows: ArrayLike, truth: ArrayLike, *, rounds: int = 1000) -> Boosted:
    """Boost: choose the stump with the least weighted error e, give it the weight ln((1-e)/e)/2, and raise the
    weights of the rows that it gets wrong; stop early if no stump beats chance.

    Reference: Freund and Schapire 1997.
    Cost: a round takes O(d (rows + thresholds)), in a few array passes.
    """
    table = matrix(rows)
    y = np.where(labels(truth, len(table)), 1.0, -1.0)
    sizes = [part.values.size for part in stumps.parts]
    starts = np.cumsum([0, *(size + 1 for size in sizes)])
    cells = np.stack(
        [
            np.searchsorted(part.values, table[:, part.column], side="right") + start
            for part, start in zip(stumps.parts, starts[:-1], strict=True)
        ],
        axis=1,
    )
    last = np.delete(
        np.arange(starts[-1]), starts[1:] - 1
    )  # a cell below each threshold, none above the last
    owner = np.repeat(np.arange(len(sizes)), sizes)
    weight = np.full(len(y), 1.0 / len(y))
    chosen: list[int] = []
    alphas: list[float] = []
    for _ in range(integer("rounds", rounds)):
        signed = np.repeat(weight * y, len(sizes))
        sums = np.cumsum(np.bincount(cells.ravel(), weights=signed, minlength=starts[-1]))
        before = np.concatenate([[0.0], sums])[starts[:-1]]
        total = float(weight @ y)
        edges = total - 2.0 * (sums[last] - before[owner])  # the correlation of "at least" with the truth
        place = int(np.argmax(np.abs(edges)))
        index = 2 * place + (edges[place] < 0)
        wrong = np.where(stumps.predict(int(index), table), 1.0, -1.0) != y
        error = max(float(weight[wrong].sum()), _SURE)
        if error >= 0.5 - _SURE:
            break
        alpha = 0.5 * math.log((1 - error) / error)
        chosen.append(int(index))
        alphas.append(alpha)
        if error <= _SURE:
            break
        weight = weight * np.exp(np.where(wrong, alpha, -alpha))
        weight /= weight.sum()
    return Boosted(stumps, tuple(chosen or [0]), np.array(alphas or [1.0]))
