"""Conjunctions of literals over truth values, all 3^d of them in one pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.check import integer
from holdfast.learn.labelled_rows import Labels, Matrix

_MOST_FEATURES = 14


class Conjunctions:
    """Each of d features is left out, wanted, or wanted to be false; a feature is true if its number is above 0.

    The digits of an index in base 3, the first feature first: 0 left out, 1 true, 2 false.
    Cost: one histogram of 2^d cells, then d passes over a tensor that grows to 3^d.
    """

    def __init__(self, features: int) -> None:
        self.features = integer("features", features, most=_MOST_FEATURES)

    @property
    def size(self) -> int:
        return int(3**self.features)

    def mistakes(self, rows: Matrix, truth: Labels) -> NDArray[np.int64]:
        """For each hypothesis, how many rows it labels wrongly."""
        d = self.features
        cells = (rows[:, :d] > 0) @ (1 << np.arange(d - 1, -1, -1))
        gain = _counts(cells[truth], 1 << d) - _counts(cells[~truth], 1 << d)
        tensor = gain.reshape((2,) * d)
        for axis in range(d):
            false, true = np.take(tensor, 0, axis), np.take(tensor, 1, axis)
            tensor = np.stack([false + true, true, false], axis=axis)
        # Wrong are the true rows outside and the false rows inside.
        wrong: NDArray[np.int64] = np.count_nonzero(truth) - tensor.ravel()
        return wrong

    def predict(self, index: int, rows: Matrix) -> Labels:
        """What hypothesis `index` says of the rows."""
        said = np.ones(len(rows), dtype=np.bool_)
        for feature, digit in enumerate(self._digits(index)):
            if digit:
                said &= (rows[:, feature] > 0) == (digit == 1)
        return said

    def describe(self, index: int) -> str:
        parts = [f"{'not ' * (digit == 2)}x[{j}]" for j, digit in enumerate(self._digits(index)) if digit]
        return " and ".join(parts) or "always"

    def _digits(self, index: int) -> list[int]:
        return [index // 3 ** (self.features - 1 - j) % 3 for j in range(self.features)]


def _counts(cells: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    return np.bincount(cells, minlength=size).astype(np.int64)
