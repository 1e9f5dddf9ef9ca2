"""The exact law of a client, computed by walking every coin and every uniform integer it can draw.

That a coin is exact is the noise room's own test. Here a coin of probability p is a branch of weight p, so
that probabilities with 96-bit denominators can be walked too. Hash words are not walked: they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from unittest import mock

import numpy as np

Law = dict[Hashable, Fraction]
Twin = Callable[[Fraction], Fraction]


class Walker:
    """A `Bits` that follows a path of branches and takes the first branch from there on."""

    def __init__(self, path: list[tuple[int, int]], words: Sequence[int] = ()) -> None:
        self.path, self.mass, self._at, self._words = path, Fraction(1), 0, iter(words)

    def choose(self, weights: Sequence[Fraction]) -> int:
        if self._at == len(self.path):
            self.path.append((0, len(weights)))
        taken, size = self.path[self._at]
        assert size == len(weights), "a client must ask the same questions on the same path"
        self._at += 1
        self.mass *= weights[taken]
        return taken

    def below(self, n: int) -> int:
        return self.choose([Fraction(1, n)] * n)

    def integers_below(self, n: int, count: int) -> np.ndarray:
        return np.array([self.below(n) for _ in range(count)], dtype=np.int64)

    def chunks(self, count: int, width: int) -> np.ndarray:
        dtype = {32: np.uint32, 64: np.uint64}[width]
        return np.array([next(self._words) for _ in range(count)], dtype=dtype)

    def words(self, count: int) -> np.ndarray:
        return self.chunks(count, 64)


@contextmanager
def coins_walked(twin: Twin = lambda p: p) -> Iterator[None]:
    """Coins become branches. A `twin` replaces each coin's probability: a client that is wrong on purpose."""

    def vector(p: Fraction, count: int, bits: Walker) -> np.ndarray:
        p = twin(p)
        return np.array([bits.choose([p, 1 - p]) == 0 for _ in range(count)], dtype=np.bool_)

    with (
        mock.patch("holdfast.local.draw.bernoulli_vector", vector),
        mock.patch("holdfast.mechanisms.response.bernoulli_vector", vector),
    ):
        yield


def law(client: Callable[[Walker], Hashable], *, words: Sequence[int] = (), twin: Twin = lambda p: p) -> Law:
    """The probability of each outcome of `client(bits)`."""
    found: Law = {}
    path: list[tuple[int, int]] = []
    with coins_walked(twin):
        while True:
            bits = Walker(path, words)
            outcome = client(bits)
            if bits.mass:
                found[outcome] = found.get(outcome, Fraction(0)) + bits.mass
            path = bits.path
            while path and path[-1][0] == path[-1][1] - 1:
                path.pop()
            if not path:
                break
            taken, n = path.pop()
            path.append((taken + 1, n))
    assert sum(found.values()) == 1
    return found


def worst_ratio(laws: Sequence[Law]) -> Fraction | float:
    """The largest ratio of probabilities of one report under two values; e^epsilon at most."""
    worst: Fraction | float = Fraction(1)
    for first in laws:
        for second in laws:
            if set(first) != set(second):
                return float("inf")
            worst = max(worst, *(first[report] / second[report] for report in first))
    return worst
