"""The exact law of a mechanism, by walking every choice it can make.

A mechanism that draws only through `bits` is a tree: each question for a uniform integer below n is a node with n
equally likely branches. `walk` runs it once for each leaf and adds up fractions: no sampling, no error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError
from holdfast.noise.words import UInt, container

_Path = tuple[tuple[int, int], ...]
_ROOT: _Path = ()
_WIDEST = 1 << 16
_FIRST, _DEEPER = 1 << 10, 1 << 5
"""How rare a path may be before all likelier ones were walked; and by how much rarer ones are taken then."""


@dataclass(frozen=True, slots=True)
class Law:
    """Probabilities of outputs; `leftover` is the mass of the paths that were not walked."""

    probabilities: dict[Hashable, Fraction]
    leftover: Fraction

    def contradicts(
        self, claimed: Mapping[Hashable, float | Fraction], tolerance: float = 1e-14
    ) -> str | None:
        """The first output whose probability cannot be the claimed one (0 where it is missing), or None."""
        for output in {*self.probabilities, *claimed}:
            found, said = self.probabilities.get(output, Fraction(0)), claimed.get(output, 0)
            low, high = float(found), float(found + self.leftover)
            if not low - tolerance <= said <= high + tolerance:
                return f"{output}: {float(said)} is not in [{low}, {high}]"
        return None


class _TooRare(BaseException):
    """The path became rarer than the walk goes for now."""


class ChoiceBits:
    """Bits that follow a path of choices, (taken, of how many), and take the first branch from its end on.

    The path has probability weight/rarity.
    """

    def __init__(self, path: list[tuple[int, int]], rarest: int) -> None:
        self.path, self.rarity = path, 1
        self.weight: Fraction | int = 1
        self._rarest, self._at = rarest, 0

    def below(self, n: int) -> int:
        if n == 1:
            return 0
        if not 1 <= n <= _WIDEST:
            raise InputError(
                f"expected choices among at most {_WIDEST}, got {n}; the exact mode is for mechanisms that "
                "draw small integers: use smaller tables, or epsilon_lower_bound"
            )
        if self.rarity * n > self._rarest:
            raise _TooRare
        self.rarity *= n
        return self._taken(n)

    def choose(self, chances: Sequence[Fraction]) -> int:
        """A branch for each of these chances, which sum to 1: a whole sampler whose law is known as one node.

        Requires: that there are finitely many on each path; they do not make it rarer.
        """
        taken = self._taken(len(chances))
        self.weight *= chances[taken]
        return taken

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.array([self.below(1 << 64) for _ in range(count)], dtype=np.uint64)

    def chunks(self, count: int, width: int) -> UInt:
        return np.array([self.below(1 << width) for _ in range(count)], dtype=container(width))

    def integers_below(self, n: int, count: int) -> NDArray[np.int64]:
        return np.array([self.below(n) for _ in range(count)], dtype=np.int64)

    def _taken(self, n: int) -> int:
        if self._at == len(self.path):
            self.path.append((0, n))
        taken, size = self.path[self._at]
        if size != n:
            raise InputError(
                "expected the same questions on the same path, got others; let all randomness come through bits"
            )
        self._at += 1
        return taken


def walk(
    mechanism: Callable[[ChoiceBits], Hashable],
    *,
    runs: int = 10_000_000,
    tolerance: Fraction = Fraction(0),
    floor: Fraction | float = 0,
) -> Law:
    """The law of `mechanism(bits)`, likely paths before rare ones.

    Guarantee: each output's probability lies between its entry and its entry plus `leftover`. The walk ends when
    no path is left, or only such as are rarer than `floor`; when leftover <= tolerance; or after `runs` runs.
    Requires: the output depends on nothing but the bits. Cost: one run of the mechanism for each path.
    """
    walked = _Walk(mechanism, runs)
    rarest, starts = int(1 / Fraction(floor)) if floor else _FIRST, [_ROOT]
    while True:
        starts = [path for start in starts for path in walked.from_start(start, rarest)]
        law = walked.law()
        if floor or not (starts and walked.runs and law.leftover > tolerance):
            return law
        rarest *= _DEEPER


class _Walk:
    """The ends of the paths that were walked so far, and how many runs are left."""

    def __init__(self, mechanism: Callable[[ChoiceBits], Hashable], runs: int) -> None:
        self.mechanism, self.runs = mechanism, runs
        self._ends: Counter[tuple[Hashable, int, Fraction | int]] = Counter()

    def from_start(self, start: _Path, rarest: int) -> Iterator[_Path]:
        """Walk all that begins with `start`; the paths that become too rare."""
        path = list(start)
        while self.runs:
            self.runs -= 1
            bits = ChoiceBits(path, rarest)
            try:
                self._ends[self.mechanism(bits), bits.rarity, bits.weight] += 1
            except _TooRare:
                yield tuple(path)
            while len(path) > len(start) and path[-1][0] == path[-1][1] - 1:
                path.pop()
            if len(path) == len(start):
                return
            taken, n = path.pop()
            path.append((taken + 1, n))

    def law(self) -> Law:
        found: dict[Hashable, Fraction] = {}
        for (output, rarity, weight), times in self._ends.items():
            if weight:
                found[output] = found.get(output, Fraction(0)) + Fraction(times, rarity) * weight
        return Law(found, 1 - sum(found.values(), Fraction(0)))
