"""The convolution is exact, where plain floating point is not."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.stream.convolution import rounded_convolution
from holdfast.stream.factorisation import SHIFT, scaled


def slow(f: np.ndarray, z: np.ndarray, shift: int) -> list[int]:
    """By the definition, in Python's integers."""
    a, b = [int(x) for x in f], [int(x) for x in z]
    sums = [sum(a[k] * b[t - k] for k in range(t + 1)) for t in range(len(b))]
    return [(2 * s + (1 << shift)) >> (shift + 1) for s in sums]


def plain(f: np.ndarray, z: np.ndarray, shift: int) -> list[int]:
    """Twin: one floating-point convolution, rounded."""
    sums = np.convolve(f.astype(float), z.astype(float))[: z.size]
    return np.floor(sums / 2.0**shift + 0.5).astype(np.int64).tolist()


@pytest.mark.parametrize("size", [1, 2, 3, 17, 256, 400])
@pytest.mark.parametrize("reach", [1, 10**3, 10**6, 2**40])
def test_it_agrees_with_integer_arithmetic(size: int, reach: int) -> None:
    z = np.random.default_rng(size).integers(-reach, reach, size, endpoint=True)
    assert rounded_convolution(scaled(size), z, SHIFT).tolist() == slow(scaled(size), z, SHIFT)


def test_ties_and_extremes_are_settled_by_integers() -> None:
    f = np.array([1 << SHIFT, 1 << (SHIFT - 1), 0, 0])
    z = np.array([1, -1, 3, -(2**45)])
    assert rounded_convolution(f, z, SHIFT).tolist() == slow(f, z, SHIFT) == [1, 0, 3, -(2**45) + 2]


def test_plain_floats_would_err() -> None:
    z = np.random.default_rng(5).integers(-(2**45), 2**45, 400)
    assert plain(scaled(400), z, SHIFT) != slow(scaled(400), z, SHIFT)


def test_it_refuses_where_the_certificate_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.stream import convolution

    monkeypatch.setattr(convolution, "_ACCURACY", 1e-3)
    with pytest.raises(ArithmeticError):
        rounded_convolution(scaled(256), np.full(256, 999), SHIFT)
