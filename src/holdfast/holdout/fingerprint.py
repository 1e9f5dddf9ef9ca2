"""Which holdout this is: told from its labels, not from the name of a file."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import InputError


def labels_array(labels: ArrayLike) -> NDArray[Any]:
    """The labels as a column of integers, floats or text, or several columns of numbers; InputError for anything else.

    Integers are kept in the smallest type that holds them: a look draws rows from all over the memory.
    """
    array = np.asarray(labels)
    if array.ndim not in (1, 2) or not array.size or (array.ndim == 2 and array.dtype.kind not in "buif"):
        raise InputError(
            f"expected a column of at least one row for labels, or columns of numbers, got shape {array.shape}"
        )
    if array.dtype.kind in "bui":
        if array.dtype.kind == "u" and array.dtype.itemsize == 8:
            return _narrow(array) if array.max() < 2**63 else _refused(array)
        return _narrow(array)
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise InputError(
                "expected finite numbers for labels, got missing values; drop those rows or fill them in"
            )
        return array.astype(np.float64)
    if array.dtype.kind in "OUS":
        return array.astype(np.str_)
    raise InputError(f"expected numbers, truth values or text for labels, got {array.dtype}")


def _narrow(array: NDArray[Any]) -> NDArray[Any]:
    low, high = int(array.min()), int(array.max())
    kinds = (np.int8, np.int16, np.int32, np.int64)
    kind = next(k for k in kinds if np.iinfo(k).min <= low and high <= np.iinfo(k).max)
    return array.astype(kind)


def _refused(array: NDArray[Any]) -> NDArray[Any]:
    raise InputError(
        f"expected integers below 2**63 for labels, got {array.dtype}; number the classes from 0"
    )


def fingerprint(labels: NDArray[Any]) -> str:
    """32 hex digits that follow the labels wherever their file goes: kind, number, values, order.

    The same rows in another order are another holdout to it. It is a fact about the labels, so it belongs
    beside them, not on a public page.
    """
    shape = " ".join(map(str, labels.shape))
    digest = hashlib.sha256(f"holdfast holdout {labels.dtype.kind} {shape}\n".encode())
    if labels.dtype.kind == "U":
        for start in range(0, len(labels), 1 << 16):
            digest.update("\x00".join(labels[start : start + (1 << 16)].tolist()).encode() + b"\x01")
    else:
        little = "<i8" if labels.dtype.kind == "i" else "<f8"
        for start in range(0, len(labels), 1 << 20):
            digest.update(labels[start : start + (1 << 20)].astype(little).tobytes())
    return digest.hexdigest()[:32]
