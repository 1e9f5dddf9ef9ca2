"""Multiplicative weights of many columns: each update is a factor on the columns that its question asks about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError
from holdfast.noise.bits import Bits
from holdfast.query.region import Region, asked
from holdfast.query.universe import MAX_CELLS, Universe
from holdfast.weights.array_module import HOST, ArrayModule
from holdfast.weights.factored import Factored
from holdfast.weights.junction_tree import JunctionTree, junction_tree
from holdfast.weights.marginals import Axes
from holdfast.weights.row_groups import all_cells

Array = NDArray[np.float64]


class FactoredWeights:
    """Public, like `Weights`, and the same distribution, as a product of factors that is summed exactly.

    The outside, where the universe is not complete, is one point more; it begins with the weight of a cell and stays.

    Guarantee: `fraction` is the exact expectation (up to rounding) and `tilt` multiplies the chance of each cell by
    exp(eta * query), as over cells, so all that is proved of updates holds. Docs/theorems.md, Theorem 280.
    Requires: a question that `refuse_large` lets pass: the junction tree of all updates and of its columns keeps within
    `memory` bytes and its cliques within 2^26 cells. Which pass depends on the updates so far, which are public.
    Cost: a few passes over the cells of the tree's cliques.
    """

    __slots__ = ("_arrays", "_factors", "_grown", "_model", "memory", "universe")

    def __init__(self, universe: Universe, memory: int, arrays: ArrayModule = HOST) -> None:
        self.universe, self.memory, self._arrays = universe, memory, arrays
        self._factors: dict[Axes, Any] = {}
        if not self._fits(()):
            cells = sum(universe.shape)
            raise InputError(
                f"cannot hold {cells:,} groups in {memory:,} bytes; give coarser edges=, or more memory="
            )
        self._model: Factored | None = None
        self._grown: tuple[Axes, Factored] | None = None

    def refuse_large(self, query: Region) -> None:
        """InputError if the update that the question may need would not fit."""
        axes = asked(query, self.universe)
        if self._fits(axes):
            return
        kept = list(axes)
        while len(kept) > 1 and not self._fits(tuple(kept)):
            kept.remove(max(kept, key=lambda axis: self.universe.shape[axis]))
        names, fits = (", ".join(self.universe.axes[axis].column for axis in some) for some in (axes, kept))
        raise InputError(
            f"cannot hold {names} together with the columns of {len(self._factors)} kinds of updates in "
            f"{self.memory:,} bytes; ask about {fits} only, or open weights with more memory="
        )

    def fraction(self, query: Region) -> float:
        """The expectation of the query."""
        axes, values = all_cells(query, self.universe)
        if not axes:
            return min(1.0, max(0.0, self._inside * float(values)))
        model = self._holding(axes)
        place = model.tree.holder(axes)
        assert place is not None, "a model that holds the question"
        chances = model.within(place, [axes])[axes]
        return min(1.0, max(0.0, self._inside * float((chances * self._arrays.send(values)).sum())))

    def tilt(self, query: Region, eta: float) -> None:
        """Multiply each weight by exp(eta * query): the update of multiplicative weights."""
        axes, values = all_cells(query, self.universe)
        tree = self._holding(axes).tree
        self._model = self._grown = None  # one at a time
        self._factors[axes] = self._factors.get(axes, 0.0) + eta * self._arrays.send(values)
        self._model = self._product(tree)

    def marginals(self, wanted: Iterable[Axes]) -> dict[Axes, Array]:
        """The chances of all groups of each sorted tuple of axes; the outside is in none."""
        return {axes: self._inside * chances for axes, chances in self._whole.marginals(wanted).items()}

    def sampled(self, count: int, draw: Bits) -> tuple[list[NDArray[np.int64]], NDArray[np.bool_]]:
        """The groups of `count` rows, column by column; and which rows lie outside."""
        beyond = (draw.words(count) >> np.uint64(11)) * 2.0**-53 >= self._inside
        return list(self._whole.sample(count, draw).T), beyond

    @property
    def _whole(self) -> Factored:
        """The model of all updates; made again where an update was cut off, say for want of memory."""
        if self._model is None:
            self._model = self._product(self._tree(()))
        return self._model

    @property
    def _inside(self) -> float:
        """The chance of all cells together."""
        return 1.0 if self.universe.is_complete else float(np.exp(-np.logaddexp(0.0, -self._whole.log_total)))

    def _tree(self, axes: Axes) -> JunctionTree:
        return junction_tree(self.universe.shape, [*self._factors, axes])

    def _fits(self, axes: Axes) -> bool:
        tree = self._tree(axes)
        factors = sum(tree.size(one) for one in {*self._factors, axes} if one)
        return tree.largest <= MAX_CELLS and 8 * (4 * tree.cells + 2 * factors) <= self.memory

    def _holding(self, axes: Axes) -> Factored:
        """The model, on a tree of which a clique has these axes; kept, as the update of a question follows it."""
        if self._whole.tree.holder(axes) is not None:
            return self._whole
        if self._grown is None or self._grown[0] != axes:
            self._grown = None
            self._grown = axes, self._product(self._tree(axes))
        return self._grown[1]

    def _product(self, tree: JunctionTree) -> Factored:
        return Factored(tree, self._factors, self._arrays)
