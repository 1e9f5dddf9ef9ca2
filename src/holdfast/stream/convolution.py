"""Sums of products of integers, exact although the work is done by floating-point Fourier transforms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DIGIT = 10
_HALF = 1 << (DIGIT - 1)
_MOST_ON_TOP = 8 * _HALF
_ACCURACY = 2.0**-42
"""What one transform-multiply-transform may err, relative to the product of the two L2 norms. The proved
bound for radix 2 is 3 log2(n) (1 + sqrt 5 + 1) 2^-53 (Percival 2003, Theorem 5.1, with the constant of Brent,
Percival and Zimmermann 2007), below 2^-44 up to n = 2^30; measured errors are far smaller."""

Ints = NDArray[np.int64]


def rounded_convolution(f: Ints, z: Ints, shift: int) -> Ints:
    """floor(1/2 + sum over k of f[k]*z[t-k] / 2^shift) for every t below len(z).

    Guarantee: exact. Both sequences are written in signed digits of 10 bits; a sum of products of digits is a
    whole number below 2^52, known to better than 1/4, so rounding finds it. Refuses to go on otherwise.
    Requires: shift a positive multiple of 10; len(z) <= len(f); len(z) <= 2^21, where the bound on the error
    still is below 1/4; results that fit into 62 bits.
    Cost: O(n log n); 9 transforms of length 2n if z has 23 bits.
    """
    assert shift > 0
    assert shift % DIGIT == 0
    n = z.size
    length = 1 << max(1, (2 * n - 1).bit_length())
    left, right = _digits(f[:n]), _digits(z)
    norms = [[float(np.linalg.norm(d)) for d in side] for side in (left, right)]
    transforms = [[np.fft.rfft(d, length) for d in side] for side in (left, right)]
    carry = np.zeros(n, dtype=np.int64)
    kept = np.zeros(n, dtype=np.int64)
    for place in range(max(len(left) + len(right) - 1, shift // DIGIT)):
        pairs = [(i, place - i) for i in range(len(left)) if 0 <= place - i < len(right)]
        if pairs:
            bound = _ACCURACY * sum(norms[0][i] * norms[1][j] for i, j in pairs)
            spectrum = np.zeros(length // 2 + 1, dtype=np.complex128)
            for i, j in pairs:
                spectrum += transforms[0][i] * transforms[1][j]
            carry += _whole(spectrum, length, n, bound)
        weight = place * DIGIT - shift
        if weight >= 0:
            kept += carry << weight
            carry[:] = 0
        else:
            # Half of 2^shift is the highest bit of the last digit below the point.
            carry += _HALF if weight == -DIGIT else 0
            carry >>= DIGIT
    return kept + carry


def _whole(spectrum: NDArray[np.complex128], length: int, n: int, bound: float) -> Ints:
    near = np.fft.irfft(spectrum, length)[:n]
    whole = np.rint(near)
    near -= whole
    if bound >= 0.25 or max(near.max(), -near.min()) > 0.25:
        raise ArithmeticError("expected a transform accurate to 1/4, got less; shorten the sequence")
    return whole.astype(np.int64)


def _digits(numbers: Ints) -> list[NDArray[np.float64]]:
    """Signed digits to the base 2^10, from -512 to 511, least first; the last one may reach 4096."""
    out = []
    rest = numbers
    while max(int(rest.max()), -int(rest.min())) > _MOST_ON_TOP:
        digit = ((rest + _HALF) & (2 * _HALF - 1)) - _HALF
        out.append(digit.astype(np.float64))
        rest = (rest - digit) >> DIGIT
    return [*out, rest.astype(np.float64)]
