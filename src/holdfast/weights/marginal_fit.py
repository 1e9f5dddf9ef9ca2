"""The log-linear model that is nearest to noisy marginals: one convex problem, solved in its factors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.weights.array_module import HOST, ArrayModule
from holdfast.weights.factored import Factored
from holdfast.weights.junction_tree import REMEMBERED, JunctionTree
from holdfast.weights.marginals import Axes

Array = NDArray[np.float64]
EVEN = 0.01
"""What the entropy of the rows counts for, beside the errors."""
_SLOW = 1e-9
_HALVINGS = 40


@dataclass(frozen=True)
class NoisyMarginal:
    """Released counts over some columns, and the variance of the noise in each of them."""

    axes: Axes
    counts: Array
    variance: Array


@dataclass(frozen=True)
class Fitted:
    """A model, and the factors that it is the product of."""

    model: Factored
    factors: Mapping[Axes, Array]
    error: float
    """The sum of squared errors, each over its variance, halved."""


def fit(
    tree: JunctionTree,
    measured: Sequence[NoisyMarginal],
    rows: int,
    *,
    start: Mapping[Axes, Array] | None = None,
    steps: int = 100,
    progress: Callable[[int, int], None] | None = None,
    arrays: ArrayModule = HOST,
) -> Fitted:
    """The model p of `rows` rows with the least sum of (rows p - counts)^2 / (2 variance) over all numbers of the
    marginals, less EVEN rows times the entropy of p: what was not measured, and what is hard to tell from noise, is
    left even.

    This is convex, and the least p is log-linear in the marginals' axes: p ~ exp(sum of factors), where the factors f
    are the least of the dual, ln sum exp(sum of factors) - sum of f counts/rows + EVEN variance f^2 / (2 rows). Its
    slope is what the model has less what was measured, and L-BFGS (Liu and Nocedal 1989) with halved steps goes down
    it. A function of what was released: post-processing.
    Requires: a clique of the tree for each marginal. `start` are factors to begin with; the cliques are where `arrays`
    are.
    """
    dual = _Dual(tree, _merged(measured), rows, arrays)
    at = dual.flat(start or {})
    value, slope, model = dual.at(at)
    pasts: list[tuple[Array, Array]] = []
    for done in range(steps):
        if progress is not None:
            progress(done, steps)
        way = _direction(slope, pasts)
        promised = float(way @ slope)
        if promised >= 0:
            break
        del model  # one at a time
        length = 1.0 if pasts else min(1.0, 1.0 / float(np.abs(slope).sum()))
        for _ in range(_HALVINGS):
            trial, new_slope, model = dual.at(at + length * way)
            if trial <= value + 1e-4 * length * promised:
                break
            del model
            length /= 2
        else:
            _, _, model = dual.at(at)
            break
        moved = length * way
        at, turned, slope = at + moved, new_slope - slope, new_slope
        is_slow, value = value - trial <= _SLOW, trial
        if float(moved @ turned) > 0:
            pasts = [*pasts[1 - REMEMBERED :], (moved, turned)]
        if is_slow:
            break
    return Fitted(model, dual.factors(at), dual.error(at, slope))


def _direction(slope: Array, pasts: Sequence[tuple[Array, Array]]) -> Array:
    """Downhill, by the curvature that the last steps have met (the two loops of L-BFGS)."""
    way, parts = -slope, []
    for moved, turned in reversed(pasts):
        parts.append(float(moved @ way) / float(moved @ turned))
        way -= parts[-1] * turned
    if pasts:
        moved, turned = pasts[-1]
        way *= float(moved @ turned) / float(turned @ turned)
    for (moved, turned), part in zip(pasts, reversed(parts), strict=True):
        way += (part - float(turned @ way) / float(moved @ turned)) * moved
    return way


def _merged(measured: Sequence[NoisyMarginal]) -> list[NoisyMarginal]:
    """One for each set of axes: of several the mean, weighed by their noise."""
    found: dict[Axes, NoisyMarginal] = {}
    for one in measured:
        if (other := found.get(one.axes)) is not None:
            weight = other.variance / (other.variance + one.variance)
            counts = other.counts + weight * (one.counts - other.counts)
            one = NoisyMarginal(one.axes, counts, weight * one.variance)
        found[one.axes] = one
    return list(found.values())


class _Dual:
    """The function of the factors, all in one flat array, and its slope."""

    def __init__(
        self, tree: JunctionTree, measured: Sequence[NoisyMarginal], rows: int, arrays: ArrayModule
    ) -> None:
        self._tree, self._rows, self._arrays = tree, rows, arrays
        self._shapes = {one.axes: one.counts.shape for one in measured}
        ends = np.cumsum([one.counts.size for one in measured]).tolist()
        self._spans = {
            one.axes: slice(end - one.counts.size, end) for one, end in zip(measured, ends, strict=True)
        }
        self._told = np.concatenate([one.counts.ravel() for one in measured]) / rows
        self._ridge = np.concatenate([one.variance.ravel() for one in measured]) * (EVEN / rows)
        self._held: dict[int, list[Axes]] = {}
        for axes in self._spans:
            place = tree.holder(axes)
            assert place is not None, "a tree for these marginals holds them all"
            self._held.setdefault(place, []).append(axes)

    def flat(self, factors: Mapping[Axes, Array]) -> Array:
        made = np.zeros(len(self._told))
        for axes, factor in factors.items():
            made[self._spans[axes]] = factor.ravel()
        return made

    def factors(self, at: Array) -> dict[Axes, Array]:
        return {axes: at[span].reshape(self._shapes[axes]) for axes, span in self._spans.items()}

    def at(self, at: Array) -> tuple[float, Array, Factored]:
        send, fetch = self._arrays.send, self._arrays.fetch
        factors = {axes: send(factor) for axes, factor in self.factors(at).items()}
        model = Factored(self._tree, factors, self._arrays)
        held = self._ridge * at
        slope = held - self._told
        value = model.log_total + float(at @ slope) - 0.5 * float(at @ held)
        for place, those in self._held.items():
            for axes, chances in model.within(place, those).items():
                slope[self._spans[axes]] += fetch(chances).ravel()
        return value, slope, model

    def error(self, at: Array, slope: Array) -> float:
        away = slope - self._ridge * at
        return 0.5 * EVEN * self._rows * float((away * away / self._ridge).sum())
