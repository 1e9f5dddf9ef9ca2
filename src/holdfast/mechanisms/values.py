"""What the additive mechanisms take and give."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError
from holdfast.privacy.rounding import round_down as round_down
from holdfast.privacy.rounding import round_up as round_up

Integers = int | NDArray[np.int64]

_LARGEST = 2**61
"""Values are clamped to this size, so that adding noise cannot overflow; clamping moves no two values apart."""


def integers(values: object) -> Integers:
    """The values as a clamped int or int64 array. Refuses by type alone, so that no error tells a value."""
    if isinstance(values, bool | np.bool_):
        raise InputError("expected integers, got a truth value; use int(...)")
    if isinstance(values, int):
        return min(max(values, -_LARGEST), _LARGEST)
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise InputError(
            f"expected integers, got {array.dtype}; count or round to a grid first, since noise on floats leaks"
        )
    if array.dtype.kind == "u":
        array = np.minimum(array.astype(np.uint64), np.uint64(_LARGEST))
    # np.clip, three times as quick on single numbers.
    array = np.minimum(np.maximum(array.astype(np.int64), -_LARGEST), _LARGEST)
    return int(array) if array.ndim == 0 else array


ROUND_UP = 1 + 2.0**-40
"""Covers the rounding of a few elementary functions in double precision, each within a few ulp (2^-52)."""
