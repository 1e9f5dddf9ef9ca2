"""Decision stumps: thresholds on each of several features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import InputError
from holdfast.learn.labelled_rows import Labels, Matrix
from holdfast.learn.thresholds import Thresholds


class Stumps:
    """The thresholds of feature 0, then those of feature 1, and so on; one list of cuts for each feature."""

    def __init__(self, cuts: Sequence[ArrayLike]) -> None:
        if not len(cuts):
            raise InputError("expected a list of thresholds for each feature as cuts, got none")
        self.parts = tuple(Thresholds(values, column) for column, values in enumerate(cuts))
        self._starts = np.cumsum([0, *(part.size for part in self.parts)])

    @property
    def size(self) -> int:
        return int(self._starts[-1])

    def mistakes(self, rows: Matrix, truth: Labels) -> NDArray[np.int64]:
        """For each hypothesis, how many rows it labels wrongly."""
        return np.concatenate([part.mistakes(rows, truth) for part in self.parts])

    def predict(self, index: int, rows: Matrix) -> Labels:
        """What hypothesis `index` says of the rows."""
        part, place = self._find(index)
        return part.predict(place, rows)

    def describe(self, index: int) -> str:
        part, place = self._find(index)
        return part.describe(place)

    def _find(self, index: int) -> tuple[Thresholds, int]:
        column = int(np.searchsorted(self._starts, index, side="right")) - 1
        return self.parts[column], index - int(self._starts[column])
