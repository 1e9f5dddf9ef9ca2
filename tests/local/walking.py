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
from oracles.choice_tree import ChoiceBits, walk

Law = dict[Hashable, Fraction]
Twin = Callable[[Fraction], Fraction]


class GivenWords:
    """The bits of a walk, with hash words that are given."""

    def __init__(self, bits: ChoiceBits, words: Sequence[int]) -> None:
        self._words = iter(words)
        self.choose, self.below, self.integers_below = bits.choose, bits.below, bits.integers_below

    def chunks(self, count: int, width: int) -> np.ndarray:
        dtype = {32: np.uint32, 64: np.uint64}[width]
        return np.array([next(self._words) for _ in range(count)], dtype=dtype)

    def words(self, count: int) -> np.ndarray:
        return self.chunks(count, 64)


@contextmanager
def coins_walked(twin: Twin = lambda p: p) -> Iterator[None]:
    """Coins become branches. A `twin` replaces each coin's probability: a client that is wrong on purpose."""

    def vector(p: Fraction, count: int, bits: GivenWords) -> np.ndarray:
        p = twin(p)
        return np.array([bits.choose([p, 1 - p]) == 0 for _ in range(count)], dtype=np.bool_)

    with (
        mock.patch("holdfast.local.draw.bernoulli_vector", vector),
        mock.patch("holdfast.mechanisms.response.bernoulli_vector", vector),
    ):
        yield


def law(
    client: Callable[[GivenWords], Hashable], *, words: Sequence[int] = (), twin: Twin = lambda p: p
) -> Law:
    """The probability of each outcome of `client(bits)`."""
    with coins_walked(twin):
        walked = walk(lambda bits: client(GivenWords(bits, words)))
    assert walked.leftover == 0
    return walked.probabilities


def worst_ratio(laws: Sequence[Law]) -> Fraction | float:
    """The largest ratio of probabilities of one report under two values; e^epsilon at most."""
    worst: Fraction | float = Fraction(1)
    for first in laws:
        for second in laws:
            if set(first) != set(second):
                return float("inf")
            worst = max(worst, *(first[report] / second[report] for report in first))
    return worst
