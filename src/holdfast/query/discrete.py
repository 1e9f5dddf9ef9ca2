"""What the types of columns with countably many values share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import DataError, SchemaError

Codes: TypeAlias = NDArray[Any]


class Discrete(ABC):
    """As many codes as there are values, and one more for NULL."""

    __slots__ = ()

    @property
    @abstractmethod
    def codes(self) -> int: ...

    @property
    def null_code(self) -> int:
        return self.codes

    @property
    def dtype(self) -> np.dtype[Any]:
        return _smallest(self.codes)


def flat(values: NDArray[Any]) -> NDArray[Any]:
    """The same array, if it has one dimension."""
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        raise DataError(f"expected a one-dimensional NumPy array, got {type(values).__name__}")
    return values


def in_order(lo: Any, hi: Any, name: str) -> None:
    """SchemaError for bounds that stand the wrong way round."""
    if lo > hi:
        raise SchemaError(f"expected {name} bounds with lo <= hi, got lo={lo!r} and hi={hi!r}; swap them")


@lru_cache(maxsize=1024)
def _smallest(code: int) -> np.dtype[Any]:
    return np.min_scalar_type(code)
