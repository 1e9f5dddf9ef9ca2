"""What all frequency oracles have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.check import integer
from holdfast.errors import InputError
from holdfast.local.oracle_estimate import Estimate
from holdfast.local.packed_bits import column_counts, row_bytes
from holdfast.local.parameter import read_epsilon, read_items, read_reports
from holdfast.local.support import Support
from holdfast.noise.bits import Bits

_MOST_ITEMS = 1 << 24


class Counting(Protocol):
    """The part of an oracle that `estimate_items` needs."""

    @property
    def domain(self) -> int: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def support(self) -> Support: ...
    def counts(self, reports: ArrayLike, items: NDArray[np.int64]) -> NDArray[np.int64]: ...


def estimate_items(
    oracle: Counting, reports: ArrayLike, items: ArrayLike | None, confidence: float, votes: int = 1
) -> Estimate:
    """Count, then remove the bias. Guarantee: that of `Support.estimate`."""
    if items is None and oracle.domain > _MOST_ITEMS:
        raise InputError(f"expected items, got none for a domain of {oracle.domain}; name those to estimate")
    wanted = read_items(items, oracle.domain)
    counts = oracle.counts(reports, wanted)
    users = len(np.asarray(reports))
    return oracle.support.estimate(
        counts, users, epsilon=oracle.epsilon, confidence=confidence, items=wanted, votes=votes
    )


@dataclass(frozen=True, slots=True)
class FrequencyOracle(ABC):
    """Clients randomize, the server counts and estimates. Facts are public; values and bits are arguments."""

    MOST_VALUES: ClassVar[int]
    """The largest domain that it serves."""

    domain: int
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", integer("domain", self.domain, 2, self.MOST_VALUES))
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))

    @property
    @abstractmethod
    def support(self) -> Support:
        """What a report speaks for, and how often."""

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """Bits which one report takes."""

    @abstractmethod
    def randomize(self, values: ArrayLike, bits: Bits | None = None) -> NDArray[Any]:
        """One private report per user: an array whose first axis is the users."""

    @abstractmethod
    def counts(self, reports: ArrayLike, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many reports support each item."""

    def estimate(
        self, reports: ArrayLike, *, items: ArrayLike | None = None, confidence: float = 0.95
    ) -> Estimate:
        """The fraction of each item; of all, or of `items` chosen before the reports were seen."""
        return estimate_items(self, reports, items, confidence)


class BitOracle(FrequencyOracle):
    """An oracle whose report has one bit for every value of the domain."""

    __slots__ = ()

    MOST_VALUES: ClassVar = 1 << 16

    @property
    def report_bits(self) -> int:
        return self.domain

    def counts(self, reports: ArrayLike, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many reports support each item."""
        told = read_reports(reports, np.dtype(np.uint8), row_bytes(self.domain))
        return column_counts(told, self.domain)[items]
