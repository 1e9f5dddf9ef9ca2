"""k-ary randomized response."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.check import integer
from holdfast.local.draw import truth_or_other
from holdfast.local.oracle import estimate_items
from holdfast.local.oracle_estimate import Estimate
from holdfast.local.parameter import (
    read_epsilon,
    read_reports,
    read_values,
    require_below,
    smallest_uint,
)
from holdfast.local.probability import exp_below, keep_one_of
from holdfast.local.support import Support
from holdfast.noise.bits import Bits, system_bits


@dataclass(frozen=True, slots=True)
class KaryResponse:
    """Tell the value with probability e^epsilon/(e^epsilon + k - 1), else a uniform other one.

    Guarantee: epsilon-local differential privacy, exactly.
    Requires: a domain of 2 to 2^24 values, numbered from 0.
    Reference: Kairouz, Bonawitz, Ramage 2016; variance (e^epsilon + k - 2)/(n (e^epsilon - 1)^2) for a rare
    item.
    Cost: ceil(log2 k) bits a report. The best oracle for k < 3 e^epsilon + 2, apart from subset selection.
    """

    domain: int
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", integer("domain", self.domain, 2, 1 << 24))
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))

    @property
    def support(self) -> Support:
        """A report supports the value it names."""
        return _support(self.domain, self.epsilon)

    @property
    def report_bits(self) -> int:
        return (self.domain - 1).bit_length()

    def randomize(self, values: ArrayLike, bits: Bits | None = None) -> NDArray[Any]:
        """One number of 0..domain-1 per user, private."""
        told = truth_or_other(
            read_values(values, self.domain), self.domain, self.support.p, bits or system_bits()
        )
        return told.astype(smallest_uint(self.domain))

    def counts(self, reports: ArrayLike, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many reports support each item."""
        told = read_reports(reports, smallest_uint(self.domain))
        require_below(told, self.domain)
        return np.bincount(told, minlength=self.domain)[items]

    def estimate(
        self, reports: ArrayLike, *, items: ArrayLike | None = None, confidence: float = 0.95
    ) -> Estimate:
        """The fraction of each item; of all, or of `items` chosen before the reports were seen."""
        return estimate_items(self, reports, items, confidence)


@lru_cache(maxsize=256)
def _support(domain: int, epsilon: float) -> Support:
    p = keep_one_of(exp_below(Fraction(epsilon)), domain - 1)
    return Support(p, (1 - p) / (domain - 1))
