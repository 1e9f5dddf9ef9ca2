"""The leave-out theorem: what answers with Gaussian noise say about the population, by the information spent before.

Notation: n rows, m of them left out, n' = n - m, kappa = m/(2 n'(n-1)), I the information 1/sigma^2 of all earlier
answers added up, b > 0 the tilt, Q the upper tail of the standard normal law, hazard = phi/Q.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.errors import InputError
from holdfast.privacy.rounding import down, up
from holdfast.validity.normal_quantile import hazard, log_upper_tail, upper_quantile
from holdfast.validity.search import least

LEAST_TANGENT = 1.3307
"""From here on the tail of discrete Gaussian noise, moved by half a step, lies below every tangent that is used."""
_FURTHEST = 9.0


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """How many rows are left out: numbers m in 1..n-1, with weights that add up to at most 1.

    Requires: fixed before the first answer of the table's one transcript. Choosing m from answers, or from noise that
    was chosen along the way, breaks the theorem; several numbers with weights are the price of not knowing.
    """

    rows: int
    sizes: tuple[int, ...]
    weights: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if not self.sizes or len(self.sizes) != len(self.weights):
            raise InputError("expected a weight for each number of rows to leave out, got others")
        if not all(1 <= m < self.rows for m in self.sizes):
            raise InputError(f"expected to leave out 1 to {self.rows - 1} rows, got {self.sizes}")
        if not all(w > 0 for w in self.weights) or math.fsum(self.weights) > 1:
            raise InputError(f"expected positive weights of at most 1 in all, got {self.weights}")

    def charges(self, information: float) -> tuple[float, ...]:
        """What scalar Gaussian answers of that information charge, for each m: kappa I/4."""
        return tuple(up(kappa(self.rows, m) * information / 4) for m in self.sizes)

    def exponent(self, charged: Sequence[float], tilt: float) -> float:
        """-ln sum_m w_m exp(-A_m - b^2/(8m)), rounded up: bD exceeds it by t with probability at most e^-t.

        Guarantee: E exp(b(q(S) - q(P)) - exponent) <= 1 for every q: X -> [0,1] and b that the transcript chooses.
        Requires: rows independent; `charged` bounds the charges A_m of everything released before (docs/theorems.md,
        Theorem 22), tilt a function of the past.
        Reference: docs/theorems.md, Theorem 22 (leave m rows out), averaged over the weights.
        """
        terms = [
            a + tilt * tilt / (8 * m) - math.log(w)
            for a, m, w in zip(charged, self.sizes, self.weights, strict=True)
        ]
        smallest = min(terms)
        return up(smallest - math.log(math.fsum(math.exp(smallest - term) for term in terms)), smallest)

    def any_statistic(self, charged: Sequence[float], beta: float, statistics: int = 1) -> float:
        """How far q(S) is from q(P) at most, for a q that the whole transcript chooses; both sides.

        Guarantee: Pr[|q(S) - q(P)| > this] <= beta, for all of the `statistics` together.
        Reference: docs/theorems.md, Theorem 22, Corollary A.
        """
        log_miss = up(math.log(2 * statistics) - math.log(down(beta)))
        smallest = min(self.sizes)
        centre = 0.5 * math.log(8 * smallest * log_miss)
        return least(
            lambda x: up((self.exponent(charged, math.exp(x)) + log_miss) / math.exp(x)),
            centre - 2,
            centre + 6,
        )[0]

    def half_width(self, charged: Sequence[float], sigma: float, beta: float, step: float = 0.0) -> float:
        """The half-width of one answer q(S) + N(0, sigma^2), missed with probability at most beta, both sides.

        With `step` > 0 the noise is discrete Gaussian on multiples of `step`, and the values are too.
        Guarantee: Pr[|a - q(P)| > this] <= beta. The least over tangent points u of
            sigma u + (exponent(b) + ln Q(u) + ln(2/beta))/b,  b = hazard(u)/sigma,
        plus step/2 where u >= 1.3307, or a whole step for any u.
        Requires: q and sigma functions of the past; charges of the past only, not of this answer.
        Reference: docs/theorems.md, Theorem 23 (refined).
        """
        log_miss = up(math.log(2) - math.log(down(beta)))

        def at(u: float, moved: float) -> float:
            b = hazard(u) / sigma
            log_tail = log_upper_tail(u)
            size = abs(log_tail) + log_miss
            rest = (self.exponent(charged, b) + log_tail + log_miss) / b
            return up(sigma * u + rest + moved, sigma * abs(u) + size / b)

        most = max(LEAST_TANGENT + 1, upper_quantile(down(beta) / 2) + 1)
        near = least(lambda u: at(u, step / 2), LEAST_TANGENT, most, 40)[0]
        return min(near, least(lambda u: at(u, step), -_FURTHEST, most, 40)[0])


def kappa(rows: int, left_out: int) -> float:
    """m/(2 (n-m)(n-1)): what leaving m rows out costs for each unit of variance over squared noise."""
    return up(left_out / (2 * (rows - left_out) * (rows - 1)))
