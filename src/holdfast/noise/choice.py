"""One of many candidates, with probability proportional to exp(rate*score), or to a smoothed form of it."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.check import integer, rational
from holdfast.errors import InputError
from holdfast.noise.bits import Bits, source
from holdfast.noise.exponential import exponential
from holdfast.noise.inversion import Cumulative, invert

_UNIT = 62
_MARGIN = 42
_FARTHEST = 64.0


def choice(
    scores: NDArray[np.signedinteger[Any]], rate: Fraction | int, bits: Bits | None = None, *, width: int = 64
) -> int:
    """The index i with probability proportional to exp(rate*scores[i]).

    Guarantee: exactly that law for integer scores and a rational rate. Floats only filter: weights computed
    in floating point carry a margin of 2**-42 (their error is below 2**-45), and a draw that the margin
    leaves open is settled by integer arithmetic. `width` bits are looked at
    first: that moves time, not the law.
    Requires: rate >= 0; NumPy's exp is accurate to 2**-48.
    Cost: O(n), some 20 ms for a million candidates. The time depends on the scores only when a draw is left
    open, with probability below n * 2**-38.
    """
    distance = _distances(scores)
    r = rational("rate", rate)
    width = integer("width", width, most=64)
    bits = source(bits)
    head = bits.below(1 << width)
    # Past 64 a weight is nothing in the filter's units; without the cap subnormal numbers would take longer.
    found = _filter(np.exp(-np.minimum(distance * _nearest(r), _FARTHEST)), head, width)
    return invert(head, width, lambda w: _cumulative(distance, r, w), bits) if found is None else found


def smoothed_choice(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    rate: Fraction | int,
    bits: Bits | None = None,
    *,
    width: int = 64,
) -> int:
    """The index i with probability proportional to 1/(1 + exp(rate*first[i]) + exp(rate*second[i])).

    Guarantee: exactly that law for integers below 2**62 and a rational rate. Floats only filter, with the margin of
    `choice`: exponents beyond 64 are taken as 64, whose weights are less than the filter's unit.
    Requires: rate >= 0; two arrays of one length, of which one entry at least is positive in neither: otherwise only
    the time grows.
    Cost: O(n), about twice that of `choice`.
    """
    r = rational("rate", rate)
    width = integer("width", width, most=64)
    bits = source(bits)
    head, near = bits.below(1 << width), _nearest(r)
    powers = (np.exp(np.clip(part * near, -_FARTHEST, _FARTHEST)) for part in (first, second))
    found = _filter(1 / (1 + sum(powers)), head, width)
    return invert(head, width, lambda w: _smoothed(first, second, r, w), bits) if found is None else found


def _distances(scores: NDArray[np.signedinteger[Any]]) -> NDArray[np.uint64]:
    """How far each score is below the best; the differences of 64-bit numbers fit unsigned."""
    if not isinstance(scores, np.ndarray) or scores.dtype.kind != "i":
        kind = scores.dtype.name if isinstance(scores, np.ndarray) else type(scores).__name__
        raise InputError(
            f"expected an array of signed integers for scores, got {kind}; scale and round them first"
        )
    if scores.ndim != 1 or not scores.size:
        raise InputError(
            f"expected one dimension and at least one entry for scores, got shape {scores.shape}"
        )
    wide = scores.astype(np.int64).view(np.uint64)
    return np.uint64(int(scores.max()) % (1 << 64)) - wide


def _filter(chances: NDArray[np.float64], head: int, width: int) -> int | None:
    """The index if rounded weights, of which the largest is of the order of 1, settle it, else None.

    Weights count units of 2**-62 and are summed as integers. With less than one unit of rounding each and a
    relative error of 2**-42, no running sum is off by more than `slack`.
    """
    n = chances.size
    # About as many groups as members: both are walked in Python's integers.
    members = 1 << max(5, (n.bit_length() + 1) // 2)
    weights = np.zeros(-(-n // members) * members, dtype=np.int64)
    weights[:n] = chances * float(1 << _UNIT)
    groups = weights.reshape(-1, members)
    high_sums = (groups >> 31).sum(axis=1).tolist()
    low_sums = (groups & 0x7FFFFFFF).sum(axis=1).tolist()
    ends = list(accumulate((h << 31) + k for h, k in zip(high_sums, low_sums, strict=True)))
    slack = (ends[-1] >> _MARGIN) + n + 1
    # The number lies in [low, high). Both ends must stay clear of every boundary, which might have moved.
    low = (head * (ends[-1] - slack) >> width) - slack
    high = ((head + 1) * (ends[-1] + slack) >> width) + 1 + slack
    group = bisect_right(ends, low)
    if group == len(ends):
        return None
    edges = list(accumulate(groups[group].tolist(), initial=ends[group - 1] if group else 0))
    place = max(0, bisect_right(edges, low) - 1)
    index = group * members + place
    first, last = index == 0, index == n - 1
    return index if (first or edges[place] <= low) and (last or high <= edges[place + 1]) else None


def _nearest(rate: Fraction) -> float:
    """The rate as a float, at most 2**63: beyond, one unit of distance is out of reach anyway."""
    return float(rate) if rate < 1 << 63 else 2.0**63


def _cumulative(distance: NDArray[np.uint64], rate: Fraction, width: int) -> Cumulative:
    """Exact brackets of the running sums, to 2**-width of the total."""
    precision = width + distance.size.bit_length() + 8
    values, where = np.unique(distance, return_inverse=True)
    weights = [exponential(rate * int(v), precision) for v in values]
    low = list(accumulate(weights[i][0] for i in where))
    high = list(accumulate(weights[i][1] for i in where))
    return Cumulative(low, high, low[-1], high[-1])


def _smoothed(first: NDArray[np.int64], second: NDArray[np.int64], rate: Fraction, width: int) -> Cumulative:
    """The same for `smoothed_choice`, by e^-M/(e^-M + e^{x-M} + e^{y-M}), M the greatest of 0, x and y."""
    precision = width + first.size.bit_length() + 8
    pairs, where = np.unique(np.stack([first, second], axis=1), axis=0, return_inverse=True)
    weights = []
    for x, y in pairs.tolist():
        most = max(0, x, y)
        parts = [exponential(rate * (most - each), precision) for each in (0, x, y)]
        low, high = (sum(part[end] for part in parts) for end in (0, 1))
        weights.append(((parts[0][0] << precision) // high, -((-parts[0][1] << precision) // low)))
    low_sums = list(accumulate(weights[i][0] for i in where.ravel()))
    high_sums = list(accumulate(weights[i][1] for i in where.ravel()))
    return Cumulative(low_sums, high_sums, low_sums[-1], high_sums[-1])
