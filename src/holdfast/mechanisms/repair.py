"""Post-processing: what may be done to a released answer at no cost. Nothing here may see the data.

Guarantee: a function of a private release is as private as the release (`events.Nothing`).
Reference: Dwork and Roth 2014, Proposition 2.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import InputError
from holdfast.noise.parameter import natural

Reals = NDArray[np.float64]


def clamp(released: ArrayLike, low: float, high: float) -> Reals:
    """Each number moved into [low, high], to the nearest point; never farther from a truth inside."""
    if not low <= high:
        raise InputError(f"expected low <= high, got {low!r} and {high!r}; swap them")
    return np.clip(_finite(released), low, high)


def non_negative(released: ArrayLike) -> Reals:
    """Negative numbers become 0: each comes no farther from a count, but their sum is biased upwards."""
    return np.maximum(_finite(released), 0.0)


def with_total(released: ArrayLike, total: float) -> Reals:
    """The nearest vector, in L2, with non-negative entries that sum to the public `total`.

    Guarantee: never farther from the true histogram in L2, because that lies in the same convex set.
    Reference: projection on the simplex, Held, Wolfe and Crowder 1974. Cost: a sort.
    """
    y = _finite(released)
    if y.ndim != 1 or not y.size or not 0 <= total < np.inf:
        raise InputError(
            "expected a flat list of numbers and a finite total of at least 0, got something else"
        )
    if total == 0:
        return np.zeros_like(y)
    ranked = np.sort(y)[::-1]
    excess = (np.cumsum(ranked) - total) / np.arange(1, y.size + 1)
    level = excess[np.flatnonzero(ranked > excess)[-1]]
    out: Reals = np.maximum(y - level, 0.0)
    return out


def whole_with_total(released: ArrayLike, total: int) -> NDArray[np.int64]:
    """As `with_total`, in whole numbers that sum to `total`: rounded down, the largest remainders up."""
    n = natural("total", total)
    near = with_total(released, n)
    floor = np.floor(near).astype(np.int64)
    missing = n - int(floor.sum())
    order = np.argsort(floor - near, kind="stable")
    if missing >= 0:
        floor[order[np.arange(missing) % floor.size]] += 1
    else:  # float error in a huge total can only leave a few too many
        positive = np.flatnonzero(floor > 0)
        floor[positive[np.arange(-missing) % positive.size]] -= 1
    return floor


def consistent_tree(levels: Sequence[ArrayLike]) -> list[Reals]:
    """A binary hierarchy of equally noisy counts, made to add up: each parent is the sum of its children.

    `levels` goes from the root (1 count) to the leaves (2^h counts). The result is the least-squares fit, so
    its expected squared error is at most that of the input, in every node.
    Reference: Hay, Rastogi, Miklau and Suciu 2010, Theorem 3, with two children. Cost: linear.
    """
    y = [_finite(level) for level in levels]
    if not y or any(level.shape != (1 << depth,) for depth, level in enumerate(y)):
        raise InputError(
            "expected levels of 1, 2, 4, ... counts from the root to the leaves, got other lengths"
        )
    up = [y[-1]]
    for height, level in enumerate(reversed(y[:-1]), start=2):
        own, below = 2.0 ** (height - 1), 2.0**height
        children = up[-1].reshape(-1, 2).sum(axis=1)
        up.append((own * level + (own - 1) * children) / (below - 1))
    up.reverse()
    down = [up[0]]
    for level in up[1:]:
        gap = (down[-1] - level.reshape(-1, 2).sum(axis=1)) / 2
        down.append(level + np.repeat(gap, 2))
    return down


def _finite(released: ArrayLike) -> Reals:
    numbers = np.asarray(released, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise InputError("expected finite numbers, got NaN or infinity; these are no released answers")
    return numbers
