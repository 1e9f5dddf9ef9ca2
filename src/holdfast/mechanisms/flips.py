"""Many coins at once, each with its own chance exp(-rate*distance)."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from holdfast.noise.bits import Bits, system_bits
from holdfast.noise.exponential import exponential as bracket
from holdfast.noise.uniform_comparison import is_below

_FARTHEST = 64.0
_MARGIN = 2.0**-40


def flips(
    distances: NDArray[np.int64], rate: Fraction, bits: Bits | None = None, *, width: int = 64
) -> NDArray[np.bool_]:
    """Coin i is true with probability exp(-rate*distances[i]), independently.

    Guarantee: exactly that law. Floats only filter: chances computed in floating point carry a margin of
    2^-40 (their error is below 2^-45), and a coin that the margin leaves open is settled by integer
    arithmetic and further bits. `width` bits are looked at first: that moves time, not the law.
    Requires: distances >= 0, rate >= 0, 1 <= width <= 64; NumPy's exp is accurate to 2^-48.
    Cost: about 15 ns a coin, the same for every distance; the open path is taken with probability near 2^-39.
    """
    bits = system_bits() if bits is None else bits
    heads = bits.chunks(distances.size, width)
    # Past 64 a chance is below one unit of the head; without the cap subnormal numbers would take longer.
    exponents = np.minimum(distances * min(float(rate), 2.0**63), _FARTHEST)
    chances = np.exp(-exponents) * 2.0**width
    first = heads.astype(np.float64)
    # U lies in [head, head + 1) of these units. One half more leaves a head of 0 open for the tiniest chance.
    out: NDArray[np.bool_] = first + 1.0 <= chances * (1.0 - _MARGIN)
    undecided = ~out & (first < chances * (1.0 + _MARGIN) + 0.5)
    for i in np.flatnonzero(undecided):
        bounds = partial(bracket, rate * int(distances[i]))
        out[i] = is_below(int(heads[i]), width, bounds, bits)
    return out
