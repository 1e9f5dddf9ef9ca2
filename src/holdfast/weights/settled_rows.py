"""Rows that agree with given pairs of columns as nearly as whole rows can: values are exchanged between rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.noise.bits import Bits
from holdfast.weights.marginals import Axes

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
MOST_CELLS = 2**22
"""So many cells of all pairs together are held to; where there are more, rows stay as they are."""
_PASSES, _WORK = 60, 2**32
_TAKEN = 0.1
"""Exchanges are made of so many of the rows at once: each helps by itself, and too many together would not."""


def settled(
    codes: Sequence[Codes],
    chances: Mapping[Axes, Array],
    draw: Bits,
    within: Sequence[Codes] | None = None,
) -> list[Codes]:
    """The codes of rows, column by column, after exchanges of values between rows that bring the counts of pairs nearer
    to `chances`: in squared distance, each cell over the root of 1 and what is expected in it. (Over that itself, the
    likely cells of strong pairs pay for the many others; over nothing, the others are hardly seen.)

    No column by itself changes. With `within`, a part for each code of each column, values are exchanged inside their
    part only. A function of public numbers and random bits, told nothing of the rows of the table.
    Requires: chances for every pair of columns. Cost: up to 60 times a few numbers for each row and pair; fewer for
    many rows.
    """
    made, rows = [own.copy() for own in codes], len(codes[0])
    if rows < 2 or len(made) < 2 or sum(own.size for own in chances.values()) > MOST_CELLS:
        return made
    held, few = _Held(made, chances), -int(-_TAKEN * rows // 2)
    for _ in range(min(_PASSES, _WORK // (rows * len(made) ** 2))):
        order = np.argsort(draw.words(rows), kind="stable")
        for axis, own in enumerate(made):
            near = order
            if within is not None:
                near = order[np.argsort(within[axis][own[order]], kind="stable")]
            starts = 2 * np.unique(draw.integers_below(rows // 2, few))
            first, second = near[starts], near[starts + 1]
            apart = own[first] != own[second]
            if within is not None:
                apart &= within[axis][own[first]] == within[axis][own[second]]
            held.exchange(axis, first[apart], second[apart])
    return made


class _Held:
    """Rows, how far the counts of their pairs are from what is expected, and what the square of that weighs."""

    def __init__(self, codes: list[Codes], chances: Mapping[Axes, Array]) -> None:
        self._codes, self._widths = codes, {axes: own.shape[1] for axes, own in chances.items()}
        self._away: dict[Axes, Array] = {}
        self._weights: dict[Axes, Array] = {}
        for axes, own in chances.items():
            expected = own.ravel() * len(codes[0])
            place = codes[axes[0]] * own.shape[1] + codes[axes[1]]
            self._away[axes] = np.bincount(place, minlength=expected.size) - expected
            self._weights[axes] = 1 / np.sqrt(expected + 1)

    def exchange(self, axis: int, first: Codes, second: Codes) -> None:
        """Exchange the values of a column between these rows, wherever that alone brings the counts nearer."""
        moves, nearer = self._moves(axis, first, second), np.zeros(len(first))
        for axes, apart, leaving, coming in moves:
            away, weights = self._away[axes], self._weights[axes]
            gained = sum(weights[cell] * (2 * away[cell] - 1) for cell in leaving)
            lost = sum(weights[cell] * (2 * away[cell] + 1) for cell in coming)
            nearer += np.where(apart, gained - lost, 0.0)
        better = nearer > 0
        for axes, _, leaving, coming in moves:
            for sign, cells in ((-1, leaving), (1, coming)):
                for cell in cells:
                    self._away[axes] += sign * np.bincount(cell[better], minlength=len(self._away[axes]))
        own, first, second = self._codes[axis], first[better], second[better]
        own[first], own[second] = own[second], own[first]

    def _moves(
        self, axis: int, first: Codes, second: Codes
    ) -> list[tuple[Axes, NDArray[np.bool_], tuple[Codes, Codes], tuple[Codes, Codes]]]:
        """For each pair with this column: whether two rows differ in the other one, the cells that they leave, and
        those that they come into."""
        here, there, found = self._codes[axis][first], self._codes[axis][second], []
        for axes, width in self._widths.items():
            if axis not in axes:
                continue
            up, across = (width, 1) if axes[0] == axis else (1, width)
            other = self._codes[axes[1] if axes[0] == axis else axes[0]] * across
            near, far = other[first], other[second]
            here_up, there_up = here * up, there * up
            leaving, coming = (here_up + near, there_up + far), (there_up + near, here_up + far)
            found.append((axes, near != far, leaving, coming))
        return found
