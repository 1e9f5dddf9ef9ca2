"""k-ary randomized response."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.local.draw import truth_or_other
from holdfast.local.oracle import FrequencyOracle
from holdfast.local.parameter import read_reports, read_values, require_below, smallest_uint
from holdfast.local.probability import exp_below, keep_one_of
from holdfast.local.support import Support
from holdfast.noise.bits import Bits, system_bits


@dataclass(frozen=True, slots=True)
class KaryResponse(FrequencyOracle):
    """Tell the value with probability e^epsilon/(e^epsilon + k - 1), else a uniform other one.

    Guarantee: epsilon-local differential privacy, exactly.
    Requires: a domain of 2 to 2^24 values, numbered from 0.
    Reference: Kairouz, Bonawitz, Ramage 2016; variance (e^epsilon + k - 2)/(n (e^epsilon - 1)^2) for a rare
    item.
    Cost: ceil(log2 k) bits a report. The best oracle for k < 3 e^epsilon + 2, apart from subset selection.
    """

    MOST_VALUES: ClassVar = 1 << 24

    @property
    def support(self) -> Support:
        """A report supports the value it names."""
        p = keep_one_of(exp_below(Fraction(self.epsilon)), self.domain - 1)
        return Support(p, (1 - p) / (self.domain - 1))

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
