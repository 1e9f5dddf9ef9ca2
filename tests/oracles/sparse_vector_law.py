"""The exact law of a sparse vector's answers, by summing over the noisy threshold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Outcome = tuple[bool, ...]


class Noise(Protocol):
    """The noise of a question: its upper tails."""

    def at_least(self, k: NDArray[np.int64]) -> Floats: ...


class Tabled:
    """A symmetric law with mass proportional to exp(-g(|x|)), summed in floats, and cut where 1e-18 is left."""

    def __init__(self, exponents: Floats) -> None:
        reach = exponents.size - 1
        self.support = np.arange(-reach, reach + 1)
        weights = np.exp(-np.concatenate([exponents[:0:-1], exponents]))
        self.mass = weights / weights.sum()
        self._tail = np.concatenate([np.cumsum(self.mass[::-1])[::-1], [0.0]])
        self._reach = reach

    def at_least(self, k: NDArray[np.int64]) -> Floats:
        return self._tail[np.clip(np.asarray(k) + self._reach, 0, self._tail.size - 1)]


def laplace(scale: Fraction | float) -> Tabled:
    reach = int(45 * scale) + 45
    return Tabled(np.arange(reach + 1) / float(scale))


def gaussian(variance: Fraction | float) -> Tabled:
    reach = int(10 * float(variance) ** 0.5) + 10
    return Tabled(np.arange(reach + 1) ** 2 / (2 * float(variance)))


class Logistic:
    """Noise of the questions alone: its upper tails, continuous."""

    def __init__(self, scale: Fraction | float) -> None:
        self._scale = float(scale)

    def at_least(self, k: NDArray[np.int64]) -> Floats:
        x = np.asarray(k) / self._scale
        small = np.exp(-np.abs(x))
        return np.where(x > 0, small, 1.0) / (1 + small)


def nothing() -> Tabled:
    return Tabled(np.array([0.0, np.inf]))


def law(
    values: Sequence[int], threshold: int, rho: Tabled, nu: Noise, *, hits: int, redraw: bool
) -> dict[Outcome, float]:
    """The probability of every sequence of answers; it ends after the last question or the last hit."""
    return {o: probability(o, values, threshold, rho, nu, redraw=redraw) for o in outcomes(len(values), hits)}


def outcomes(questions: int, hits: int) -> Iterator[Outcome]:
    """All sequences of answers that can be seen."""
    seen = set()
    for answers in product((False, True), repeat=questions):
        cut: list[bool] = []
        for answer in answers:
            cut.append(answer)
            if sum(cut) == hits:
                break
        seen.add(tuple(cut))
    yield from sorted(seen)


def probability(
    outcome: Outcome, values: Sequence[int], threshold: int, rho: Tabled, nu: Noise, *, redraw: bool
) -> float:
    """Pr[outcome]: given the threshold's noise the answers are independent."""
    total, given = 1.0, rho.mass.copy()
    for answer, value in zip(outcome, values, strict=False):
        above = nu.at_least(threshold + rho.support - value)
        given = given * (above if answer else 1 - above)
        if answer and redraw:
            total, given = total * given.sum(), rho.mass.copy()
    return float(total * given.sum())


def worst_log_ratio(first: dict[Outcome, float], second: dict[Outcome, float]) -> float:
    """The largest |ln(p/q)| over outcomes; infinite where one of two is impossible."""
    pairs = [(first[o], second[o]) for o in first if max(first[o], second[o]) > 1e-15]
    return max(abs(np.log(p / q)) if min(p, q) > 0 else np.inf for p, q in pairs)


def excess(first: dict[Outcome, float], second: dict[Outcome, float], epsilon: float) -> float:
    """The least delta for which this pair is (epsilon, delta)-indistinguishable, one way."""
    return sum(max(0.0, first[o] - np.exp(epsilon) * second[o]) for o in first)
