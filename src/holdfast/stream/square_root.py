"""Running totals with the correlated noise of the square-root factorisation."""

from __future__ import annotations

import base64
import math
import zlib
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.check import refusal
from holdfast.errors import InputError
from holdfast.noise.bits import Bits
from holdfast.noise.gaussian import gaussian_vector
from holdfast.privacy import events
from holdfast.stream.convolution import rounded_convolution
from holdfast.stream.factorisation import LONGEST, SHIFT, Grid, norm_squared, scaled

_FIRST = 1 << 8
_MOST_VARIANCE = 1 << 84


class SquareRoot:
    """A counter whose noise is one vector, drawn ahead in growing pieces and never again.

    Guarantee: rho-zCDP for the sequence of all totals, exactly; see `factorisation`.
    Cost: `event`. O(log T) amortised for an arrival, 8 bytes of state for each noise drawn.
    """

    __slots__ = ("_bits", "_noise", "_z", "event", "grid", "horizon", "seen", "total_units", "variance")

    def __init__(self, horizon: int, rho: Fraction, largest: int, bits: Bits | None = None) -> None:
        if horizon > LONGEST:
            raise refusal(
                "at most 2^21 with method 'sqrt'", "horizon", horizon, "use 'tree' or UnboundedCounter"
            )
        self.horizon = horizon
        self.grid = Grid.of(horizon, largest)
        self.variance = self.grid.sensitivity_squared / (2 * rho)
        if self.variance > _MOST_VARIANCE:
            raise InputError(
                "expected enough rho for noise that fits into 64 bits, got too little; take more"
            )
        self.event: events.Event = events.Gaussian(self.grid.sensitivity_squared, self.variance)
        self._bits = bits
        self._z: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._noise: NDArray[np.int64] = self._z
        self.seen = 0
        self.total_units = 0

    def add(self, value: int) -> None:
        """One arrival."""
        self.seen += 1
        self.total_units += self.grid.steps * value

    def total(self) -> int:
        """The noisy number so far; the same until the next arrival."""
        if not self.seen:
            return 0
        g = self.grid.steps
        return (2 * (self.total_units + int(self._noise_at(self.seen)[-1])) + g) // (2 * g)

    def extend(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Many arrivals at once, and the noisy total after each."""
        g = self.grid.steps
        noise = self._noise_at(self.seen + values.size)[self.seen :]
        offset = self.total_units
        # g*sum fits: values are at most `largest`, g*largest is near 2^10 sqrt(T), or g is 1.
        running = np.cumsum(values) * g + noise
        self.seen += values.size
        self.total_units += g * int(values.sum())
        base, rest = divmod(offset, g)
        return base + (2 * (running + rest) + g) // (2 * g)

    def half_width(self, beta: float) -> float:
        """At this moment the total is off by more with probability at most beta.

        A weighted sum of discrete Gaussians is sub-Gaussian as the continuous one is (Canonne et al. 2020,
        Lemma 19); rounding adds half a grid step and half a unit.
        """
        deviation = math.sqrt(float(self.variance) * norm_squared(max(1, self.seen))) * (1 + 2.0**-20)
        g = self.grid.steps
        return (deviation * math.sqrt(2 * math.log(2 / beta)) + 1) / g + 0.5

    def state(self) -> dict[str, Any]:
        """Arrivals and noise: secret."""
        packed = base64.b85encode(zlib.compress(self._z.astype("<i8").tobytes(), 1)).decode()
        return {"seen": self.seen, "total_units": self.total_units, "z": packed}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`, with the same noise."""
        self.seen, self.total_units = int(state["seen"]), int(state["total_units"])
        z = np.frombuffer(zlib.decompress(base64.b85decode(state["z"])), dtype="<i8").astype(np.int64)
        if not 0 <= self.seen <= self.horizon or z.size > self.horizon:
            raise ValueError("state does not fit the horizon")
        self._z = z
        self._noise = self._correlated(z)

    def _noise_at(self, count: int) -> NDArray[np.int64]:
        """The correlated noise of the first `count` totals."""
        if count > self._noise.size:
            # Pieces double, so that the whole costs twice its last transform. The sizes are public.
            size = min(self.horizon, max(_FIRST, 2 * self._z.size, count))
            fresh = gaussian_vector(self.variance, size - self._z.size, self._bits)
            self._z = np.concatenate([self._z, fresh])
            self._noise = self._correlated(self._z)
        return self._noise[:count]

    @staticmethod
    def _correlated(z: NDArray[np.int64]) -> NDArray[np.int64]:
        if not z.size:
            return z
        # F(0) = 2^30 exactly, so the rounded sum is z_t plus the rounded rest.
        return rounded_convolution(scaled(z.size), z, SHIFT)
