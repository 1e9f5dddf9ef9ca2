"""A model of many columns: a log-linear model of their bins, and in each bin the groups of a column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from holdfast.noise.bits import Bits
from holdfast.query.region import GRID, Region, asked
from holdfast.query.universe import Universe
from holdfast.weights.column_bins import Bins
from holdfast.weights.factored import Factored, spread_evenly
from holdfast.weights.marginals import Axes
from holdfast.weights.settled_rows import MOST_CELLS, settled

Array = NDArray[np.float64]


class BinnedModel:
    """Public, like weights over cells, and read in the same way; it never makes all cells.

    Given its bin, the group of a column is independent of the other columns.
    """

    __slots__ = ("_beyond", "bins", "model", "universe")

    def __init__(
        self,
        universe: Universe,
        model: Factored,
        bins: Sequence[Bins],
        beyond: Mapping[Axes, Array] | None = None,
    ) -> None:
        """`beyond` are chances of pairs of bins to which rows are held instead of the model's own."""
        self.universe, self.model, self.bins = universe, model, tuple(bins)
        self._beyond = dict(beyond or {})

    def fraction(self, region: Region) -> float:
        """The expectation of a query. Cost: the bins of the columns that it asks about, together."""
        axes = asked(region, self.universe)
        if region.boxes is None:
            assert region.steps is not None
            cells = self.marginals([axes])[axes]
            return float((cells * (region.steps.reshape(cells.shape) / GRID)).sum())
        if not axes:
            return float(len(region.boxes) > 0)
        chances, total = self.model.marginals([axes])[axes], 0.0
        for box in region.boxes:
            part = chances
            for axis in axes:
                inside = np.zeros(len(self.bins[axis].places))
                inside[slice(*box[axis])] = 1.0
                part = np.tensordot(self.bins[axis].table @ inside, part, axes=(0, 0))
            total += float(part)
        return min(1.0, max(0.0, total))

    def marginals(self, wanted: Iterable[Axes]) -> dict[Axes, Array]:
        """The chances of all groups of each sorted tuple of axes."""
        return self._in_groups(self.model.marginals(wanted))

    def _in_groups(self, binned: Mapping[Axes, Array]) -> dict[Axes, Array]:
        found = {}
        for axes, chances in binned.items():
            cells = chances[np.ix_(*(self.bins[axis].places for axis in axes))]
            for place, axis in enumerate(axes):
                shares = self.bins[axis].shares
                cells = cells * shares.reshape([-1 if i == place else 1 for i in range(len(axes))])
            found[axes] = cells
        return found

    def sampled(self, count: int, draw: Bits) -> tuple[list[NDArray[np.int64]], NDArray[np.bool_]]:
        """The groups of `count` rows, column by column; and which rows lie outside: none."""
        every = list(combinations(range(len(self.bins)), 2))
        pairs = self.model.marginals(every) | self._beyond
        binned = settled(list(self.model.sample(count, draw).T), pairs, draw)
        places = [spread_evenly(own.table, codes, draw) for own, codes in zip(self.bins, binned, strict=True)]
        sizes = [len(own.places) for own in self.bins]
        if sum(sizes[first] * sizes[second] for first, second in every) <= MOST_CELLS:
            places = settled(places, self._in_groups(pairs), draw, [own.places for own in self.bins])
        return places, np.zeros(count, dtype=np.bool_)
