"""A loss of the user's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.check import positive
from holdfast.learn.labelled_rows import Matrix, decode, known_columns
from holdfast.learn.linear_loss import on_grid

if TYPE_CHECKING:
    from holdfast.optimize import Region
    from holdfast.query.schema import Schema

Vector = NDArray[np.float64]

_SIDE = 1 << 20


class OwnLoss:
    """Any convex loss of a row: functions value(theta, rows) -> (n,) and gradient(theta, rows) -> (n, d).

    `rows` is a matrix of the named columns, NULL as NaN. `lipschitz` (G) bounds the norm of every gradient in
    the region; longer ones are shortened and NaN counts as 0, so privacy never rests on it, while the
    certified excess does, as it does on `strong` (H) and `smooth` (L).
    For use where the functions are trusted: an error that they raise on some rows is seen by the caller.
    """

    penalty = 0.0

    def __init__(
        self,
        schema: Schema,
        columns: Sequence[str],
        *,
        value: Callable[[Vector, Matrix], Vector],
        gradient: Callable[[Vector, Matrix], NDArray[np.float64]],
        region: Region,
        lipschitz: float,
        strong: float = 0.0,
        smooth: float | None = None,
    ) -> None:
        self._schema, self._names = schema, known_columns(schema, columns)
        self._value, self._gradient, self.region = value, gradient, region
        self.lipschitz = positive("lipschitz", lipschitz)
        self.strong = 0.0 if strong == 0 else positive("strong", strong)
        self.smooth = None if smooth is None else positive("smooth", smooth)

    @property
    def columns(self) -> tuple[str, ...]:
        return self._schema.ordered(self._names)

    @property
    def dimension(self) -> int:
        return len(self.region.start)

    @property
    def step(self) -> float:
        return self.lipschitz / _SIDE

    @property
    def norm(self) -> int:
        return _SIDE

    @property
    def span(self) -> int:
        return _SIDE

    @property
    def rounding(self) -> float:
        return self.step * (math.sqrt(self.dimension) + 1)

    def prepare(self, block: Mapping[str, NDArray[Any]]) -> Matrix:
        return decode(block, self._schema, self._names)

    def total(self, theta: Vector, rows: Matrix) -> NDArray[np.int64]:
        sums: NDArray[np.int64] = self._steps(theta, rows).astype(np.int64).sum(axis=0)
        return sums

    def units(self, theta: Vector, rows: Matrix, places: NDArray[np.int64]) -> NDArray[np.int64]:
        picked = self._steps(theta, rows)[np.arange(len(places)), places]
        out: NDArray[np.int64] = picked.astype(np.int64)
        return out

    def values(self, theta: Vector, rows: Matrix) -> Vector:
        return np.asarray(self._value(theta, rows), dtype=np.float64)

    def complexity(self, n: float, chance: float) -> float:
        """Hoeffding's inequality on a net of step r/n, which has at most (1 + 2n)^d points."""
        g, r = self.lipschitz, self.region.radius
        points = self.dimension * math.log(1 + 2 * n)
        return 2 * g * r * math.sqrt((points + math.log(1 / chance)) / (2 * n)) + 2 * g * r / n

    def _steps(self, theta: Vector, rows: Matrix) -> NDArray[np.float64]:
        slopes = np.asarray(self._gradient(theta, rows), dtype=np.float64).reshape(len(rows), self.dimension)
        return on_grid(np.nan_to_num(slopes, nan=0.0) / self.lipschitz, _SIDE)
