"""The exact law of a mechanism, by walking every choice it can make.

A mechanism that draws only through `bits` is a function of the integers it is given. Replaying it with every
possible sequence of them, each with its probability, yields its law as fractions: no sampling, no error.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class ChoiceBits:
    """Follows a given path; beyond it, takes the first of each choice. `sizes` notes how many there were."""

    path: tuple[int, ...]
    sizes: list[int] = field(default_factory=list)

    def below(self, n: int) -> int:
        if not 1 <= n <= _WIDEST:
            raise InputError(
                f"expected choices among at most {_WIDEST}, got {n}; the exact mode is for mechanisms that "
                "draw small integers: use smaller tables, or epsilon_lower_bound"
            )
        self.sizes.append(n)
        place = len(self.sizes) - 1
        return self.path[place] if place < len(self.path) else 0

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.array([self.below(1 << 64) for _ in range(count)], dtype=np.uint64)

    def chunks(self, count: int, width: int) -> UInt:
        return np.array([self.below(1 << width) for _ in range(count)], dtype=np.uint64)

    def integers_below(self, n: int, count: int) -> NDArray[np.int64]:
        return np.array([self.below(n) for _ in range(count)], dtype=np.int64)


def walk(
    mechanism: Callable[[Bits], Hashable], *, leaves: int = 100_000, tolerance: Fraction = Fraction(0)
) -> Law:
    """The law of `mechanism(bits)`, likeliest paths first.

    Guarantee: each output's probability lies between its entry and its entry plus `leftover`. The walk ends
    when no path is left, when leftover <= tolerance, or after `leaves` runs.
    Requires: the output depends on nothing but the bits. Cost: one run of the mechanism for each path.
    """
    law: dict[Hashable, Fraction] = {}
    # Siblings that were noted but not opened; the third entry is the first sibling of a run of equals.
    waiting: list[tuple[Fraction, int, tuple[int, ...], int]] = []
    path: tuple[int, ...] = ()
    leftover, ticket = Fraction(1), 0
    while True:
        bits = ChoiceBits(path)
        output = mechanism(bits)
        mass = Fraction(1)
        for depth, size in enumerate(bits.sizes):
            mass /= size
            if depth >= len(path) and size > 1:
                ticket += 1
                heapq.heappush(waiting, (-mass, ticket, _taken(path, depth), size))
        law[output] = law.get(output, Fraction(0)) + mass
        leftover -= mass
        leaves -= 1
        if not waiting or leftover <= tolerance or leaves <= 0:
            return Law(law, leftover)
        path = _next(waiting)


def _taken(path: tuple[int, ...], depth: int) -> tuple[int, ...]:
    """The path that was really followed down to `depth`, ending in choice 0 there."""
    return path + (0,) * (depth + 1 - len(path))


def _next(waiting: list[tuple[Fraction, int, tuple[int, ...], int]]) -> tuple[int, ...]:
    """Open the next sibling of the likeliest group; the group stays while it has more."""
    mass, ticket, last, size = waiting[0]
    following = (*last[:-1], last[-1] + 1)
    if following[-1] + 1 < size:
        heapq.heapreplace(waiting, (mass, ticket, following, size))
    else:
        heapq.heappop(waiting)
    return following
