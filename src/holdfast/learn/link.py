"""Losses of a prediction s against the truth y: their values, their slopes in s, and how steep they can be.

For a condition y is -1 or 1; for a number it lies in [-1, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.check import positive, probability

Vector = NDArray[np.float64]


class Link(Protocol):
    """A convex loss of one number."""

    @property
    def curvature(self) -> float | None:
        """The largest second derivative; None if the slope jumps."""

    def steepness(self, reach: float) -> float:
        """The largest slope while |s| <= reach."""

    def value(self, s: Vector, y: Vector) -> Vector: ...
    def slope(self, s: Vector, y: Vector) -> Vector: ...


@dataclass(frozen=True, slots=True)
class Logistic:
    """ln(1 + e^{-ys})."""

    curvature: ClassVar[float] = 0.25

    def steepness(self, reach: float) -> float:
        return 1.0

    def value(self, s: Vector, y: Vector) -> Vector:
        return np.logaddexp(0.0, -y * s)

    def slope(self, s: Vector, y: Vector) -> Vector:
        # tanh never overflows: 1/(1 + e^m) = (1 - tanh(m/2))/2.
        out: Vector = -0.5 * y * (1.0 - np.tanh(0.5 * y * s))
        return out


@dataclass(frozen=True, slots=True)
class Squared:
    """(s - y)^2/2."""

    curvature: ClassVar[float] = 1.0

    def steepness(self, reach: float) -> float:
        return reach + 1.0

    def value(self, s: Vector, y: Vector) -> Vector:
        return 0.5 * (s - y) ** 2

    def slope(self, s: Vector, y: Vector) -> Vector:
        return s - y


@dataclass(frozen=True, slots=True)
class Huber:
    """(s - y)^2/2 near 0, straight lines of slope `threshold` beyond it."""

    threshold: float = 0.5
    curvature: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", positive("threshold", self.threshold))

    def steepness(self, reach: float) -> float:
        return min(self.threshold, reach + 1.0)

    def value(self, s: Vector, y: Vector) -> Vector:
        gap = np.abs(s - y)
        near = np.minimum(gap, self.threshold)
        out: Vector = near * (gap - 0.5 * near)
        return out

    def slope(self, s: Vector, y: Vector) -> Vector:
        return np.clip(s - y, -self.threshold, self.threshold)


@dataclass(frozen=True, slots=True)
class Hinge:
    """max(0, 1 - ys) with a parabola of width `smoothing` in place of its corner."""

    smoothing: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "smoothing", positive("smoothing", self.smoothing))

    @property
    def curvature(self) -> float:
        return 1.0 / self.smoothing

    def steepness(self, reach: float) -> float:
        return 1.0

    def value(self, s: Vector, y: Vector) -> Vector:
        gap = np.maximum(1.0 - y * s, 0.0)
        near = np.minimum(gap, self.smoothing)
        out: Vector = near / self.smoothing * (gap - 0.5 * near)
        return out

    def slope(self, s: Vector, y: Vector) -> Vector:
        out: Vector = -y * np.clip((1.0 - y * s) / self.smoothing, 0.0, 1.0)
        return out


@dataclass(frozen=True, slots=True)
class Quantile:
    """The loss that the `rank` quantile minimises: rank (y - s) above, (1 - rank)(s - y) below."""

    rank: float = 0.5
    curvature: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rank", probability("rank", self.rank))

    def steepness(self, reach: float) -> float:
        return max(self.rank, 1.0 - self.rank)

    def value(self, s: Vector, y: Vector) -> Vector:
        return np.maximum(self.rank * (y - s), (self.rank - 1.0) * (y - s))

    def slope(self, s: Vector, y: Vector) -> Vector:
        return np.where(s < y, -self.rank, np.where(s > y, 1.0 - self.rank, 0.0))
