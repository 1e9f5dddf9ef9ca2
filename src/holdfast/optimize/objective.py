"""What is minimised, and over which set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class Region(Protocol):
    """A bounded convex set of parameters."""

    @property
    def diameter(self) -> float:
        """D: the largest distance between two points."""

    @property
    def radius(self) -> float:
        """r: the largest distance from `start`."""

    @property
    def reach(self) -> float:
        """The largest norm."""

    @property
    def start(self) -> Vector:
        """Where descent begins; a point of the set."""

    def project(self, theta: Vector) -> Vector:
        """The nearest point of the set."""


class Loss(Protocol):
    """The average over rows of a convex loss, plus penalty/2 ||theta||^2, which is public and needs no noise.

    Requires: for every row and every theta of the region the whole numbers that stand for its gradient have
    norm at most `norm` and lie in -span..span, they times `step` are within `rounding` of the gradient, and
    they depend on that row alone. `strong` (H, may be 0) and `smooth` (L, None if there is none) include the
    penalty. A row with NULL contributes nothing.
    """

    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def dimension(self) -> int: ...
    @property
    def region(self) -> Region: ...
    @property
    def penalty(self) -> float: ...
    @property
    def strong(self) -> float: ...
    @property
    def smooth(self) -> float | None: ...
    @property
    def step(self) -> float: ...
    @property
    def norm(self) -> int: ...
    @property
    def span(self) -> int: ...
    @property
    def rounding(self) -> float: ...
    def prepare(self, block: Mapping[str, NDArray[Any]]) -> Any:
        """Rows in the form that the other methods want."""

    def total(self, theta: Vector, rows: Any) -> NDArray[np.int64]:
        """The exact sum over rows of their whole-number gradients."""

    def units(self, theta: Vector, rows: Any, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Coordinate places[i] of the whole-number gradient of row i."""

    def values(self, theta: Vector, rows: Any) -> Vector:
        """The loss of each row, without the penalty."""

    def complexity(self, n: float, chance: float) -> float:
        """With probability 1 - chance over n independent rows, for all theta of the region at once, the mean
        loss of the population, counted from the start, is at most this much above the mean of the rows. The
        same over mn rows in independent units of at most m rows each (docs/theorems.md, Theorem 21)."""
