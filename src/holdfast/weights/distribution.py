"""A distribution over a universe, known to everybody, that is tilted one question at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.noise.bits import Bits
from holdfast.query.region import GRID, Box, Region
from holdfast.query.universe import Universe
from holdfast.weights.array_module import ArrayModule, array_module
from holdfast.weights.marginals import marginals

_UNITS = float(1 << 61)
_SHORT = 16
_FEW = 64
_RENEW = 64
_LARGE = 1e120
_CACHED = 1 << 17
_MOST_BLOCKS = 1 << 12


class Weights:
    """Positive weights on the cells and on the outside, with their sum kept beside them.

    Normalisation is lazy: a probability is a weight divided by `total`, which each update corrects by the
    change of the cells it touched, and which is summed afresh now and then. A box is a view; nothing of the
    size of the universe is made for it. Weights are public: they depend on released numbers only.
    """

    __slots__ = ("_cells", "_known", "_outside", "_since", "_total", "arrays", "universe")

    def __init__(self, universe: Universe, arrays: ArrayModule | None = None) -> None:
        self.universe = universe
        self.arrays = arrays or array_module()
        self._cells = self.arrays.ones(universe.size)
        self._outside = 0.0 if universe.is_complete else 1.0
        self._total = universe.size + self._outside
        self._since = 0
        self._known: tuple[Region, float] | None = None

    @classmethod
    def of_points(cls, universe: Universe, points: NDArray[np.int64]) -> Weights:
        """The empirical distribution of a few points; the last point, `universe.size`, is the outside."""
        made = cls(universe)
        counts = np.bincount(points, minlength=universe.size + 1)
        made._cells[:] = counts[:-1]
        made._outside, made._total = float(counts[-1]), float(points.size)
        return made

    def set(self, cells: NDArray[np.float64], outside: float) -> None:
        """Take these chances, which sum to 1."""
        self._cells = self.arrays.send(cells)
        self._outside, self._total, self._since, self._known = outside, 1.0, _RENEW, None

    @property
    def support(self) -> int:
        """The number of points: all cells, and the outside if a row may lie there."""
        return self.universe.points

    def fraction(self, region: Region) -> float:
        """The expectation of the query. Cost: the cells of its boxes, or one pass where it has none."""
        mass = self._mass(region)
        self._known = (region, mass)
        return min(1.0, max(0.0, mass / self._total))

    def tilt(self, region: Region, eta: float) -> None:
        """Multiply each weight by exp(eta * query): the update of multiplicative weights.

        Cost: as `fraction`. The outside has query 0 and stays.
        """
        known, self._known = self._known, None
        if region.boxes is not None:
            # An update follows the question that asked for it: its mass is known already.
            mass = known[1] if known is not None and known[0] is region else self._mass(region)
            factor = math.exp(eta)
            for box in region.boxes:
                for view in self._views(box):
                    view *= factor
            before = self._total
            self._total += (factor - 1) * mass
            # A total that shrinks keeps the rounding of the larger one: renew it sooner.
            self._since += max(1, math.ceil(before / max(self._total, before / _RENEW)))
        else:
            assert region.steps is not None
            shape, values = self._compact(region.steps)
            cells = self._cells.reshape(shape)
            cells *= self.arrays.send(np.exp(values / GRID * eta))
            self._since = _RENEW
        if self._since >= _RENEW or not 1 / _LARGE < self._total < _LARGE:
            self._renew()

    def rescale(self, axes: tuple[int, ...], marginal: NDArray[np.float64], outside: float) -> None:
        """Give the cells this marginal over some axes, and the outside this probability; they sum to 1.

        The projection of the weights on all distributions with that marginal (one step of iterative
        proportional fitting). Cost: two passes.
        """
        self._outside, self._total, self._since, self._known = outside, 1.0, _RENEW, None
        whole = self._cells.reshape(self.universe.shape)
        current = np.asarray(self.arrays.fetch(marginals(whole, [axes])[axes]), dtype=np.float64)
        factors = marginal / np.maximum(current, np.finfo(np.float64).tiny)
        if marginal.size <= _FEW:
            for place in np.ndindex(*marginal.shape):
                fixed = dict(zip(axes, place, strict=True))
                box = tuple(
                    (fixed[i], fixed[i] + 1) if i in fixed else (0, size)
                    for i, size in enumerate(self.universe.shape)
                )
                for view in self._views(box):
                    view *= float(factors[place])
            return
        shape = [size if i in axes else 1 for i, size in enumerate(self.universe.shape)]
        compact, scale = self._compact(factors.reshape(shape))
        cells = self._cells.reshape(compact)
        cells *= self.arrays.send(scale)

    def probabilities(self) -> tuple[NDArray[np.float64], float]:
        """A copy of the normalised cells in the universe's shape, and the probability of the outside."""
        cells = np.asarray(self.arrays.fetch(self._cells), dtype=np.float64)
        return (cells / self._total).reshape(self.universe.shape), self._outside / self._total

    def marginals(self, wanted: Iterable[tuple[int, ...]]) -> dict[tuple[int, ...], NDArray[np.float64]]:
        """The chances of all groups of each sorted tuple of axes; the outside is in none."""
        return marginals(self.probabilities()[0], wanted)

    def sampled(self, count: int, draw: Bits) -> tuple[list[NDArray[np.int64]], NDArray[np.bool_]]:
        """The groups of `count` independent rows, column by column, and which rows lie outside.

        The weights are rounded to whole units, 2^61 in all, and a cell is chosen by an exact uniform integer.
        """
        probabilities, outside = self.probabilities()
        units = np.append(probabilities.reshape(-1), outside) * _UNITS
        ends = np.cumsum(units.astype(np.int64))
        cells = np.searchsorted(ends, draw.integers_below(int(ends[-1]), count), side="right")
        beyond = cells == probabilities.size
        return list(np.unravel_index(np.where(beyond, 0, cells), self.universe.shape)), beyond

    def array(self) -> Any:
        """The device's own flat array of unnormalised weights (a view); divide by `total`."""
        return self._cells

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return self._total

    def _renew(self) -> None:
        """Sum afresh, so that rounding does not pile up, and come back to a total of 1."""
        total = float(self._cells.sum()) + self._outside
        self._cells *= 1 / total
        self._outside /= total
        self._total, self._since = 1.0, 0

    def _mass(self, region: Region) -> float:
        if region.boxes is not None:
            # Added up where they are: a device is waited for once.
            return float(sum(view.sum() for box in region.boxes for view in self._views(box)))
        assert region.steps is not None
        axes = tuple(i for i, length in enumerate(region.steps.shape) if length > 1)
        marginal = self.arrays.fetch(marginals(self._cells.reshape(self.universe.shape), [axes])[axes])
        return float((marginal * (region.steps.reshape(marginal.shape) / GRID)).sum())

    def _views(self, box: Box) -> list[Any]:
        return views(self._cells, self.universe.shape, box, cached=self.arrays.name == "numpy")

    def _compact(self, steps: NDArray[Any]) -> tuple[list[int], NDArray[Any]]:
        """The universe's shape and the query's with neighbouring axes merged, where all or none is asked."""
        shape: list[int] = []
        asked: list[int] = []
        last: bool | None = None
        for size, length in zip(self.universe.shape, steps.shape, strict=True):
            used = length > 1 or size == 1
            if used == last:
                shape[-1] *= size
                asked[-1] *= length
            else:
                shape.append(size)
                asked.append(length)
            last = used
        return shape, steps.reshape(asked)


