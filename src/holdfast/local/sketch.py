"""Count-mean sketches: a table of fixed size for a domain of any size."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.local.affine import LARGEST_DOMAIN
from holdfast.local.draw import coins
from holdfast.local.hash_functions import HashFunctions, read_functions
from holdfast.local.oracle import estimate_items
from holdfast.local.oracle_estimate import Estimate
from holdfast.local.packed_bits import column_counts_by, noisy_one_hot, row_bytes
from holdfast.local.parameter import read_epsilon, read_reports, read_values, require_below
from holdfast.local.probability import keep
from holdfast.local.support import Hashing, Support
from holdfast.local.walsh import odd, transform
from holdfast.noise.bits import Bits, system_bits


@dataclass(frozen=True, slots=True)
class _Sketch(ABC):
    """A table of `hashes` rows, each with a public function into its `width` cells."""

    epsilon: float
    width: int = 256
    hashes: int = 1024
    seed: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        functions = read_functions(self.width, self.hashes, self.seed)
        object.__setattr__(self, "seed", functions.seed)

    @property
    def domain(self) -> int:
        return LARGEST_DOMAIN

    @property
    @abstractmethod
    def support(self) -> Support: ...

    @abstractmethod
    def counts(self, reports: ArrayLike, items: NDArray[np.int64]) -> NDArray[np.int64]: ...

    def estimate(self, reports: ArrayLike, *, items: ArrayLike, confidence: float = 0.95) -> Estimate:
        """The fraction of each of `items`, which were chosen before the reports were seen."""
        return estimate_items(self, reports, items, confidence)

    @property
    def _functions(self) -> HashFunctions:
        return read_functions(self.width, self.hashes, self.seed)

    def _shared(self, p: Fraction, q: Fraction) -> Support:
        """Another value's report supports an item by chance (q) or because the row hashes them together (1/m)."""
        share = Fraction(1, self.width)
        return Support(p, q + (p - q) * share, Hashing(share, self.hashes))


@dataclass(frozen=True, slots=True)
class CountMeanSketch(_Sketch):
    """Hash the value by a random one of the public functions, then send all bits of that row, noisy.

    Guarantee: epsilon-local differential privacy, exactly: each bit is told truly with probability
    e^(epsilon/2)/(e^(epsilon/2) + 1), and two values differ in two bits.
    Requires: values below 2^48 (hash longer ones first); `width` (m) a power of two from 2 to 2^16; the
    public `seed` drawn without looking at the data, which happens if it is left out.
    Reference: Apple Differential Privacy Team 2017, algorithms 1 to 4: f = m/(m-1) (mean of the row's cells -
    1/m).
    Cost: m bits a report; the server's table has hashes x m cells.
    """

    @property
    def support(self) -> Support:
        """A report supports every value whose bit is set in its row."""
        p = keep(self.epsilon / 2)
        return self._shared(p, 1 - p)

    @property
    def report_bits(self) -> int:
        return 8 * self._report.itemsize

    def randomize(self, values: ArrayLike, bits: Bits | None = None) -> NDArray[Any]:
        """Per user the number of the hash function and a packed row of bits."""
        bits = bits or system_bits()
        mine = read_values(values, self.domain)
        out = np.empty(mine.size, dtype=self._report)
        out["row"] = rows = bits.integers_below(self.hashes, mine.size)
        p = keep(self.epsilon / 2)
        out["bits"] = noisy_one_hot(self._functions.places(rows, mine), self.width, p, 1 - p, bits)
        return out

    def counts(self, reports: ArrayLike, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many reports support each item."""
        told = read_reports(reports, self._report)
        require_below(told["row"], self.hashes)
        table = column_counts_by(told["bits"], self.width, told["row"].astype(np.int64), self.hashes)
        return self._functions.sums(table, items)

    @property
    def _report(self) -> np.dtype[Any]:
        return np.dtype([("row", "<u2"), ("bits", "u1", (row_bytes(self.width),))])


@dataclass(frozen=True, slots=True)
class HadamardSketch(_Sketch):
    """The same, but of the row's Hadamard transform one random entry is sent: one noisy bit.

    Guarantee: epsilon-local differential privacy, exactly: the bit is told truly with probability
    e^epsilon/(e^epsilon + 1), and row and column are drawn without looking at the value.
    Requires: as `CountMeanSketch`.
    Reference: Apple Differential Privacy Team 2017, algorithms 5 and 6.
    Cost: 40 bits a report as stored, of which one depends on the value; hashes x m cells and one transform.
    """

    @property
    def support(self) -> Support:
        """A report supports every value whose transform has its sign in its column."""
        return self._shared(keep(self.epsilon), Fraction(1, 2))

    @property
    def report_bits(self) -> int:
        return 8 * _ENTRY.itemsize

    def randomize(self, values: ArrayLike, bits: Bits | None = None) -> NDArray[Any]:
        """Per user the number of the hash function, the column, and the noisy sign (1 for -1)."""
        bits = bits or system_bits()
        mine = read_values(values, self.domain)
        out = np.empty(mine.size, dtype=_ENTRY)
        out["row"] = rows = bits.integers_below(self.hashes, mine.size)
        out["column"] = columns = bits.integers_below(self.width, mine.size)
        lied = ~coins(keep(self.epsilon), mine.size, bits)
        out["minus"] = odd(self._functions.places(rows, mine) & columns) ^ lied
        return out

    def counts(self, reports: ArrayLike, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many reports support each item."""
        told = read_reports(reports, _ENTRY)
        for name, limit in (("row", self.hashes), ("column", self.width), ("minus", 2)):
            require_below(told[name], limit)
        cells = self.hashes * self.width
        cell = told["row"].astype(np.int64) * self.width + told["column"]
        signed = np.bincount(cell, minlength=cells) - 2 * np.bincount(
            cell[told["minus"] == 1], minlength=cells
        )
        return (
            told.size + self._functions.sums(transform(signed.reshape(self.hashes, self.width)), items)
        ) // 2


_ENTRY = np.dtype([("row", "<u2"), ("column", "<u2"), ("minus", "u1")])
