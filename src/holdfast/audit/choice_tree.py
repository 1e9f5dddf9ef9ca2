"""The exact law of a mechanism, by walking every choice it can make.

A mechanism that draws only through `bits` is a function of the integers it is given. Replaying it with every
possible sequence of them, each with its probability, yields its law as fractions: no sampling, no error.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError
from holdfast.noise.bits import Bits
from holdfast.noise.words import UInt

_WIDEST = 1 << 16


@dataclass(frozen=True, slots=True)
class Law:
    """Probabilities of outputs; `leftover` is the mass of the paths that were not walked."""

    probabilities: dict[Hashable, Fraction]
    leftover: Fraction


class _Fork(BaseException):
    """The path ended at a choice among `size`. Not an Exception, so that no mechanism swallows it."""

    def __init__(self, size: int) -> None:
        self.size = size


@dataclass(slots=True)
class ChoiceBits:
    """A source that follows a given path of choices, and forks at its end."""

    path: tuple[int, ...]
    place: int = 0

    def below(self, n: int) -> int:
        if not 1 <= n <= _WIDEST:
            raise InputError(
                f"expected choices among at most {_WIDEST}, got {n}; the exact mode is for mechanisms that "
                "draw small integers: use smaller tables, or epsilon_lower_bound"
            )
        if n == 1:
            return 0
        if self.place == len(self.path):
            raise _Fork(n)
        self.place += 1
        return self.path[self.place - 1]

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.array([self.below(1 << 64) for _ in range(count)], dtype=np.uint64)

    def chunks(self, count: int, width: int) -> UInt:
        return np.array([self.below(1 << width) for _ in range(count)], dtype=np.uint64)

    def integers_below(self, n: int, count: int) -> NDArray[np.int64]:
        return np.array([self.below(n) for _ in range(count)], dtype=np.int64)


def walk(
    mechanism: Callable[[Bits], Hashable], *, runs: int = 200_000, tolerance: Fraction = Fraction(0)
) -> Law:
    """The law of `mechanism(bits)`, likeliest paths first.

    Guarantee: each output's probability lies between its entry and its entry plus `leftover`. The walk ends
    when no path is left, when leftover <= tolerance, or after `runs` runs.
    Requires: the output depends on nothing but the bits. Cost: one run of the mechanism for each choice.
    """
    law: dict[Hashable, Fraction] = {}
    leftover, ticket = Fraction(1), 0
    # (-mass, ticket, path, siblings): the path and the siblings after it, which differ in the last choice.
    waiting: list[tuple[Fraction, int, tuple[int, ...], int]] = [(Fraction(-1), 0, (), 0)]
    while waiting and leftover > tolerance and runs > 0:
        runs -= 1
        mass, place, path, siblings = heapq.heappop(waiting)
        if siblings:
            heapq.heappush(waiting, (mass, place, (*path[:-1], path[-1] + 1), siblings - 1))
        try:
            output = mechanism(ChoiceBits(path))
        except _Fork as fork:
            ticket += 1
            heapq.heappush(waiting, (mass / fork.size, ticket, (*path, 0), fork.size - 1))
        else:
            law[output] = law.get(output, Fraction(0)) - mass
            leftover += mass
    return Law(law, leftover)
