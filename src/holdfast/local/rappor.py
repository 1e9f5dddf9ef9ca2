"""RAPPOR: a noise that stays, and a noise on top that does not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.check import integer, shown
from holdfast.errors import InputError
from holdfast.local.affine import LARGEST_DOMAIN
from holdfast.local.draw import coins
from holdfast.local.hash_functions import HashFunctions, read_functions
from holdfast.local.oracle import estimate_items
from holdfast.local.oracle_estimate import Estimate
from holdfast.local.packed_bits import blocks, column_counts_by, pack, row_bytes, unpack
from holdfast.local.parameter import (
    read_array,
    read_probability,
    read_reports,
    read_values,
    require_below,
)
from holdfast.local.support import Hashing, Support
from holdfast.noise.bits import Bits, system_bits
from holdfast.privacy.rounding import up


@dataclass(frozen=True, slots=True, init=False)
class Rappor:
    """Bloom filter, permanent noise, instantaneous noise.

    A user joins a random cohort once, and hashes the value to `hashes` bits of `width` by the cohort's
    functions.
    Permanent: each bit is replaced by a fair coin with probability `noise` (f); the client keeps the result.
    Instantaneous: each report sends 1 with probability `q` where the kept bit is 1, with probability `p`
    where 0.

    Guarantee: `epsilon`-local differential privacy for any number of reports about one value, if the client
    really keeps the permanent bits: 2h ln((1 - f/2)/(f/2)). A single report alone has `epsilon_once`. A value
    that changes costs `epsilon` again.
    Requires: 0 < noise < 1, 0 < p < q < 1; values below 2^48; the public `seed` drawn without looking at the
    data.
    Reference: Erlingsson, Pihur, Korolova 2014, section 3. Departs from it: decoding is a count-mean with
    exact collision probabilities instead of a regression, so that intervals can be proved.
    """

    noise: Fraction
    p: Fraction
    q: Fraction
    width: int
    hashes: int
    cohorts: int
    seed: int

    def __init__(
        self,
        noise: float | Fraction = Fraction(1, 2),
        p: float | Fraction = Fraction(1, 2),
        q: float | Fraction = Fraction(3, 4),
        width: int = 128,
        hashes: int = 2,
        cohorts: int = 64,
        seed: int | None = None,
    ) -> None:
        for name, value in (("noise", noise), ("p", p), ("q", q)):
            object.__setattr__(self, name, read_probability(name, value))
        if not self.p < self.q:
            raise InputError(
                f"expected p < q, got {shown(p)} and {shown(q)}; a set bit must be sent more often"
            )
        object.__setattr__(self, "hashes", integer("hashes", hashes, 1, 16))
        object.__setattr__(self, "cohorts", integer("cohorts", cohorts, 1, 1 << 12))
        functions = read_functions(width, self.hashes * self.cohorts, seed)
        object.__setattr__(self, "width", functions.width)
        object.__setattr__(self, "seed", functions.seed)

    @property
    def domain(self) -> int:
        return LARGEST_DOMAIN

    @property
    def epsilon(self) -> float:
        """The loss of all reports together, by the permanent noise. Rounded up."""
        return up(2 * self.hashes * math.log(float((2 - self.noise) / self.noise)))

    @property
    def epsilon_once(self) -> float:
        """The loss of a single report, rounded up: h ln(q*(1-p*)/(p*(1-q*)))."""
        zero, one = self._sent
        ratio = one * (1 - zero) / (zero * (1 - one))
        return up(self.hashes * math.log1p(float(ratio - 1)))

    @property
    def support(self) -> Support:
        """A report supports an item by each of the item's bits that it sends, h votes in all."""
        zero, one = self._sent
        share = 1 - (1 - Fraction(1, self.width)) ** self.hashes
        return Support(one, zero + (one - zero) * share, Hashing(share, self.cohorts))

    @property
    def report_bits(self) -> int:
        return 8 * self._report.itemsize

    def permanent(self, values: ArrayLike, bits: Bits | None = None) -> NDArray[Any]:
        """Cohort and permanently noisy bits per user. The client keeps them and does not draw again."""
        bits = bits or system_bits()
        mine = read_values(values, self.domain)
        out = np.empty(mine.size, dtype=self._report)
        out["cohort"] = bits.integers_below(self.cohorts, mine.size)
        for block in blocks(mine.size, self.width):
            bloom = self._bloom(out["cohort"][block].astype(np.int64), mine[block])
            # A fair coin with probability f is a flip with probability f/2.
            out["bits"][block] = pack(bloom ^ coins(self.noise / 2, bloom.size, bits).reshape(bloom.shape))
        return out

    def report(self, permanent: NDArray[Any], bits: Bits | None = None) -> NDArray[Any]:
        """One fresh report per user from what `permanent` returned."""
        bits = bits or system_bits()
        out = read_array(permanent, self._report).copy()
        for block in blocks(out.size, self.width):
            kept = unpack(out["bits"][block], self.width).astype(np.bool_)
            one, zero = (coins(chance, kept.size, bits).reshape(kept.shape) for chance in (self.q, self.p))
            out["bits"][block] = pack(np.where(kept, one, zero))
        return out

    def randomize(self, values: ArrayLike, bits: Bits | None = None) -> NDArray[Any]:
        """Both steps, for users who report once."""
        return self.report(self.permanent(values, bits), bits)

    def counts(self, reports: ArrayLike, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many votes each item has."""
        told = read_reports(reports, self._report)
        require_below(told["cohort"], self.cohorts)
        table = column_counts_by(told["bits"], self.width, told["cohort"].astype(np.int64), self.cohorts)
        return self._functions.sums(np.repeat(table, self.hashes, axis=0), items)

    def estimate(self, reports: ArrayLike, *, items: ArrayLike, confidence: float = 0.95) -> Estimate:
        """The fraction of each of `items`, chosen before the reports were seen; one report per user.

        Its `deviation` is an upper bound when hashes > 1, as the votes of one report partly cancel.
        """
        return estimate_items(self, reports, items, confidence, votes=self.hashes)

    @property
    def _sent(self) -> tuple[Fraction, Fraction]:
        """p* and q*: the chance that a bit is sent if the Bloom filter has 0 or 1 there."""
        f, p, q = self.noise, self.p, self.q
        return f * (p + q) / 2 + (1 - f) * p, f * (p + q) / 2 + (1 - f) * q

    @property
    def _functions(self) -> HashFunctions:
        """Cohort c owns the functions c*hashes .. c*hashes + hashes - 1."""
        return HashFunctions(self.width, self.hashes * self.cohorts, self.seed)

    @property
    def _report(self) -> np.dtype[Any]:
        return np.dtype([("cohort", "<u2"), ("bits", "u1", (row_bytes(self.width),))])

    def _bloom(self, cohorts: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.bool_]:
        bloom = np.zeros((values.size, self.width), dtype=np.bool_)
        for j in range(self.hashes):
            bloom[np.arange(values.size), self._functions.places(cohorts * self.hashes + j, values)] = True
        return bloom
