"""How much privacy was lost, in one of four notions. Floats here are upper bounds.

Within a notion losses add (rounded up) and are partially ordered: `a <= b` says that a is no worse in every
component. Two notions are never compared or added; convert first.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction

from holdfast.check import exact, refusal
from holdfast.privacy.rounding import float_up


@dataclass(frozen=True, slots=True)
class Pure:
    """epsilon-DP: for every set of outputs, P(M(x) in A) <= e^epsilon P(M(x') in A)."""

    epsilon: float

    def __post_init__(self) -> None:
        _store(self, "epsilon")

    def __add__(self, other: Pure) -> Pure:
        if not isinstance(other, Pure):
            return NotImplemented
        return Pure(_sum(self.epsilon, other.epsilon))

    def __le__(self, other: Pure) -> bool:
        if not isinstance(other, Pure):
            return NotImplemented
        return self.epsilon <= other.epsilon


@dataclass(frozen=True, slots=True)
class Approx:
    """(epsilon, delta)-DP: for every set of outputs, P(M(x) in A) <= e^epsilon P(M(x') in A) + delta."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _store(self, "epsilon")
        _store(self, "delta")
        _at_most_one(self.delta)

    def __add__(self, other: Approx) -> Approx:
        if not isinstance(other, Approx):
            return NotImplemented
        return Approx(_sum(self.epsilon, other.epsilon), min(1.0, _sum(self.delta, other.delta)))

    def __le__(self, other: Approx) -> bool:
        if not isinstance(other, Approx):
            return NotImplemented
        return self.epsilon <= other.epsilon and self.delta <= other.delta


@dataclass(frozen=True, slots=True)
class Zcdp:
    """delta-approximate rho-zCDP (Bun and Steinke 2016, Def. 8.1); rho-zCDP when delta is 0."""

    rho: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        _store(self, "rho")
        _store(self, "delta")
        _at_most_one(self.delta)

    def __add__(self, other: Zcdp) -> Zcdp:
        if not isinstance(other, Zcdp):
            return NotImplemented
        return Zcdp(_sum(self.rho, other.rho), min(1.0, _sum(self.delta, other.delta)))

    def __le__(self, other: Zcdp) -> bool:
        if not isinstance(other, Zcdp):
            return NotImplemented
        return self.rho <= other.rho and self.delta <= other.delta


@dataclass(frozen=True, slots=True)
class Gdp:
    """mu-GDP (Dong, Roth and Su 2019), kept as mu squared because that is what adds."""

    mu_squared: float

    def __post_init__(self) -> None:
        _store(self, "mu_squared")

    def __add__(self, other: Gdp) -> Gdp:
        if not isinstance(other, Gdp):
            return NotImplemented
        return Gdp(_sum(self.mu_squared, other.mu_squared))

    def __le__(self, other: Gdp) -> bool:
        if not isinstance(other, Gdp):
            return NotImplemented
        return self.mu_squared <= other.mu_squared


Loss = Pure | Approx | Zcdp | Gdp


def _store(loss: object, name: str) -> None:
    value = getattr(loss, name)
    # A float that was rounded up may be denormal; as a bound it is as good as any other.
    if not (isinstance(value, float) and 0.0 <= value < sys.float_info.min):
        value = float_up(exact(name, value))
    object.__setattr__(loss, name, float(value))


def _at_most_one(delta: float) -> None:
    if delta > 1.0:
        raise refusal("at most 1", "delta", delta, "it is a probability")


def _sum(a: float, b: float) -> float:
    return float_up(Fraction(a) + Fraction(b))
