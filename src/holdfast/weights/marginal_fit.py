"""The log-linear model that is nearest to noisy marginals: entropic mirror descent over a junction tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.weights.factored import Factored, spread
from holdfast.weights.junction_tree import JunctionTree
from holdfast.weights.marginals import Axes

Array = NDArray[np.float64]
_SLOW = 1e-5
_LONGER = 1.5


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
) -> Fitted:
    """The model of `rows` rows with the least sum of squared errors on the marginals, each over its variance.

    Among all distributions with its marginals a log-linear model has the largest entropy: what was not measured
    is left as even as it can be. Each step multiplies by exp(-step * gradient) (entropic mirror descent, Beck and
    Teboulle 2003), and its length is halved until the error falls by half of what the gradient promises. A
    function of what was released: post-processing.
    Requires: a clique of the tree for each marginal. `start` are factors to begin with.
    """
    at = _places(tree, measured)
    factors = {one.axes: np.zeros(one.counts.shape) for one in measured} | dict(start or {})
    model = _product(tree, factors)
    error, slopes, means = _error(model, at, rows)
    length = min(float(one.variance.min()) for one in measured) / rows**2
    for done in range(steps):
        if progress is not None:
            progress(done, steps)
        while True:
            moved = dict(factors)
            for one, slope in zip(measured, slopes, strict=True):
                moved[one.axes] = moved[one.axes] - length * slope
            trial = _product(tree, moved)
            less, new_slopes, new_means = _error(trial, at, rows)
            promised = sum(
                float((slope * (before - after)).sum())
                for slope, before, after in zip(slopes, means, new_means, strict=True)
            )
            if error - less >= promised / 2 or promised <= 0:
                break
            length /= 2
        is_slow = error - less <= _SLOW * error
        if less <= error:
            factors, model, error, slopes, means = moved, trial, less, new_slopes, new_means
        if is_slow:
            break
        length *= _LONGER
    return Fitted(model, factors, error)


At = dict[int, list[tuple[int, NoisyMarginal]]]


def _places(tree: JunctionTree, measured: Sequence[NoisyMarginal]) -> At:
    found: At = {}
    for number, one in enumerate(measured):
        place = tree.holder(one.axes)
        assert place is not None, "a tree for these marginals holds them all"
        found.setdefault(place, []).append((number, one))
    return found


def _product(tree: JunctionTree, factors: Mapping[Axes, Array]) -> Factored:
    potentials = [np.zeros([tree.shape[axis] for axis in clique]) for clique in tree.cliques]
    for axes, factor in factors.items():
        place = tree.holder(axes)
        assert place is not None
        potentials[place] += spread(factor, axes, tree.cliques[place])
    return Factored(tree, potentials)


def _error(model: Factored, at: At, rows: int) -> tuple[float, list[Array], list[Array]]:
    """Half the sum of squares; and for each marginal the gradient in its chances, and these chances."""
    total = 0.0
    slopes: dict[int, Array] = {}
    means: dict[int, Array] = {}
    for place, those in at.items():
        found = model.within(place, [one.axes for _, one in those])
        for number, one in those:
            away = rows * found[one.axes] - one.counts
            weighed = away / one.variance
            total += 0.5 * float((away * weighed).sum())
            slopes[number], means[number] = rows * weighed, found[one.axes]
    order = sorted(slopes)
    return total, [slopes[number] for number in order], [means[number] for number in order]
