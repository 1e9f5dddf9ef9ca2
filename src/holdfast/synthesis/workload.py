"""The questions that synthetic data are to answer well, answered together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.check import shown
from holdfast.errors import InputError
from holdfast.query.grouping import is_list
from holdfast.query.predicate import conjunction
from holdfast.query.region import GRID, asked, in_bin, region
from holdfast.query.universe import Universe
from holdfast.weights.marginals import Axes, marginals


class Workload:
    """A public list of conditions over a universe, grouped by the columns that they ask about.

    All conditions on the same columns are read off one marginal.
    """

    __slots__ = ("_lookups", "groups", "queries", "regions", "universe")

    def __init__(self, universe: Universe, queries: Sequence[str]) -> None:
        if not is_list(queries) or not len(queries) or not all(isinstance(query, str) for query in queries):
            raise InputError(f"expected a list of conditions, got {shown(queries)}")
        self.universe = universe
        self.queries = tuple(queries)
        self.regions = [region(universe, query) for query in queries]
        members: dict[Axes, list[int]] = {}
        for index, one in enumerate(self.regions):
            members.setdefault(asked(one, universe), []).append(index)
        self.groups = {axes: np.array(found) for axes, found in sorted(members.items())}
        self._lookups = {axes: self._lookup(axes, found) for axes, found in members.items()}

    def __len__(self) -> int:
        return len(self.queries)

    def answers(self, cells: NDArray[Any]) -> NDArray[Any]:
        """The sum of each query over an array of the universe's shape: exact for integer cells."""
        return self.read(marginals(cells.reshape(self.universe.shape), self.groups))

    def read(self, found: dict[Axes, NDArray[Any]]) -> NDArray[Any]:
        """The same from marginals that are already there; 0 for a query whose marginal is not."""
        result = np.zeros(len(self.regions), dtype=next(iter(found.values())).dtype)
        for axes, cells in found.items():
            members, flat = self.groups[axes], cells.reshape(-1)
            result[members] = np.add.reduceat(flat[self._lookups[axes][0]], self._lookups[axes][1])
            result[members[self._lookups[axes][2]]] = 0
        return result

    def _lookup(self, axes: Axes, members: list[int]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Which cells of the marginal each query adds up: all places, where each query's begin, and who has none."""
        shape = tuple(self.universe.shape[axis] for axis in axes)
        places, starts, empty = [], [], []
        at = 0
        for index in members:
            mask = np.zeros(shape, dtype=np.bool_)
            one = self.regions[index]
            if one.boxes is not None:
                for box in one.boxes:
                    mask[tuple(slice(*box[axis]) for axis in axes)] = True
            else:
                assert one.steps is not None
                mask |= (one.steps == GRID).reshape(shape)
            own = np.flatnonzero(mask)
            empty.append(not own.size)
            own = own if own.size else np.zeros(1, dtype=np.int64)
            places.append(own)
            starts.append(at)
            at += own.size
        return np.concatenate(places), np.array(starts), np.array(empty, dtype=np.bool_)


def all_marginals(universe: Universe, ways: int) -> list[str]:
    """Every conjunction that fixes one group of values in each of `ways` columns.

    The conditions of one column part the values of its bins among them: each bin is [low, high), and the last one
    includes its end. NULL is in none of them.
    """
    if isinstance(ways, bool) or not isinstance(ways, int) or not 1 <= ways <= len(universe.axes):
        raise InputError(f"expected 1 to {len(universe.axes)} for ways, got {shown(ways)}")
    leaves = [
        [in_bin(axis, universe.schema[axis.column], place) for place in range(axis.size)]
        for axis in universe.axes
    ]
    return [str(conjunction(*leaf)) for axes in combinations(leaves, ways) for leaf in product(*axes)]
