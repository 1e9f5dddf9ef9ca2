"""The samplers of Canonne, Kamath and Steinke (2020), line by line and slow, on `below` alone.

Algorithm 1 (Bernoulli exp), 2 (discrete Laplace), 3 (discrete Gaussian).
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from holdfast.noise.bits import Bits


def bernoulli(p: Fraction, bits: Bits) -> bool:
    return bits.below(p.denominator) < p.numerator


def bernoulli_exp(gamma: Fraction, bits: Bits) -> bool:
    if gamma <= 1:
        k = 1
        while bernoulli(gamma / k, bits):
            k += 1
        return k % 2 == 1
    for _ in range(int(gamma)):
        if not bernoulli_exp(Fraction(1), bits):
            return False
    return bernoulli_exp(gamma - int(gamma), bits)


def geometric(rate: Fraction, bits: Bits) -> int:
    """x = t*v + u is geometric of rate s/t before the division by s (Algorithm 2, lines 1 to 10)."""
    s, t = rate.numerator, rate.denominator
    while True:
        u = bits.below(t)
        if bernoulli_exp(Fraction(u, t), bits):
            break
    v = 0
    while bernoulli_exp(Fraction(1), bits):
        v += 1
    return (u + t * v) // s


def laplace(scale: Fraction, bits: Bits) -> int:
    while True:
        negative = bernoulli(Fraction(1, 2), bits)
        y = geometric(1 / scale, bits)
        if not (negative and y == 0):
            return -y if negative else y


def gaussian(variance: Fraction, bits: Bits) -> int:
    t = isqrt(int(variance)) + 1
    while True:
        y = laplace(Fraction(t), bits)
        if bernoulli_exp((abs(y) - variance / t) ** 2 / (2 * variance), bits):
            return y
