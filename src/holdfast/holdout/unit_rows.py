"""Which rows of a holdout belong to one unit (a person with many rows), and what they say of it together."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.check import integer
from holdfast.errors import InputError
from holdfast.holdout.label_release import Cells, Rows, whole_steps
from holdfast.holdout.metric import GRID, Metric

Steps = NDArray[np.int64]


class UnitRows:
    """The rows of each unit, the first `most` of them in the order of the holdout; others are left out.

    Which rows a unit has is public, as row numbers are. Keys are whole numbers or texts, one for each row; `numbers`
    are units in the order of their keys.
    """

    def __init__(self, keys: ArrayLike, rows: int, most: object) -> None:
        self.most = integer("rows_per_unit", most, 1, 1 << 30)
        _, numbers = np.unique(_keys(keys, rows), return_inverse=True)
        lengths = np.bincount(numbers)
        order = np.argsort(numbers, kind="stable")
        kept = _kept(np.arange(rows) - np.repeat(np.cumsum(lengths) - lengths, lengths), self.most)
        self._rows, self._lengths = order[kept], np.bincount(numbers[order[kept]])
        self._starts = np.cumsum(self._lengths) - self._lengths
        self.numbers: Steps = numbers.astype(np.int64)
        ranks = np.arange(len(self._rows)) - np.repeat(self._starts, self._lengths)
        self._shares = _shares(np.repeat(self._lengths, self._lengths), ranks)

    def __len__(self) -> int:
        return len(self._lengths)

    def digest(self, labels: str) -> str:
        """The fingerprint of labels that belong to these units."""
        firsts = np.full(len(self), len(self.numbers))
        np.minimum.at(firsts, self.numbers, np.arange(len(self.numbers)))  # the same whatever keys are called
        text = (
            f"holdfast units {labels} {self.most}\n".encode() + firsts[self.numbers].astype("<i8").tobytes()
        )
        return hashlib.sha256(text).hexdigest()[:32]

    def values(self, sides: list[Rows]) -> list[Rows]:
        """The values of units from those of rows: the mean of its rows, or for a ratio its totals over `most`.

        Guarantee: one number from 0 to GRID for each unit, even, that depends on the rows of this unit alone and is
        within a step of what it stands for. Reference: docs/theorems.md, Theorem 185.
        """
        return [partial(self._added, side, len(sides) == 2) for side in sides]

    def cells(self, rows: Cells) -> Cells:
        """Where the rows that are kept fall, with their share of their unit there.

        Guarantee: what a unit adds to the cells depends on the rows of this unit alone, and is at most GRID in all. A
        sum of cells with weights from -1 to 1 is within `2 * longest` steps of the mean of its rows.
        Reference: docs/theorems.md, Theorem 185.
        """
        return partial(self._fallen, rows)

    def tabled(self, metric: Metric) -> Metric:
        """A metric of cells by the name of what is estimated, rounded with all rows of a unit."""
        longest = int(self._lengths.max())
        return replace(
            metric, name=f"{metric.name}, where a unit weighs one", roundings=metric.roundings + 2 * longest
        )

    def told(self, metric: Metric, ratio: bool) -> Metric:
        """The metric by the name of what is estimated, rounded once more."""
        words = f" over rows, at most {self.most} a unit" if ratio else ", the mean of units' means"
        return replace(metric, name=metric.name + words, roundings=metric.roundings + 1)

    def mean(self, sizes: NDArray[np.int64]) -> float:
        """A bound in steps for the mean over units of |first - second|, by bounds for their rows: both are rounded."""
        (held,) = self.values([lambda ids: sizes[ids]])
        return float(held(None).sum(dtype=np.int64)) / len(self) + 3.0

    def _fallen(self, rows: Cells, _: Steps | None) -> tuple[Steps, Steps]:
        places, values = rows(self._rows)
        return places, np.rint(values * self._shares / GRID).astype(np.int64)

    def _added(self, rows: Rows, ratio: bool, units: Steps | None) -> Steps:
        if units is None:
            places, starts, lengths = self._rows, self._starts, self._lengths
        else:
            lengths = self._lengths[units]
            starts = np.cumsum(lengths) - lengths
            places = self._rows[np.repeat(self._starts[units] - starts, lengths) + np.arange(lengths.sum())]
        halves = np.add.reduceat(whole_steps(rows(places)) // 2, starts)
        return _shared(halves, np.asarray(self.most) if ratio else lengths)


def _kept(rank: Steps, most: int) -> NDArray[np.bool_]:
    """Which rows are kept, by their rank within their unit."""
    return rank < most


def _shares(lengths: Steps, ranks: Steps) -> Steps:
    """What each row of a unit weighs: whole steps, which make GRID together."""
    return GRID // lengths + (ranks < GRID % lengths)


def _shared(halves: Steps, among: Steps) -> Steps:
    """A sum of half values shared among so many rows, as even steps: the nearest."""
    return 2 * ((2 * halves + among) // (2 * among))


def _keys(keys: ArrayLike, rows: int) -> NDArray[np.generic]:
    try:
        array = np.asarray(keys)
    except ValueError:
        raise InputError("expected a column of keys for units, got entries of several shapes") from None
    if array.shape != (rows,):
        raise InputError(
            f"expected one key for each of {rows} rows for units, got shape {array.shape}; give the column of keys"
        )
    if array.dtype == np.object_ and all(type(key) is str for key in array):
        array = array.astype(np.str_)
    if array.dtype.kind not in "iuU":
        raise InputError(
            f"expected whole numbers or texts as keys of units, got {array.dtype}; drop the rows without a key"
        )
    return array
