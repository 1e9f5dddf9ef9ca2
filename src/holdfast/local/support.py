"""From counts of supporting reports to estimates.

Every oracle of this room has the same shape. A report either speaks for an item or not: with probability p if
its user holds the item, with probability q if not, independently of all others. The server counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.check import exact, integer, probability
from holdfast.local.interval import Floats, binomial_limits, bounded_limits, collision_slack
from holdfast.local.oracle_estimate import Estimate
from holdfast.privacy.rounding import up


@dataclass(frozen=True, slots=True)
class Hashing:
    """Public hash rows, drawn once: another item lands in the same place with probability `share` in each."""

    share: Fraction
    rows: int


@dataclass(frozen=True, slots=True)
class Support:
    """p and q of an oracle, exactly. `hashing` if q holds only on average over public hash functions."""

    p: Fraction
    q: Fraction
    hashing: Hashing | None = None

    def variance(self, fraction: float | Fraction = 0, users: int = 1) -> float:
        """Variance of the estimate of an item that this fraction of the users hold.

        q(1-q)/(n(p-q)^2) + f(1-p-q)/(n(p-q)), over the clients' coins; collisions come on top.
        Reference: Wang, Blocki, Li, Jha 2017, equation 4.
        """
        p, q, f, n = self.p, self.q, exact("fraction", fraction), integer("users", users)
        return float(q * (1 - q) / (n * (p - q) ** 2) + f * (1 - p - q) / (n * (p - q)))

    def half_width(self, users: int, confidence: float = 0.95, items: int = 1) -> float:
        """How far `items` estimates can be off, known before any report is made.

        Guarantee: all lie within it together, with probability `confidence`, over the clients' coins and, if
        hash functions are shared, the one public draw of them.
        Reference: Hoeffding 1963, Theorem 2, and the union bound; `collision_slack`.
        """
        miss = (
            (1 - probability("confidence", confidence)) / integer("items", items) / (2 if self.hashing else 1)
        )
        coins = math.sqrt(math.log(2 / miss) / (2 * integer("users", users))) / float(self.p - self.q)
        return up(coins + max(self._collisions(miss)))

    def estimate(
        self,
        counts: NDArray[np.int64],
        users: int,
        *,
        epsilon: float,
        confidence: float,
        items: NDArray[np.int64] | None,
        votes: int = 1,
    ) -> Estimate:
        """(C/n - q)/(p - q) for each count C, with limits that hold for all of them together.

        Guarantee: see `Estimate`. The chance of a miss is divided evenly among the items (union bound). If
        hash functions are shared, half of it pays for their collisions, over the one public draw of the
        functions.
        Requires: each of `users` reports gives at most `votes` votes to an item. With one vote a count is a
        sum of coins; with several it is a sum of bounded numbers.
        Reference: `binomial_limits`, `bounded_limits`, `collision_slack`.
        """
        confidence = probability("confidence", confidence)
        miss = (1 - confidence) / len(counts) / (2 if self.hashing else 1)
        mean = counts / (users * votes)
        if votes == 1:
            low, high = binomial_limits(counts, users, miss)
        else:
            low, high = bounded_limits(mean, users, miss)
        value, low, high = (self._fraction(number) for number in (mean, low, high))
        below, above = self._collisions(miss)
        low, high = low - above, high + below
        deviation = np.sqrt(self._variances(np.clip(value, 0.0, 1.0)) / users)
        parts = [value, np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0), deviation]
        v, lo, hi, d = parts if items is not None else [float(part[0]) for part in parts]
        return Estimate(v, lo, hi, confidence, epsilon, users, d, items)

    def _collisions(self, miss: float) -> tuple[float, float]:
        """How much the shared functions may take from or add to a fraction."""
        if self.hashing is None:
            return 0.0, 0.0
        share = float(self.hashing.share)
        below, above = collision_slack(share, self.hashing.rows, miss)
        return below / (1 - share), above / (1 - share)

    def _fraction(self, mean: Floats) -> Floats:
        return (mean - float(self.q)) / float(self.p - self.q)

    def _variances(self, fractions: Floats) -> Floats:
        p, q = self.p, self.q
        return np.maximum(0.0, float(q * (1 - q) / (p - q) ** 2) + fractions * float((1 - p - q) / (p - q)))
