"""Metrics that are functions of one table: every row falls into a cell, and the whole table is told at once.

With noise sigma on each cell it tells less than four means with that noise would, however many cells there are. Sums of
cells have the noise of their square length; the metric is bounded for all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.check import between, integer
from holdfast.errors import InputError

TABLE_LOOKS = 4
"""What a table is worth: four scalar answers bound what it tells and what it costs."""
_MOST_CLASSES = 64

Reach = Callable[[float], float]
"""The half-width of a mean over rows of range 1 whose noise is that many times a cell's."""
Steps = NDArray[np.int64]


class Table(Protocol):
    """Where rows fall, and what the table says."""

    @property
    def needs_two_classes(self) -> bool:
        """Whether labels must be 0 and 1."""

    def cells(self, classes: int) -> int:
        """How many cells there are."""

    def statements(self, classes: int) -> float:
        """How many sums of cells must be within their reach at once."""

    def fall(self, said: NDArray[Any], numbers: Steps, classes: int) -> tuple[Steps, NDArray[np.float64]]:
        """(the cell of each row, its value there from -1 to 1). What is no class is predicted as number `classes`."""

    def read(self, cells: NDArray[np.float64], reach: Reach) -> tuple[float, float, float]:
        """(value, low, high) of the metric from noisy means over the cells."""


@dataclass(frozen=True, slots=True)
class AreaUnderCurve:
    """The chance that a row of class 1 has a higher score than one of class 0; ties count half.

    Scores fall into `bins` equal bins from low to high. Inside a bin the order is not known: the low end counts such
    pairs as lost, the high end as won.
    """

    bins: int
    low: float
    high: float
    needs_two_classes: bool = True

    def cells(self, classes: int) -> int:
        return 2 * self.bins

    def statements(self, classes: int) -> float:
        return 2.0 * (self.bins - 1)

    def fall(self, said: NDArray[Any], numbers: Steps, classes: int) -> tuple[Steps, NDArray[np.float64]]:
        scores = said[:, 1] if said.ndim == 2 else said
        part = np.nan_to_num((scores - self.low) / (self.high - self.low), nan=0.0)
        bins = np.clip((part * self.bins).astype(np.int64), 0, self.bins - 1)
        return numbers * self.bins + bins, np.ones(len(bins))

    def read(self, cells: NDArray[np.float64], reach: Reach) -> tuple[float, float, float]:
        bands = []
        for held in (cells[: self.bins], cells[self.bins :]):
            # The share of a class at or above each edge, by Fieller: the true share c has (1-c)*above - c*below = 0.
            low, high, middle = np.zeros(self.bins + 1), np.ones(self.bins + 1), np.zeros(self.bins + 1)
            low[0], high[-1], middle[0] = 1.0, 0.0, 1.0
            for edge in range(1, self.bins):
                above, below = float(held[edge:].sum()), float(held[:edge].sum())
                wide = reach(math.sqrt(max(edge, self.bins - edge)))
                low[edge], high[edge] = share_between(above, above + below, wide)
                middle[edge] = above / (above + below) if above + below > 0 else 0.5
            low = np.maximum.accumulate(low[::-1])[::-1]  # shares fall from edge to edge
            high = np.minimum.accumulate(high)
            bands.append((low, high, np.clip(np.minimum.accumulate(middle), 0.0, 1.0)))
        (low_0, high_0, middle_0), (low_1, high_1, middle_1) = bands
        least = float(-np.diff(high_0) @ low_1[1:])
        most = float(-np.diff(low_0) @ high_1[:-1])
        value = float(-np.diff(middle_0) @ (middle_1[1:] + middle_1[:-1]) / 2)
        return value, least, most


@dataclass(frozen=True, slots=True)
class BalancedAccuracy:
    """The mean over the classes of the share of their rows that are predicted right."""

    needs_two_classes: bool = False

    def cells(self, classes: int) -> int:
        return 2 * classes

    def statements(self, classes: int) -> float:
        return float(classes)

    def fall(self, said: NDArray[Any], numbers: Steps, classes: int) -> tuple[Steps, NDArray[np.float64]]:
        return 2 * numbers + (said == numbers), np.ones(len(numbers))

    def read(self, cells: NDArray[np.float64], reach: Reach) -> tuple[float, float, float]:
        wrong, right = cells[::2], cells[1::2]
        wide, all_of = reach(1.0), right + wrong
        ends = [share_between(float(r), float(a), wide) for r, a in zip(right, all_of, strict=True)]
        values = [min(1.0, max(0.0, r / a)) if a > 0 else 0.5 for r, a in zip(right, all_of, strict=True)]
        lows, highs = zip(*ends, strict=True)
        return float(np.mean(values)), float(np.mean(lows)), float(np.mean(highs))


