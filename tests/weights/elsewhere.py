"""Arrays that NumPy cannot see, as on a GPU: they know only what NumPy, CuPy and torch spell alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.weights.array_module import ArrayModule


class Elsewhere:
    """An array that refuses to come to NumPy by itself, and to be mixed with NumPy's."""

    __array_ufunc__ = None

    def __init__(self, held: Any) -> None:
        self._held = np.asarray(held)
        self.shape = self._held.shape

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("this array is on a device: fetch it")

    def __float__(self) -> float:
        return float(self._held)

    def __getitem__(self, place: Any) -> Elsewhere:
        return Elsewhere(self._held[place])

    def reshape(self, *shape: Any) -> Elsewhere:
        return Elsewhere(self._held.reshape(*shape))

    def sum(self, axis: Any = None, keepdims: bool = False) -> Elsewhere:
        return Elsewhere(self._held.sum(axis=axis, keepdims=keepdims))

    def _other(self, other: Any) -> Any:
        if isinstance(other, Elsewhere):
            return other._held
        assert isinstance(other, int | float), "an array of NumPy's: send it"
        return other

    def __add__(self, other: Any) -> Elsewhere:
        return Elsewhere(self._held + self._other(other))

    def __mul__(self, other: Any) -> Elsewhere:
        return Elsewhere(self._held * self._other(other))

    __radd__, __rmul__ = __add__, __mul__

    def __iadd__(self, other: Any) -> Elsewhere:
        self._held += self._other(other)
        return self

    def __isub__(self, other: Any) -> Elsewhere:
        self._held -= self._other(other)
        return self

    def __imul__(self, other: Any) -> Elsewhere:
        self._held *= self._other(other)
        return self

    def __itruediv__(self, other: Any) -> Elsewhere:
        self._held /= self._other(other)
        return self


def _exp(array: Elsewhere) -> Elsewhere:
    np.exp(array._held, out=array._held)
    return array


ELSEWHERE = ArrayModule(
    "elsewhere",
    lambda count: Elsewhere(np.ones(count)),
    lambda array: Elsewhere(np.array(array, dtype=np.float64)),
    lambda array: array._held,
    _exp,
    lambda array: Elsewhere(np.log(array._held)),
    lambda array, axes: Elsewhere(array._held.max(axis=axes, keepdims=True)),
)
