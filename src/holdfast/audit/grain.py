"""The grain of a float: the size of its lowest set bit.

Noise drawn as a float is porous. The sum of a value and its noise is rounded to the coarser grid of the two,
so its lowest bits tell which value was inside: near zero, 0 + noise keeps bits far below 2^-53, while
1 + noise has none there. An output with such bits is *impossible* under the other value, whatever epsilon was
promised. Exact noise on a fixed grid has the same grains under all values.

Reference: Mironov 2012, On significance of the least significant bits for differential privacy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

ZERO_GRAIN = 1024.0
"""Zero, infinities and NaN have no lowest set bit; they count as coarser than every number."""


def grain(values: ArrayLike) -> NDArray[np.float64]:
    """The exponent e of the lowest set bit: the value is an odd multiple of 2^e."""
    array = np.asarray(values, dtype=np.float64)
    mantissa, exponent = np.frexp(np.where(np.isfinite(array), array, 0.0))
    integer = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.frexp((integer & -integer).astype(np.float64))[1] - 1
    return np.where(integer == 0, ZERO_GRAIN, exponent - 53.0 + lowest)
