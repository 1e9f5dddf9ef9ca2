"""A log-linear model over many columns: factors on the cliques of a junction tree, summed exactly by messages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.noise.bits import Bits
from holdfast.weights.array_module import HOST, ArrayModule
from holdfast.weights.junction_tree import JunctionTree
from holdfast.weights.marginals import Axes, marginals

Array = NDArray[np.float64]
_AT_ONCE = 2**17
"""So many cells of a clique are a slab: copied at once, on the way between columns that it parts."""
_SOURCE = -1


class Factored:
    """The distribution proportional to exp(sum of the cliques' potentials). Public: it is fitted to what was told.

    Guarantee: every chance is that of the model, exactly up to rounding, by belief propagation in log space
    (Lauritzen and Spiegelhalter 1988); tests compare it with the sum over all cells. One clique is the dense case.
    The cliques live where `arrays` are; what is read of them comes back, but for `within`.
    Cost: one exponential and a few passes for each cell of the cliques. Their chances are all that is kept.
    """

    __slots__ = ("_arrays", "_chances", "log_total", "tree")

    def __init__(
        self,
        tree: JunctionTree,
        factors: Mapping[Axes, Any] | None = None,
        arrays: ArrayModule = HOST,
    ) -> None:
        """The product of factors, each on axes that a clique has, in logarithms."""
        self.tree, self._arrays = tree, arrays
        inward = []
        for clique in tree.cliques:
            flat = arrays.ones(tree.size(clique))
            flat *= 0.0
            inward.append(flat.reshape([tree.shape[axis] for axis in clique]))
        for axes, factor in (factors or {}).items():
            place = tree.holder(axes)
            assert place is not None, "a tree for these factors holds them all"
            inward[place] += spread(factor, axes, tree.cliques[place])
        self._calibrate(inward)

    def _calibrate(self, inward: list[Any]) -> None:
        """Messages towards the root, each relative to its largest term; then chances from the root outwards."""
        tree, arrays, count = self.tree, self._arrays, len(self.tree.cliques)
        self._chances: list[Any] = inward
        self.log_total = 0.0
        for place in range(count - 1, -1, -1):
            clique, shared, parent = tree.cliques[place], tree.separators[place], tree.parents[place]
            rest = tuple(i for i, axis in enumerate(clique) if axis not in shared)
            own = inward[place]
            top = arrays.largest(own, rest)
            own -= top
            total = arrays.exp(own).sum(axis=rest, keepdims=True)
            own /= total
            message = (top + arrays.log(total)).reshape([tree.shape[axis] for axis in shared])
            if parent < 0:
                self.log_total = float(message)
            else:
                inward[parent] += spread(message, shared, tree.cliques[parent])
        for place in range(1, count):
            parent, shared = tree.parents[place], tree.separators[place]
            above = _summed(inward[parent], tree.cliques[parent], shared)
            inward[place] *= spread(above, shared, tree.cliques[place])

    def marginals(self, wanted: Iterable[Axes]) -> dict[Axes, Array]:
        """The chances of all values of each sorted tuple of axes, whether or not a clique has them all.

        Cost: those inside a clique share their passes; pairs share all that is between them; others are summed
        one by one, at the size of what lies between their columns.
        """
        found: dict[Axes, Array] = {}
        inside: dict[int, list[Axes]] = {}
        across: set[Axes] = set()
        for axes in sorted(set(wanted)):
            place = self.tree.holder(axes)
            if place is not None:
                inside.setdefault(place, []).append(axes)
            elif len(axes) == 2:
                across.add(axes)
            else:
                found[axes] = self._joint(axes)
        for place, those in inside.items():
            found |= {axes: self._arrays.fetch(made) for axes, made in self.within(place, those).items()}
        return found | self._pairs(across)

    def within(self, place: int, wanted: list[Axes]) -> dict[Axes, Any]:
        """Marginals that one clique has, where the cliques are."""
        return _of_clique(self._chances[place], self.tree.cliques[place], wanted)

    def _joint(self, axes: Axes) -> Array:
        """Any set: each clique, from the leaves inwards, sums out what is neither wanted nor shared."""
        tree, wanted = self.tree, set(axes)
        carried: dict[int, list[tuple[Axes, Array]]] = {}
        for place in range(len(tree.cliques) - 1, -1, -1):
            clique, shared, parent = tree.cliques[place], tree.separators[place], tree.parents[place]
            brought = carried.pop(place, [])
            if parent >= 0 and not brought and not (wanted & set(clique)) - set(shared):
                continue
            own = self._arrays.fetch(self._chances[place])
            if parent >= 0:
                own = _over(own, spread(_summed(own, clique, shared), shared, clique))
            kept = tuple(sorted({*shared, *(wanted & {*clique, *(a for one, _ in brought for a in one)})}))
            operands: list[Any] = [own, list(clique)]
            for one, message in brought:
                operands += [message, list(one)]
            made = _sum_of_products(*operands, list(kept))
            if parent < 0:
                return made
            carried.setdefault(parent, []).append((kept, made))
        raise AssertionError("a tree has a root")

    def _pairs(self, wanted: set[Axes]) -> dict[Axes, Array]:
        """Pairs that no clique has: from each column outwards along the tree, all others on the way.

        Cost: so many of the column's values at once that what is on its way takes no more room than all cliques but the
        first, or than a slab.
        """
        tree = self.tree
        found = {axes: np.zeros([tree.shape[axis] for axis in axes]) for axes in wanted}
        if not found:
            return found
        chances = [self._arrays.fetch(own) for own in self._chances]
        room = max(tree.cells - tree.size(tree.cliques[0]), _AT_ONCE)
        most = max(1, room // sum(map(tree.size, tree.separators)))
        for source in sorted({pair[0] for pair in wanted}):
            ends = {pair[1] for pair in wanted if pair[0] == source}
            for values in _slabs(tree.shape[source], most):
                for end, mass in self._way(chances, source, values, set(ends)):
                    found[source, end][values] = mass
        return found

    def _way(
        self, chances: list[Array], source: int, values: slice, ends: set[int]
    ) -> Iterator[tuple[int, Array]]:
        """From these values of one column to each end: the chances of both."""
        tree = self.tree
        at: list[tuple[int, int, Axes, Array]] = []
        for place, clique in enumerate(tree.cliques):
            if source not in clique:
                continue
            for other, shared, beyond in tree.links[place]:
                if source not in shared and ends & beyond:
                    joint = tuple(sorted((source, *shared)))
                    mass = _summed(_cut(chances[place], clique, source, values), clique, joint)
                    at.append((other, place, shared, np.moveaxis(mass, joint.index(source), 0).copy()))
        while at:
            place, before, shared, mass = at.pop()
            own, clique = chances[place], tree.cliques[place]
            above = _summed(own, clique, shared)
            np.divide(mass, above, out=mass, where=above > 0)
            for end in [end for end in ends if end in clique]:
                yield end, _carried(mass, shared, own, clique, (end,))
                ends.discard(end)
            for other, onwards, beyond in tree.links[place]:
                if other != before and ends & beyond:
                    at.append((other, place, onwards, _carried(mass, shared, own, clique, onwards)))

    def sample(self, count: int, draw: Bits) -> NDArray[np.int64]:
        """The groups of `count` rows, one line a row: clique after clique, given what it shares with its parent.

        Rows that share a parent's values are spread over the clique as evenly as whole rows allow (systematic
        sampling from one random start), so that counts are within one of what is expected in each such part,
        and every row has the model's law by itself. Rows come in a random order.
        """
        tree = self.tree
        codes = np.zeros((count, len(tree.shape)), dtype=np.int64)
        for place, clique in enumerate(tree.cliques):
            shared = tree.separators[place]
            rest = tuple(axis for axis in clique if axis not in shared)
            sizes = [tree.shape[axis] for axis in rest]
            order = [clique.index(axis) for axis in (*shared, *rest)]
            table = np.transpose(self._arrays.fetch(self._chances[place]), order).reshape(
                tree.size(shared), -1
            )
            given = _flat(codes, shared, tree.shape)
            drawn = spread_evenly(table, given, draw)
            for axis, values in zip(rest, np.unravel_index(drawn, sizes), strict=True):
                codes[:, axis] = values
        return codes[_shuffled(count, draw)]


def _carried(mass: Array, shared: Axes, chances: Array, clique: Axes, kept: Axes) -> Array:
    """The sum of mass over (source, shared) times the chances of a clique, over (source, kept): slab by slab, as what
    is copied on the way takes room."""
    sizes = dict(zip(clique, chances.shape, strict=True))
    both, gone = [axis for axis in shared if axis in kept], [axis for axis in shared if axis not in kept]
    new, joint = [axis for axis in kept if axis not in shared], tuple(sorted({*shared, *kept}))
    made = np.zeros([len(mass), *(sizes[axis] for axis in kept)])
    along = max(both or clique, key=sizes.__getitem__)
    for values in _slabs(sizes[along], _AT_ONCE * sizes[along] // chances.size):
        slab = _summed(_cut(chances, clique, along, values), clique, joint)
        lines, axes = _cut(mass, (_SOURCE, *shared), along, values), (_SOURCE, *shared)
        if gone:
            order = [*both, _SOURCE, *new]
            part = _grouped(lines, axes, both, [_SOURCE], gone) @ _grouped(slab, joint, both, gone, new)
        else:
            order = [_SOURCE, *new, *both]
            part = _grouped(lines, axes, [_SOURCE], [], both) * _grouped(slab, joint, new, both)
        lengths = dict(zip(joint, slab.shape, strict=True)) | {_SOURCE: len(mass)}
        part = part.reshape([lengths[axis] for axis in order])
        into = _cut(made, (_SOURCE, *kept), along, values)
        into += np.transpose(part, [order.index(axis) for axis in (_SOURCE, *kept)])
    return made


def _slabs(size: int, most: int) -> list[slice]:
    """The values of an axis in parts of at most so many, and at least one, that are alike in size."""
    step = -(-size // -(-size // max(1, most)))
    return [slice(low, low + step) for low in range(0, size, step)]


def _cut(array: Any, axes: Axes, axis: int, values: slice) -> Any:
    """These values of an axis, if the array has it."""
    return array[tuple(values if one == axis else slice(None) for one in axes)]


def _grouped(array: Array, axes: Axes, *groups: list[int]) -> Array:
    """The array with one axis for each group of its axes."""
    lengths = dict(zip(axes, array.shape, strict=True))
    order = [axes.index(axis) for group in groups for axis in group]
    return np.transpose(array, order).reshape(
        [math.prod(map(lengths.__getitem__, group)) for group in groups]
    )


def _over(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0)


def _sum_of_products(*operands: Any) -> Array:
    """As `np.einsum`, for axes of any number: it has letters for 52."""
    numbers = {
        axis: i
        for i, axis in enumerate(sorted({a for axes in (*operands[1::2], operands[-1]) for a in axes}))
    }
    named = [[numbers[a] for a in one] if isinstance(one, list) else one for one in operands]
    return np.asarray(np.einsum(*named, optimize=True))


def _of_clique(chances: Any, clique: Axes, wanted: list[Axes]) -> dict[Axes, Any]:
    local = {axes: tuple(clique.index(axis) for axis in axes) for axes in wanted}
    made = marginals(chances, local.values())
    return {axes: made[own] for axes, own in local.items()}


def _summed(chances: Any, clique: Axes, kept: Axes) -> Any:
    return _of_clique(chances, clique, [kept])[kept]


def spread(part: Any, axes: Axes, clique: Axes) -> Any:
    """An array over some axes of a clique, so that it broadcasts to the clique."""
    return part.reshape([part.shape[axes.index(axis)] if axis in axes else 1 for axis in clique])


def _flat(codes: NDArray[np.int64], axes: Axes, shape: tuple[int, ...]) -> NDArray[np.int64]:
    flat = np.zeros(len(codes), dtype=np.int64)
    for axis in axes:
        flat = flat * shape[axis] + codes[:, axis]
    return flat


def spread_evenly(table: Array, given: NDArray[np.int64], draw: Bits) -> NDArray[np.int64]:
    """For each row an outcome of the line of `table` that is `given` for it, as evenly as whole rows allow."""
    order = np.argsort(given, kind="stable")
    lines, counts = np.unique(given, return_counts=True)
    found = np.empty(len(given), dtype=np.int64)
    starts = (draw.words(len(lines)) >> np.uint64(11)) * 2.0**-53
    at = 0
    for line, count, start in zip(lines, counts, starts, strict=True):
        ends = np.cumsum(table[line])
        points = (np.arange(count) + start) * (ends[-1] / count)
        chosen = np.minimum(np.searchsorted(ends, points, side="right"), table.shape[1] - 1)
        # Ordered points would tie later columns to the order of the rows.
        found[order[at : at + count]] = chosen[_shuffled(int(count), draw)]
        at += int(count)
    return found


def _shuffled(count: int, draw: Bits) -> NDArray[np.int64]:
    return np.asarray(np.argsort(draw.words(count), kind="stable"))
