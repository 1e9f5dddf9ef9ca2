"""A teaching sampler for the exponential mechanism: slow, and silent about the data through time."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.check import exact_positive
from holdfast.mechanisms.grid_scores import scores as on_grid
from holdfast.noise.bits import Bits, system_bits
from holdfast.noise.exponential import exponential as bracket
from holdfast.noise.uniform_comparison import is_below


@dataclass(frozen=True, slots=True)
class Draw:
    """The chosen index, and how many proposals it took."""

    index: int
    proposals: int


def lecture_rejection_sampler(
    scores: ArrayLike,
    *,
    sensitivity: float | Fraction = 1,
    epsilon: float | Fraction,
    bits: Bits | None = None,
    width: int = 64,
) -> Draw:
    """Propose a uniform candidate, accept it with its probability under the exponential mechanism, repeat.

    Guarantee: the exponential mechanism's law exactly. A proposal is accepted with probability
    (1/n) * sum of the probabilities = 1/n, so the number of proposals is geometric with mean n for every
    input: time tells nothing. The usual speed-up accepts with exp(epsilon*(score - best)/(2*sensitivity));
    then a proposal is accepted with (1/n) * sum of exp(...), which differs between neighbours, and whoever
    holds a clock sees the scores. So it is not offered.
    Reference: rejection sampling, as it is taught. A reference to compare with: `exponential` is faster.
    Cost: `events.BoundedRange(epsilon)`. O(n) to prepare and n proposals on average, each in big integers.
    """
    secret = on_grid(scores, sensitivity)
    rate = exact_positive("epsilon", epsilon) / (2 * secret.sensitivity)
    distances = secret.units.max() - secret.units
    bits = system_bits() if bits is None else bits
    proposals = 0
    while True:
        proposals += 1
        i = bits.below(distances.size)
        chance = _Chance(distances, rate, i)
        if is_below(bits.below(1 << width), width, chance.bounds, bits):
            return Draw(i, proposals)


@dataclass(frozen=True, slots=True)
class _Chance:
    """exp(-rate*distance of i) over the sum of all such weights."""

    distances: NDArray[np.int64]
    rate: Fraction
    index: int

    def bounds(self, width: int) -> tuple[int, int]:
        """Integers (low, high) with low <= 2^width * chance <= high."""
        precision = width + self.distances.size.bit_length() + 8
        weights = [bracket(self.rate * int(d), precision) for d in self.distances]
        low, high = weights[self.index]
        total_low, total_high = sum(w[0] for w in weights), sum(w[1] for w in weights)
        return (low << width) // total_high, -((-high << width) // total_low)
