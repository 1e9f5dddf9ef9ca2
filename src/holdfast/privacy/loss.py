"""How much privacy was lost, in one of four notions. Floats here are upper bounds.

Within a notion losses add (rounded up) and are partially ordered: `a <= b` says that a is no worse in every
component. Two notions are never compared or added; convert first.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from holdfast.check import exact, refusal
from holdfast.privacy.rounding import float_up


class _Amounts:
    """What losses of one notion share: their fields add and are compared one by one."""

    __slots__: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, _bound(name, getattr(self, name)))
        delta = getattr(self, "delta", 0.0)
        if delta > 1.0:
            raise refusal("at most 1", "delta", delta, "it is a probability")

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        sums = {name: float_up(Fraction(a) + Fraction(b)) for name, a, b in self._beside(other)}
        return type(self)(
            **{name: min(1.0, total) if name == "delta" else total for name, total in sums.items()}
        )

    def __le__(self, other: Self) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(a <= b for _, a, b in self._beside(other))

    def _beside(self, other: Self) -> list[tuple[str, float, float]]:
        return [(name, getattr(self, name), getattr(other, name)) for name in self.__slots__]


@dataclass(frozen=True, slots=True)
class Pure(_Amounts):
    """epsilon-DP: for every set of outputs, P(M(x) in A) <= e^epsilon P(M(x') in A)."""

    epsilon: float


@dataclass(frozen=True, slots=True)
class Approx(_Amounts):
    """(epsilon, delta)-DP: for every set of outputs, P(M(x) in A) <= e^epsilon P(M(x') in A) + delta."""

    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True)
class Zcdp(_Amounts):
    """delta-approximate rho-zCDP (Bun and Steinke 2016, Def. 8.1); rho-zCDP when delta is 0."""

    rho: float
    delta: float = 0.0


@dataclass(frozen=True, slots=True)
class Gdp(_Amounts):
    """mu-GDP (Dong, Roth and Su 2019), kept as mu squared because that is what adds."""

    mu_squared: float


Loss = Pure | Approx | Zcdp | Gdp


def _bound(name: str, value: object) -> float:
    # A float that was rounded up may be denormal; as a bound it is as good as any other.
    if isinstance(value, float) and 0.0 <= value < sys.float_info.min:
        return float(value)
    return float_up(exact(name, value))
