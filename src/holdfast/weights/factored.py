"""A log-linear model over many columns: factors on the cliques of a junction tree, summed exactly by messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.noise.bits import Bits
from holdfast.weights.array_module import HOST, ArrayModule
from holdfast.weights.junction_tree import JunctionTree
from holdfast.weights.marginals import Axes, marginals

Array = NDArray[np.float64]


class Factored:
    """The distribution proportional to exp(sum of the cliques' potentials). Public: it is fitted to what was told.

    Guarantee: every chance is that of the model, exactly up to rounding, by belief propagation in log space
    (Lauritzen and Spiegelhalter 1988); tests compare it with the sum over all cells. One clique is the dense case.
    The cliques live where `arrays` are; what is read of them comes back, but for `within`.
    Cost: one exponential and a few passes for each cell of the cliques.
    """

    __slots__ = ("_arrays", "_chances", "_conditional", "log_total", "tree")

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
        self._conditional: list[Any] = inward
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
        self._chances: list[Any] = []
        for place in range(count):
            parent, shared = tree.parents[place], tree.separators[place]
            if parent < 0:
                self._chances.append(inward[place])
                continue
            above = _summed(self._chances[parent], tree.cliques[parent], shared)
            self._chances.append(inward[place] * spread(above, shared, tree.cliques[place]))

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
            own = self._arrays.fetch(self._conditional[place])
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
        """Pairs that no clique has: from each column outwards along the tree, all others on the way."""
        found: dict[Axes, Array] = {}
        if not wanted:
            return found
        tree, chances = self.tree, [self._arrays.fetch(own) for own in self._chances]
        steps = _Steps(tree, chances)
        for source in sorted({pair[0] for pair in wanted}):
            ends = {pair[1] for pair in wanted if pair[0] == source}
            at: list[tuple[int, int, Axes, Array]] = []
            for place, clique in enumerate(tree.cliques):
                if source in clique:
                    for other, shared in tree.links[place]:
                        if source not in shared:
                            joint = tuple(sorted((source, *shared)))
                            mass = _summed(chances[place], clique, joint)
                            at.append((other, place, shared, np.moveaxis(mass, joint.index(source), 0)))
            while at:
                place, before, shared, mass = at.pop()
                for end in [end for end in ends if end in tree.cliques[place] and end not in shared]:
                    given = steps.between(place, shared, (end,))
                    found[source, end] = mass.reshape(len(mass), -1) @ given.reshape(-1, tree.shape[end])
                    ends.discard(end)
                for other, onwards in tree.links[place]:
                    if other != before and ends:
                        at.append((other, place, onwards, steps.carry(place, shared, onwards, mass)))
        return found

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
            table = np.transpose(self._arrays.fetch(self._conditional[place]), order).reshape(
                tree.size(shared), -1
            )
            given = _flat(codes, shared, tree.shape)
            drawn = spread_evenly(table, given, draw)
            for axis, values in zip(rest, np.unravel_index(drawn, sizes), strict=True):
                codes[:, axis] = values
        return codes[_shuffled(count, draw)]


class _Steps:
    """What pairs share on their way: the chances of a clique given one separator, summed to another."""

    def __init__(self, tree: JunctionTree, chances: list[Array]) -> None:
        self._tree, self._chances = tree, chances
        self._known: dict[tuple[int, Axes, Axes], Array] = {}

    def between(self, place: int, shared: Axes, wanted: Axes) -> Array:
        """The chances of `wanted` given `shared`: an array over `shared` and then what of `wanted` is not in it."""
        key = place, shared, wanted
        if key not in self._known:
            new = tuple(axis for axis in wanted if axis not in shared)
            joint = tuple(sorted((*shared, *new)))
            mass = _summed(self._chances[place], self._tree.cliques[place], joint)
            mass = np.transpose(mass, [joint.index(axis) for axis in (*shared, *new)])
            base = mass.sum(axis=tuple(range(len(shared), mass.ndim)), keepdims=True)
            self._known[key] = np.divide(mass, base, out=np.zeros_like(mass), where=base > 0)
        return self._known[key]

    def carry(self, place: int, shared: Axes, onwards: Axes, mass: Array) -> Array:
        """Mass over (source, shared) as mass over (source, onwards)."""
        new = [axis for axis in onwards if axis not in shared]
        given = self.between(place, shared, onwards)
        source = len(self._tree.shape)
        operands: list[Any] = [mass, [source, *shared], given, [*shared, *new], [source, *onwards]]
        return _sum_of_products(*operands)


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
