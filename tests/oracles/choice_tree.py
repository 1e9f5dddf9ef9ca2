"""The law of a sampler, computed by walking every choice it can make.

A sampler that draws only through a `Bits` is a tree: each question for a uniform integer below n is a node
with n equally likely branches. `walk` runs the sampler once per leaf and adds up exact probabilities. Paths
rarer than `floor` are not followed; their mass is reported as `leftover`, so that the true probability of an
outcome lies in [found, found + leftover].
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.noise.words import UInt, container


@dataclass(frozen=True)
class Walked:
    law: dict[Hashable, Fraction]
    leftover: Fraction

    def contradicts(self, truth: Mapping[Hashable, float | Fraction], tolerance: float = 1e-14) -> str | None:
        """The first outcome whose probability cannot be the one in `truth`, or None. Missing means 0."""
        for outcome in {*self.law, *truth}:
            found, claimed = self.law.get(outcome, Fraction(0)), truth.get(outcome, 0)
            low, high = float(found), float(found + self.leftover)
            if not low - tolerance <= claimed <= high + tolerance:
                return f"{outcome}: {float(claimed)} is not in [{low}, {high}]"
        return None


def walk(
    sampler: Callable[[Branching], Hashable], *, floor: Fraction | float = Fraction(1, 1 << 20)
) -> Walked:
    """The exact law of `sampler(bits)`, up to the mass of paths that are rarer than `floor`."""
    ends: Counter[tuple[Hashable, int]] = Counter()
    rarest = int(1 / Fraction(floor))
    path: list[tuple[int, int]] = []
    while True:
        bits = Branching(path, rarest)
        try:
            ends[sampler(bits), bits.rarity] += 1
        except _TooRareError:
            ends[_TooRareError, bits.rarity] += 1
        path = bits.path
        while path and path[-1][0] == path[-1][1] - 1:
            path.pop()
        if not path:
            break
        taken, n = path.pop()
        path.append((taken + 1, n))
    law: dict[Hashable, Fraction] = {}
    for (outcome, rarity), times in ends.items():
        law[outcome] = law.get(outcome, Fraction(0)) + Fraction(times, rarity)
    assert sum(law.values()) == 1
    return Walked(law, law.pop(_TooRareError, Fraction(0)))


class _TooRareError(Exception):
    pass


class Branching:
    """A `Bits` that follows a given path and takes the first branch from there on.

    The path has probability 1/rarity, and none is followed beyond `rarest`.
    """

    def __init__(self, path: list[tuple[int, int]], rarest: int) -> None:
        self.path = path
        self.rarity = 1
        self._rarest = rarest
        self._at = 0

    def below(self, n: int) -> int:
        if self._at == len(self.path):
            if self.rarity * n > self._rarest:
                raise _TooRareError
            if n > 1:
                self.path.append((0, n))
        if n == 1:
            return 0
        taken, size = self.path[self._at]
        assert size == n, "a sampler must ask the same questions on the same path"
        self._at += 1
        self.rarity *= n
        return taken

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.array([self.below(1 << 64) for _ in range(count)], dtype=np.uint64)

    def chunks(self, count: int, width: int) -> UInt:
        return np.array([self.below(1 << width) for _ in range(count)], dtype=container(width))

    def integers_below(self, n: int, count: int) -> NDArray[np.int64]:
        return np.array([self.below(n) for _ in range(count)], dtype=np.int64)
