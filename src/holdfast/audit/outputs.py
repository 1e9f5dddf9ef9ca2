"""What a mechanism said, many times over, in the shapes that event search needs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError


@dataclass(frozen=True, slots=True)
class Outputs:
    """Repeated outputs of one mechanism on one input.

    `keys` are the outputs as hashable values. `matrix` is one row of numbers for each output, or None where
    outputs are not numbers or not of one length. `floats` tells whether the numbers were floats.
    """

    keys: tuple[Hashable, ...]
    matrix: NDArray[np.float64] | None
    floats: bool

    @staticmethod
    def of(raw: Sequence[Any] | NDArray[Any]) -> Outputs:
        """From a list of hashable outputs, a vector of scalars, or a matrix with one output in each row."""
        if isinstance(raw, np.ndarray) and raw.ndim == 2:
            keys: tuple[Hashable, ...] = tuple(map(tuple, raw.tolist()))
        elif isinstance(raw, np.ndarray) and raw.ndim != 1:
            raise InputError(
                f"expected one output in each row, got an array of {raw.ndim} dimensions; use 1 or 2"
            )
        else:
            keys = tuple(_key(output) for output in (raw.tolist() if isinstance(raw, np.ndarray) else raw))
        return Outputs(keys, *_numbers(raw, keys))

    def __len__(self) -> int:
        return len(self.keys)

    def part(self, start: int, stop: int) -> Outputs:
        """The outputs of some of the runs."""
        matrix = None if self.matrix is None else self.matrix[start:stop]
        return Outputs(self.keys[start:stop], matrix, self.floats)


def _key(output: Any) -> Hashable:
    if isinstance(output, np.ndarray):
        output = output.tolist()
    if isinstance(output, list):
        output = tuple(output)
    if isinstance(output, np.generic):
        output = output.item()
    try:
        hash(output)
    except TypeError:
        raise InputError(
            f"expected hashable outputs, got {type(output).__name__}; return numbers, strings or tuples"
        ) from None
    return output  # type: ignore[no-any-return]


def _numbers(raw: Any, keys: tuple[Hashable, ...]) -> tuple[NDArray[np.float64] | None, bool]:
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "biuf":
        return raw.reshape(len(keys), -1).astype(np.float64), raw.dtype.kind == "f"
    rows = [key if isinstance(key, tuple) else (key,) for key in keys]
    if len({len(row) for row in rows}) != 1:
        return None, False
    kinds = {type(number) for row in rows for number in row}
    if not kinds or not kinds <= {int, float, bool}:
        return None, False
    try:
        return np.array(rows, dtype=np.float64), float in kinds
    except OverflowError:
        return None, False