def views(flat: Any, shape: tuple[int, ...], box: Box, *, cached: bool = True) -> list[Any]:
    """Views of a flat C-ordered array that cover a box, each with few and long axes.

    An axis that is taken whole, or that follows a single group, merges with the one before. Short last axes
    would make short inner loops, so they are taken apart into strided views, in parts that a processor's cache holds. A
    GPU has neither loops nor time for many small parts: without `cached` there is one view.
    """
    sizes: list[int] = []
    ranges: list[tuple[int, int]] = []
    for size, (first, last) in zip(shape, box, strict=True):
        if sizes and (first, last) == (0, size):
            sizes[-1] *= size
            ranges[-1] = (ranges[-1][0] * size, ranges[-1][1] * size)
        elif sizes and ranges[-1][1] - ranges[-1][0] == 1:
            sizes[-1] *= size
            ranges[-1] = (ranges[-1][0] * size + first, ranges[-1][0] * size + last)
        else:
            sizes.append(size)
            ranges.append((first, last))
    tails: list[tuple[int, ...]] = [()]
    while cached and len(ranges) > 1 and (ranges[-1][1] - ranges[-1][0]) * len(tails) <= _SHORT:
        first, last = ranges.pop()
        tails = [(i, *tail) for i in range(first, last) for tail in tails]
    cells = flat.reshape(sizes)
    heads = [tuple(slice(first, last) for first, last in ranges)]
    if len(tails) > 1 and math.prod(last - first for first, last in ranges) > _CACHED:
        heads = _blocks(sizes, ranges)
    return [cells[(*head, *tail)] for head in heads for tail in tails]


def _blocks(sizes: list[int], ranges: list[tuple[int, int]]) -> list[tuple[Any, ...]]:
    """The head of a box in parts that a cache holds: several strided views then pass over the same lines."""
    spans = [math.prod(sizes[place + 1 :]) for place in range(len(ranges))]
    place = next((i for i, span in enumerate(spans) if span <= _CACHED), len(ranges) - 1)
    step = max(1, _CACHED // spans[place])
    if math.prod(last - first for first, last in ranges[:place]) > _MOST_BLOCKS:
        return [tuple(slice(first, last) for first, last in ranges)]
    first, last = ranges[place]
    rest = tuple(slice(low, high) for low, high in ranges[place + 1 :])
    return [
        (*outer, slice(start, min(start + step, last)), *rest)
        for outer in product(*(range(low, high) for low, high in ranges[:place]))
        for start in range(first, last, step)
    ]
