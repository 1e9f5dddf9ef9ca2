"""Junction trees: which sets of columns a log-linear model has to hold together to be exact, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from holdfast.weights.marginals import Axes

REMEMBERED = 8
"""So many steps of a fit are kept, for the curvature that they have met."""


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in an order in which each stands after its parent; a separator is what a clique shares with its parent.

    Every set that it was made for lies in a clique, and the cliques that hold a column are connected (the running
    intersection property), so that a product of factors on those sets is summed exactly by messages along the tree.
    """

    shape: tuple[int, ...]
    cliques: tuple[Axes, ...]
    parents: tuple[int, ...]
    separators: tuple[Axes, ...]

    @property
    def cells(self) -> int:
        """The cells of all cliques together."""
        return sum(self.size(clique) for clique in self.cliques)

    @property
    def largest(self) -> int:
        """The cells of the largest clique."""
        return max(self.size(clique) for clique in self.cliques)

    def memory(self, sets: Iterable[Axes] = ()) -> int:
        """The bytes that a fit to marginals on these sets, and what is read of it, need for their arrays: the chances
        of a model, and as much again (but for the root) for what is on its way between columns that no clique has; what
        is summed in one clique; and of each marginal the factors with their slopes, as they are, as they were in the
        last steps, and as they are tried."""
        of_sets = (2 * REMEMBERED + 8) * sum(self.size(axes) for axes in sets)
        return 8 * (2 * self.cells - self.size(self.cliques[0]) + of_sets) + 4 * self.largest

    def size(self, axes: Axes) -> int:
        return math.prod(self.shape[axis] for axis in axes)

    def holder(self, axes: Iterable[int]) -> int | None:
        """The smallest clique with all of these axes; None if no clique has them all."""
        wanted = set(axes)
        holders = [place for place, clique in enumerate(self.cliques) if wanted.issubset(clique)]
        return min(holders, key=lambda place: self.size(self.cliques[place])) if holders else None

    @cached_property
    def links(self) -> tuple[tuple[tuple[int, Axes, frozenset[int]], ...], ...]:
        """For each clique its neighbours, each with what the two share, and with all columns on that side."""
        found: list[list[tuple[int, Axes, frozenset[int]]]] = [[] for _ in self.cliques]
        below = [set(clique) for clique in self.cliques]
        for place in range(len(below) - 1, 0, -1):
            parent, shared = self.parents[place], self.separators[place]
            below[parent] |= below[place]
            found[parent].append((place, shared, frozenset(below[place])))
            above = set(range(len(self.shape))) - below[place]
            found[place].append((parent, shared, frozenset(above.union(shared))))
        return tuple(map(tuple, found))


def junction_tree(shape: Sequence[int], sets: Iterable[Axes]) -> JunctionTree:
    """A junction tree with a clique for each set: columns are eliminated by the fewest new links (min-fill).

    A column in no set is a clique of its own. Ties go to the smaller clique, then to the first column: it is a
    function of its arguments. Cost: about d^3 steps for d columns.
    """
    sizes = tuple(shape)
    order, above = _spanning(_maximal(_eliminated(sizes, sets)))
    shared = [
        clique & order[parent] if parent >= 0 else 0 for clique, parent in zip(order, above, strict=True)
    ]
    cliques, separators = (tuple(tuple(_members(bits)) for bits in some) for some in (order, shared))
    return JunctionTree(sizes, cliques, tuple(above), separators)


def _eliminated(shape: tuple[int, ...], sets: Iterable[Axes]) -> Iterator[int]:
    """The cliques of min-fill elimination, as bits of a number."""
    near = [1 << axis for axis in range(len(shape))]
    for one in sets:
        own = sum(1 << axis for axis in one)
        for axis in one:
            near[axis] |= own
    weight = [math.log(max(size, 1)) for size in shape]
    left = set(range(len(shape)))

    def cost(axis: int) -> tuple[int, float, int]:
        own = list(_members(near[axis]))
        missing = sum(near[axis].bit_count() - (near[axis] & near[other]).bit_count() for other in own)
        return missing // 2, sum(weight[other] for other in own), axis

    costs = {axis: cost(axis) for axis in left}
    while left:
        axis = min(left, key=costs.__getitem__)
        bits = near[axis]
        yield bits
        left.remove(axis)
        changed = 0
        for other in _members(bits):
            if other in left:
                near[other] = (near[other] | bits) & ~(1 << axis)
                changed |= near[other]
        for other in _members(changed):
            if other in left:
                costs[other] = cost(other)


def _members(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _maximal(found: Iterable[int]) -> list[int]:
    kept: list[int] = []
    for bits in sorted(set(found), key=lambda one: (-one.bit_count(), one)):
        if not any(bits & other == bits for other in kept):
            kept.append(bits)
    return kept


def _spanning(cliques: list[int]) -> tuple[list[int], list[int]]:
    """A maximum spanning tree by the number of shared columns: the cliques, each after its parent, and the parents'
    places. Parts that share nothing hang together by nothing."""
    order, parents = [cliques[0]], [-1]
    left = cliques[1:]
    shared, best = [(one & cliques[0]).bit_count() for one in left], [0] * len(left)
    while left:
        at = max(range(len(left)), key=shared.__getitem__) if any(shared) else 0
        clique = left.pop(at)
        shared.pop(at)
        parents.append(best.pop(at))
        order.append(clique)
        for i, other in enumerate(left):
            if other & clique and (other & clique).bit_count() > shared[i]:
                shared[i], best[i] = (other & clique).bit_count(), len(order) - 1
    return order, parents
