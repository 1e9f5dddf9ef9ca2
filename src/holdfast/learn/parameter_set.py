"""Bounded sets of parameters, with their projections."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.check import integer, positive
from holdfast.errors import InputError

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ball:
    """All vectors of norm at most `radius`; descent begins at 0."""

    dimension: int
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", integer("dimension", self.dimension))
        object.__setattr__(self, "radius", positive("radius", self.radius))

    @property
    def diameter(self) -> float:
        return 2 * self.radius

    @property
    def reach(self) -> float:
        return self.radius

    @property
    def start(self) -> Vector:
        return np.zeros(self.dimension)

    def project(self, theta: Vector) -> Vector:
        """The nearest point of the ball."""
        length = float(np.linalg.norm(theta))
        return theta if length <= self.radius else theta * (self.radius / length)


@dataclass(frozen=True, slots=True)
class Box:
    """All vectors between `low` and `high` in each coordinate; descent begins in the middle."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        low, high = tuple(map(float, self.low)), tuple(map(float, self.high))
        if not low or len(low) != len(high):
            raise InputError(f"expected as many low as high ends, got {len(low)} and {len(high)}")
        if not all(math.isfinite(h - k) and k < h for k, h in zip(low, high, strict=True)):
            raise InputError("expected finite ends, each low one below its high one, got others")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def dimension(self) -> int:
        return len(self.low)

    @property
    def diameter(self) -> float:
        return math.dist(self.low, self.high)

    @property
    def radius(self) -> float:
        return self.diameter / 2

    @property
    def reach(self) -> float:
        return math.hypot(*(max(abs(k), abs(h)) for k, h in zip(self.low, self.high, strict=True)))

    @property
    def start(self) -> Vector:
        middle: Vector = (np.array(self.low) + np.array(self.high)) / 2
        return middle

    def project(self, theta: Vector) -> Vector:
        """The nearest point of the box."""
        nearest: Vector = np.clip(theta, self.low, self.high)
        return nearest
