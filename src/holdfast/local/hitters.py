"""Heavy hitters of a large domain, found prefix by prefix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.check import integer, probability
from holdfast.errors import InputError
from holdfast.local.hashing import LocalHashing
from holdfast.local.oracle_estimate import Estimate
from holdfast.local.parameter import read_epsilon, read_reports, read_values, require_below
from holdfast.noise.bits import Bits, system_bits


@dataclass(frozen=True, slots=True, eq=False)
class Hitters:
    """The items found, most frequent first, and how frequent an item must be to be surely among them.

    With probability `estimate.confidence` both hold: the limits cover the population's fractions of all items
    found, and every item that more than `complete_above` of the population hold was found.
    """

    estimate: Estimate
    complete_above: float

    @property
    def items(self) -> NDArray[np.int64]:
        assert self.estimate.items is not None
        return self.estimate.items

    def __str__(self) -> str:
        return f"{self.estimate}\nno item above {self.complete_above:.5f} is missing"


@dataclass(frozen=True, slots=True)
class HeavyHitters:
    """Each user reports a prefix of the value, of a random length; the server extends the frequent prefixes.

    Guarantee: epsilon-local differential privacy, exactly: one report of `LocalHashing` per user. For the
    answer see `Hitters`, where the users are an independent sample of the population, so that the groups who
    report different lengths are independent too.
    Requires: values of `length` bits, at most 48; prefixes of `first`, `first + step`, ... bits; `keep` of
    them go on to the next round, where each has 2^step children.
    Reference: Wang, Li, Jha 2017, Locally differentially private heavy hitter identification (PEM).
    Cost: 144 bits a report; the server hashes each report for at most max(2^first, keep 2^step) prefixes.
    """

    length: int
    epsilon: float
    first: int = 8
    step: int = 4
    keep: int = 32

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", integer("length", self.length, 1, 48))
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        object.__setattr__(self, "first", min(self.length, integer("first", self.first, 1, 16)))
        object.__setattr__(self, "step", integer("step", self.step, 1, 12))
        object.__setattr__(self, "keep", integer("keep", self.keep, 1, 1 << 16))

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths of the prefixes, one for each group of users; the last is the whole value."""
        return (*range(self.first, self.length, self.step), self.length)

    @property
    def oracle(self) -> LocalHashing:
        """What each user runs on the prefix."""
        return LocalHashing(1 << self.length, self.epsilon)

    def randomize(self, values: ArrayLike, bits: Bits | None = None) -> NDArray[Any]:
        """Per user the number of the group, drawn at random, and a private report of the prefix."""
        bits = bits or system_bits()
        mine = read_values(values, 1 << self.length)
        group = bits.integers_below(len(self.lengths), mine.size)
        cut = self.length - np.array(self.lengths, dtype=np.int64)
        out = np.empty(mine.size, dtype=self._report)
        out["group"] = group
        out["hashed"] = self.oracle.randomize(mine >> cut[group], bits)
        return out

    def find(self, reports: ArrayLike, *, confidence: float = 0.95) -> Hitters:
        """The at most `keep` heaviest items that the reports show.

        An item of fraction t has prefixes of fraction at least t. While all estimates of a round are within
        w, fewer than 1/(t - 2w) prefixes can look heavier than it, so it is kept if t >= 2w + 1/keep.
        """
        told = read_reports(reports, self._report)
        require_below(told["group"], len(self.lengths))
        oracle = self.oracle
        # One share of the miss for each round's estimates, and one for the limits that are shown.
        share = 1 - (1 - probability("confidence", confidence)) / (len(self.lengths) + 1)
        prefixes, worst = np.zeros(1, dtype=np.int64), 0.0
        for number, length in enumerate(self.lengths):
            before = self.lengths[number - 1] if number else 0
            children = np.arange(1 << (length - before), dtype=np.int64)
            prefixes = (prefixes[:, np.newaxis] << (length - before) | children).ravel()
            group = np.ascontiguousarray(told["hashed"][told["group"] == number])
            if not group.size:
                raise InputError(
                    f"expected reports of all {len(self.lengths)} groups, got none of one; ask more users"
                )
            worst = max(worst, oracle.support.half_width(group.size, share, prefixes.size))
            found = oracle.estimate(group, items=prefixes, confidence=share).top(self.keep)
            assert found.items is not None
            prefixes = found.items
        complete_above = min(1.0, 2 * worst + 1 / self.keep)
        return Hitters(replace(found, confidence=float(confidence), users=told.size), complete_above)

    @property
    def _report(self) -> np.dtype[Any]:
        hashed = self.oracle.randomize(np.zeros(0, dtype=np.int64)).dtype
        return np.dtype([("group", "u1"), ("hashed", hashed)])
