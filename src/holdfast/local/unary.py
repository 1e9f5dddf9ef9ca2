"""Unary encoding: one noisy bit for every value of the domain."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.check import integer
from holdfast.local.oracle import estimate_items
from holdfast.local.oracle_estimate import Estimate
from holdfast.local.packed_bits import column_counts, noisy_one_hot, row_bytes
from holdfast.local.parameter import read_epsilon, read_reports, read_values
from holdfast.local.probability import exp_below, grid_floor, keep_one_of
from holdfast.local.support import Support
from holdfast.noise.bits import Bits, system_bits

_MOST = 1 << 16


@dataclass(frozen=True, slots=True)
class SymmetricUnary:
    """One bit per value, each told truly with probability e^(epsilon/2)/(e^(epsilon/2) + 1). Basic RAPPOR.

    Guarantee: epsilon-local differential privacy, exactly: two values differ in two bits.
    Requires: a domain of 2 to 2^16 values, numbered from 0.
    Reference: Erlingsson, Pihur, Korolova 2014; variance e^(epsilon/2)/(n (e^(epsilon/2) - 1)^2).
    Cost: k bits a report.
    """

    domain: int
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", integer("domain", self.domain, 2, _MOST))
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))

    @property
    def support(self) -> Support:
        """A report supports every value whose bit is set."""
        return _symmetric(self.epsilon)

    @property
    def report_bits(self) -> int:
        return self.domain

    def randomize(self, values: ArrayLike, bits: Bits | None = None) -> NDArray[np.uint8]:
        """One packed row of bits per user, private."""
        return _randomize(values, self.domain, self.support, bits)

    def counts(self, reports: ArrayLike, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many reports support each item."""
        return _counts(reports, self.domain)[items]

    def estimate(
        self, reports: ArrayLike, *, items: ArrayLike | None = None, confidence: float = 0.95
    ) -> Estimate:
        """The fraction of each item; of all, or of `items` chosen before the reports were seen."""
        return estimate_items(self, reports, items, confidence)


@dataclass(frozen=True, slots=True)
class OptimisedUnary:
    """One bit per value: a fair coin for the user's own, a coin of 1/(e^epsilon + 1) for each other.

    Guarantee: epsilon-local differential privacy, exactly.
    Requires: a domain of 2 to 2^16 values, numbered from 0.
    Reference: Wang, Blocki, Li, Jha 2017, section 4.3; variance 4 e^epsilon/(n (e^epsilon - 1)^2) for a rare
    item.
    Cost: k bits a report.
    """

    domain: int
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", integer("domain", self.domain, 2, _MOST))
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))

    @property
    def support(self) -> Support:
        """A report supports every value whose bit is set."""
        return _optimised(self.epsilon)

    @property
    def report_bits(self) -> int:
        return self.domain

    def randomize(self, values: ArrayLike, bits: Bits | None = None) -> NDArray[np.uint8]:
        """One packed row of bits per user, private."""
        return _randomize(values, self.domain, self.support, bits)

    def counts(self, reports: ArrayLike, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many reports support each item."""
        return _counts(reports, self.domain)[items]

    def estimate(
        self, reports: ArrayLike, *, items: ArrayLike | None = None, confidence: float = 0.95
    ) -> Estimate:
        """The fraction of each item; of all, or of `items` chosen before the reports were seen."""
        return estimate_items(self, reports, items, confidence)


def _randomize(values: ArrayLike, domain: int, support: Support, bits: Bits | None) -> NDArray[np.uint8]:
    return noisy_one_hot(read_values(values, domain), domain, support.p, support.q, bits or system_bits())


def _counts(reports: ArrayLike, domain: int) -> NDArray[np.int64]:
    return column_counts(read_reports(reports, np.dtype(np.uint8), row_bytes(domain)), domain)


@lru_cache(maxsize=256)
def _symmetric(epsilon: float) -> Support:
    p = keep_one_of(exp_below(Fraction(epsilon) / 2), 1)
    return Support(p, 1 - p)


@lru_cache(maxsize=256)
def _optimised(epsilon: float) -> Support:
    # 1 - q is rounded down, so q goes up and (1-q)/q stays at most e^epsilon.
    return Support(Fraction(1, 2), 1 - grid_floor(1 - 1 / (exp_below(Fraction(epsilon)) + 1)))
