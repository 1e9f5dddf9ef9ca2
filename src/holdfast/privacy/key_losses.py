"""What the discovery of keys costs: (rho, delta) of approximate zCDP.

A key that only the replaced unit has is what delta is for: given that none of them is shown, the rest is what both
tables show of the keys of all others, with noise on counts that one unit has moved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from holdfast.privacy.event import KeysByGaussian, KeysByLogistic
from holdfast.privacy.normal_tail import tail
from holdfast.privacy.rounding import up


def gaussian_keys_rho(event: KeysByGaussian) -> Fraction:
    """Two weight vectors without negative entries, each of length at most `scale`, are at most sqrt(2) scale apart.

    Of a unit with up to `rows` rows they are `rows` times as long.
    Reference: docs/theorems.md, Theorem 49; Gopi et al. 2020.
    """
    return Fraction((event.rows * event.scale) ** 2) / event.variance


def gaussian_keys_delta(event: KeysByGaussian) -> float:
    """The chance that a key of one unit alone is shown.

    Discrete Gaussian noise N of parameter s has Pr[N >= j] <= Q((j - 1/2)/s) for whole j >= 1.
    Reference: docs/theorems.md, Theorem 49.
    """
    s = math.sqrt(event.variance)

    def shown(weight: int) -> float:
        above = event.threshold - weight
        return up(tail((above - 0.5) / s * (1 - 2**-40))) if above >= 1 else 1.0

    return _any_shown(shown, event.keys, event.rows, event.scale)


def logistic_keys_rho(event: KeysByLogistic) -> Fraction:
    """Each of the two keys whose count moves by one has odds that move by e^rate: rate-bounded range, rate^2/8-zCDP.

    Of a unit with t keys 2t of them move; of one with up to `rows` rows they move by j_i, which add up to `rows` at
    most on either side.
    Reference: docs/theorems.md, Theorem 50.
    """
    return max(Fraction(event.keys), Fraction(event.rows) ** 2) * event.rate**2 / 4


def logistic_keys_delta(event: KeysByLogistic) -> float:
    """The chance that a key is shown which has `least` units in one table and fewer in the other.

    Reference: docs/theorems.md, Theorem 50.
    """

    def shown(weight: int) -> float:
        power = float(event.rate * (event.least - 1 + weight - event.threshold))
        return up(1 / (1 + math.exp(-power))) if power > -700 else up(math.exp(power))

    if event.rows > 1:
        return _any_shown(shown, 1, event.rows, 1)
    return _several(shown(1), event.keys)


def _any_shown(shown: Callable[[int], float], keys: int, rows: int, scale: int) -> float:
    """The greatest chance over all that a unit may have: t keys of equal weight, or rows in any keys.

    Rows j_1, j_2, ... of different keys show one with chance at most sum p(j_i) <= rows max p(j)/j.
    """
    if rows > 1:
        return min(1.0, up(rows * max(shown(j * scale) / j for j in range(1, rows + 1))))
    return max(_several(shown(math.isqrt(scale * scale // t)), t) for t in range(1, keys + 1))


def _several(chance: float, keys: int) -> float:
    """1 - (1 - p)^t, rounded up."""
    return 1.0 if chance >= 1 else min(1.0, up(-math.expm1(keys * math.log1p(-chance))))
