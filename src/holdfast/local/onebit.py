"""A mean from one bit per user."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.check import between
from holdfast.errors import InputError
from holdfast.local.draw import coins
from holdfast.local.oracle_estimate import Estimate
from holdfast.local.parameter import read_epsilon, read_reports, require_below
from holdfast.local.probability import keep
from holdfast.local.support import Support
from holdfast.noise.bits import Bits, system_bits

_STEPS = 1 << 32


@dataclass(frozen=True, slots=True)
class OneBitMean:
    """Round the number to one end of [lower, upper] at random, keeping its mean; then Warner's coin.

    Guarantee: epsilon-local differential privacy, exactly. A report is 1 with probability
    1/(e^epsilon + 1) + (x - lower)/(upper - lower) * (e^epsilon - 1)/(e^epsilon + 1).
    Requires: finite lower < upper, declared and not learnt from the data. Numbers are clamped to them, and
    NaN counts as `lower`. The mean is that of the clamped numbers.
    Reference: Ding, Kulkarni, Yekhanin 2017, section 3.
    Cost: one bit a report.
    """

    upper: float
    epsilon: float
    lower: float = 0.0

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, between(name, getattr(self, name), hint="declare the range"))
        if not self.lower < self.upper or not math.isfinite(self.upper - self.lower):
            raise InputError(
                f"expected lower < upper, got {self.lower!r} and {self.upper!r}; declare the range"
            )
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))

    @property
    def support(self) -> Support:
        """A report of 1 supports "upper"."""
        p = keep(self.epsilon)
        return Support(p, 1 - p)

    def randomize(self, values: ArrayLike, bits: Bits | None = None) -> NDArray[np.uint8]:
        """One bit per user, private."""
        bits = bits or system_bits()
        steps = self._steps(values)
        # Both are integers: a number at k/2^32 of the range is rounded up for k of the 2^32 words.
        rounded = bits.chunks(steps.size, 32) < steps
        return np.equal(rounded, coins(self.support.p, steps.size, bits)).astype(np.uint8)

    def estimate(self, reports: ArrayLike, *, confidence: float = 0.95) -> Estimate:
        """The mean of the users' numbers, (X - q)/(p - q) of the way from lower to upper.

        Its `deviation` is the largest that this value allows, since rounding adds to the coins' variance.
        """
        told = read_reports(reports, np.dtype(np.uint8))
        require_below(told, 2)
        ones, users = np.count_nonzero(told), told.size
        share = self.support.estimate(
            np.array([ones]), users, epsilon=self.epsilon, confidence=confidence, items=None
        )
        span, grain = self.upper - self.lower, 1 / _STEPS
        mean = min(max(ones / users, float(self.support.q)), float(self.support.p))
        deviation = math.sqrt(mean * (1 - mean) / users) / float(self.support.p - self.support.q)
        return replace(
            share,
            value=self.lower + span * share.value,
            low=self.lower + span * max(0.0, share.low - grain),
            high=self.lower + span * min(1.0, share.high + grain),
            deviation=span * deviation,
        )

    def _steps(self, values: ArrayLike) -> NDArray[np.uint64]:
        """Each number as a multiple of 2^-32 of the range. This is a fixed map of the data, not a draw."""
        array = np.asarray(values)
        if array.dtype.kind not in "iuf" or array.ndim > 1:
            raise InputError(f"expected a list of numbers, one per user, got {array.dtype}; convert first")
        clamped = np.clip(np.atleast_1d(array).astype(np.float64), self.lower, self.upper)
        share = np.nan_to_num((clamped - self.lower) / (self.upper - self.lower), nan=0.0)
        steps: NDArray[np.uint64] = np.rint(np.minimum(share, 1.0) * _STEPS).astype(np.uint64)
        return steps
