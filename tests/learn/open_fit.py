"""What a fit by clipped gradients could have reached, by an optimiser that sees the rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import optimize

from holdfast.learn.clipped_descent import _Descent

GRID = 1 << 12


@contextmanager
def watched() -> Iterator[list[tuple[_Descent, Any]]]:
    """Every descent that is certified meanwhile, with its parameter."""
    seen: list[tuple[_Descent, Any]] = []
    original = _Descent.excess

    def spied(self: _Descent, theta: Any, beta: float) -> float:
        seen.append((self, theta[0]))
        return original(self, theta, beta)

    _Descent.excess = spied  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        _Descent.excess = original  # type: ignore[method-assign]


def open_excess(descent: _Descent, theta: Any) -> float:
    """The mean clipped loss at theta, less the least up to twice as long."""
    rows, labels = descent._rows / GRID, descent._labels
    cap, sign = 1 / np.linalg.norm(rows, axis=1), 2 * labels - 1
    steep = cap < 0.999999
    corner = np.where(steep, np.log(np.where(steep, 1 / np.minimum(cap, 0.999999) - 1, 1)), -np.inf)

    def loss(theta: Any) -> tuple[float, Any]:
        """The integral of the clipped slope, by the point where it is cut; and its gradient."""
        margin = sign * (rows @ theta)
        smooth = np.logaddexp(0, -np.maximum(margin, corner))
        value = float((smooth + np.where(margin < corner, cap * (corner - margin), 0)).mean())
        slope = np.minimum(0.5 * (1 - np.tanh(margin / 2)), np.where(steep, cap, 1.0))
        return value, -(rows.T @ (slope * sign)) / len(rows)

    best = optimize.minimize(loss, theta, method="BFGS", jac=True, options={"maxiter": 40})
    assert np.linalg.norm(best.x) <= 2 * np.linalg.norm(theta)
    return float(loss(theta)[0] - best.fun)