@dataclass(frozen=True, slots=True)
class MacroF1:
    """The mean over the classes of 2TP/(2TP + FP + FN)."""

    needs_two_classes: bool = False

    def cells(self, classes: int) -> int:
        return classes * (classes + 1)  # a prediction may be no class at all

    def statements(self, classes: int) -> float:
        return float(classes)

    def fall(self, said: NDArray[Any], numbers: Steps, classes: int) -> tuple[Steps, NDArray[np.float64]]:
        return numbers * (classes + 1) + said, np.ones(len(numbers))

    def read(self, cells: NDArray[np.float64], reach: Reach) -> tuple[float, float, float]:
        classes = round(math.sqrt(len(cells) + 0.25) - 0.5)
        table = cells.reshape(classes, classes + 1)
        # For the true c, (1-c)TP - c(FP+FN)/2 is 0: two classes' rows and columns but one cell, half a weight each.
        wide = reach(math.sqrt(max(1.0, (2 * classes - 1) / 4)))
        found = []
        for c in range(classes):
            right = float(table[c, c])
            either = (float(table[c].sum()) + float(table[:, c].sum())) / 2
            low, high = share_between(right, either, wide)
            found.append((min(1.0, max(0.0, right / either)) if either > 0 else 0.5, low, high))
        value, low, high = np.mean(found, axis=0)
        return float(value), float(low), float(high)


@dataclass(frozen=True, slots=True)
class CalibrationError:
    """The sum over bins of the predicted chance of label 1 of |E[(label - chance) in the bin]|."""

    bins: int
    needs_two_classes: bool = True

    def cells(self, classes: int) -> int:
        return self.bins

    def statements(self, classes: int) -> float:
        return 2.0**self.bins  # for every choice of signs

    def fall(self, said: NDArray[Any], numbers: Steps, classes: int) -> tuple[Steps, NDArray[np.float64]]:
        chances = np.clip(np.nan_to_num(said[:, 1] if said.ndim == 2 else said, nan=0.5), 0.0, 1.0)
        bins = np.minimum((chances * self.bins).astype(np.int64), self.bins - 1)
        return bins, numbers - chances

    def read(self, cells: NDArray[np.float64], reach: Reach) -> tuple[float, float, float]:
        value = float(np.abs(cells).sum())
        wide = 2 * reach(math.sqrt(self.bins) / 2)  # a mean in [-1,1] is twice one in [0,1]
        return min(1.0, value), max(0.0, value - wide), min(1.0, value + wide)


def share_between(part: float, whole: float, reach: float) -> tuple[float, float]:
    """All c in [0,1] with |part - c*whole| <= reach; [0,1] where the whole is too small to say."""
    if whole <= reach:
        return 0.0, 1.0
    low, high = (part - reach) / whole, (part + reach) / whole
    return max(0.0, min(1.0, math.nextafter(low, -1.0))), min(1.0, max(0.0, math.nextafter(high, 2.0)))


def bins_of(bins: object, most: int) -> int:
    """A number of bins."""
    return integer("bins", bins, 2, most)


def score_range(low: object, high: object) -> tuple[float, float]:
    """A declared range of scores."""
    first, last = between("low", low), between("high", high)
    if not first < last:
        raise InputError(
            f"expected low below high, got {first:g} and {last:g}; declare the range of the scores"
        )
    return first, last


def refuse_classes(name: str, table: Table, classes: int, two: bool) -> None:
    """InputError for labels that the table makes no sense of."""
    if table.needs_two_classes and not two:
        raise InputError(f"expected labels 0 and 1 for {name}, got others; code the class of interest as 1")
    if not 2 <= classes <= _MOST_CLASSES:
        raise InputError(
            f"expected labels of 2 to {_MOST_CLASSES} classes for {name}, got {classes:,}; use accuracy or a loss"
        )
