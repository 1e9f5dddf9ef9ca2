"""The laws of private choice, computed by their definitions in high precision."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import mpmath

mp = mpmath.mp.clone()  # other oracles keep their own precision
mp.dps = 40
mpf = mp.mpf


def exponential_law(units: Sequence[int], rate: Fraction) -> list[mpmath.mpf]:
    """Proportional to exp(rate*units)."""
    weights = [_exp(rate * (u - max(units))) for u in units]
    return [w / sum(weights) for w in weights]


def permute_and_flip_law(units: Sequence[int], rate: Fraction) -> list[mpmath.mpf]:
    """Sum over all sets of accepted candidates: the chance of the set, divided among its members."""
    chances = [_exp(rate * (u - max(units))) for u in units]
    law = [mpf(0)] * len(units)
    for size in range(1, len(units) + 1):
        for accepted in combinations(range(len(units)), size):
            mass = mpf(1)
            for i, p in enumerate(chances):
                mass *= p if i in accepted else 1 - p
            for i in accepted:
                law[i] += mass / size
    return law


def noisy_max_law(units: Sequence[int], scale: Fraction, *, two_sided: bool) -> list[mpmath.mpf]:
    """Sum over the winner's noisy score; the first one of equals wins. Cut at 45 scales."""
    reach = int(45 * scale) + 45
    law = []
    for i, own in enumerate(units):
        total = mpf(0)
        for noise in range(-reach if two_sided else 0, reach):
            score = own + noise
            p = _mass(noise, scale, two_sided)
            for j, other in enumerate(units):
                if j != i:
                    p *= _at_most(score - other - (j < i), scale, two_sided)
            total += p
        law.append(total)
    return law


def worst_log_ratio(first: Sequence[mpmath.mpf], second: Sequence[mpmath.mpf]) -> mpmath.mpf:
    """The largest |ln(p/q)| over outputs."""
    return max(abs(mp.log(p / q)) for p, q in zip(first, second, strict=True))


def log_range(first: Sequence[mpmath.mpf], second: Sequence[mpmath.mpf]) -> mpmath.mpf:
    """How far ln(p/q) spreads over outputs: the epsilon of bounded range."""
    logs = [mp.log(p / q) for p, q in zip(first, second, strict=True)]
    return max(logs) - min(logs)


def _exp(x: Fraction) -> mpmath.mpf:
    return mp.exp(mpf(x.numerator) / x.denominator)


def _mass(x: int, scale: Fraction, two_sided: bool) -> mpmath.mpf:
    q = _exp(-1 / scale)
    if two_sided:
        return (1 - q) / (1 + q) * q ** abs(x)
    return (1 - q) * q**x if x >= 0 else mpf(0)


def _at_most(x: int, scale: Fraction, two_sided: bool) -> mpmath.mpf:
    q = _exp(-1 / scale)
    if two_sided:
        return 1 - q ** (x + 1) / (1 + q) if x >= 0 else q**-x / (1 + q)
    return 1 - q ** (x + 1) if x >= 0 else mpf(0)
