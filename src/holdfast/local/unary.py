"""Unary encoding: one noisy bit for every value of the domain."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.local.oracle import BitOracle
from holdfast.local.packed_bits import noisy_one_hot
from holdfast.local.parameter import read_values
from holdfast.local.probability import exp_below, grid_floor, keep
from holdfast.local.support import Support
from holdfast.noise.bits import Bits, system_bits


class _Unary(BitOracle):
    """Every bit is a coin: of p for the user's own value, of q for each other."""

    __slots__ = ()

    def randomize(self, values: ArrayLike, bits: Bits | None = None) -> NDArray[np.uint8]:
        """One packed row of bits per user, private."""
        mine, p, q = read_values(values, self.domain), self.support.p, self.support.q
        return noisy_one_hot(mine, self.domain, p, q, bits or system_bits())


@dataclass(frozen=True, slots=True)
class SymmetricUnary(_Unary):
    """One bit per value, each told truly with probability e^(epsilon/2)/(e^(epsilon/2) + 1). Basic RAPPOR.

    Guarantee: epsilon-local differential privacy, exactly: two values differ in two bits.
    Requires: a domain of 2 to 2^16 values, numbered from 0.
    Reference: Erlingsson, Pihur, Korolova 2014; variance e^(epsilon/2)/(n (e^(epsilon/2) - 1)^2).
    Cost: k bits a report.
    """

    @property
    def support(self) -> Support:
        """A report supports every value whose bit is set."""
        p = keep(self.epsilon / 2)
        return Support(p, 1 - p)


@dataclass(frozen=True, slots=True)
class OptimisedUnary(_Unary):
    """One bit per value: a fair coin for the user's own, a coin of 1/(e^epsilon + 1) for each other.

    Guarantee: epsilon-local differential privacy, exactly.
    Requires: a domain of 2 to 2^16 values, numbered from 0.
    Reference: Wang, Blocki, Li, Jha 2017, section 4.3; variance 4 e^epsilon/(n (e^epsilon - 1)^2) for a rare
    item.
    Cost: k bits a report.
    """

    @property
    def support(self) -> Support:
        """A report supports every value whose bit is set."""
        # 1 - q is rounded down, so q goes up and (1-q)/q stays at most e^epsilon.
        q = 1 - grid_floor(1 - 1 / (exp_below(Fraction(self.epsilon)) + 1))
        return Support(Fraction(1, 2), q)
