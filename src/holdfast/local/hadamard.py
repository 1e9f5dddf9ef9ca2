"""Hadamard response."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.local.draw import coins
from holdfast.local.oracle import FrequencyOracle
from holdfast.local.parameter import read_reports, read_values, require_below, smallest_uint
from holdfast.local.probability import keep
from holdfast.local.support import Support
from holdfast.local.walsh import odd, transform
from holdfast.noise.bits import Bits, system_bits


@dataclass(frozen=True, slots=True)
class HadamardResponse(FrequencyOracle):
    """A random column, which shows +1 in the value's Hadamard row with probability e^epsilon/(e^epsilon + 1).

    Guarantee: epsilon-local differential privacy, exactly.
    Requires: a domain of 2 to 2^24 - 1 values, numbered from 0. Value x owns row x + 1 of K =
    2^ceil(log2(k+1)).
    Reference: Acharya, Sun, Zhang 2019; variance ((e^epsilon + 1)/(e^epsilon - 1))^2/n for a rare item.
    Cost: log2 K bits a report; the server takes n + K log2 K steps for the whole domain.
    """

    MOST_VALUES: ClassVar = (1 << 24) - 1

    @property
    def columns(self) -> int:
        """K, the size of the matrix."""
        return 1 << self.domain.bit_length()

    @property
    def support(self) -> Support:
        """A report supports every value whose row shows +1 in its column: half of the others."""
        return Support(keep(self.epsilon), Fraction(1, 2))

    @property
    def report_bits(self) -> int:
        return self.domain.bit_length()

    def randomize(self, values: ArrayLike, bits: Bits | None = None) -> NDArray[Any]:
        """One column of 0..K-1 per user, private."""
        bits = bits or system_bits()
        rows = read_values(values, self.domain) + 1
        told = coins(self.support.p, rows.size, bits)
        columns = bits.integers_below(self.columns, rows.size)
        # Flipping one bit that the row has pairs its +1 columns with its -1 columns.
        columns ^= np.where(odd(rows & columns) == told, rows & -rows, 0)
        return columns.astype(smallest_uint(self.columns))

    def counts(self, reports: ArrayLike, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many reports support each item."""
        told = read_reports(reports, smallest_uint(self.columns))
        require_below(told, self.columns)
        seen = np.bincount(told, minlength=self.columns)
        return (told.size + transform(seen)[items + 1]) // 2
