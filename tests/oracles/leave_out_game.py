"""The best adaptive analyst against a few rows, by enumeration: every sample, every answer, every next question.

Rows take the values 0, 1, 2; a question is a function of the value into {0, 1}; an answer is the number of rows that
say yes plus discrete Gaussian noise. After each answer the analyst takes the question that is worst for us.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MENU = np.array(list(itertools.product((0, 1), repeat=3))[1:-1])


class Game:
    """All samples of `rows` rows, without their order, with their chances, and what each question says of them."""

    @staticmethod
    def noise(s: float) -> Floats:
        """The law of the noise of answers."""
        return discrete_gaussian(s)

    def __init__(self, rows: int, population: Sequence[float]) -> None:
        self.rows = rows
        # The order of the rows is seen by nobody: one sample for each multiset, with the chance of all its orders.
        samples = np.array(list(itertools.combinations_with_replacement(range(3), rows)))
        orders = [
            math.factorial(rows) // math.prod(math.factorial(int(count)) for count in np.bincount(sample))
            for sample in samples
        ]
        chances = np.asarray(population)
        self.chance: Floats = np.array(orders) * chances[samples].prod(axis=1)
        self.counts = np.array([question[samples].sum(axis=1) for question in MENU])
        self.true: Floats = MENU @ chances

    def gap(self, question: int) -> Floats:
        """q(S) - q(P) for every sample."""
        return self.counts[question] / self.rows - self.true[question]

    def variance(self, question: int) -> Floats:
        share = self.counts[question] / self.rows
        return share * (1 - share)

    def value(
        self, noises: Sequence[float], step: Callable[[int, float], Floats], end: Callable[[Floats], float]
    ) -> float:
        """What the best analyst makes of it: sum over answers of the greatest `end` of the weights of samples.

        `step(question, sigma)` is what one answer multiplies the weight of each sample by, beside its chance.
        """
        return self._play(self.chance, list(noises), step, end)

    def _play(
        self,
        weight: Floats,
        noises: list[float],
        step: Callable[[int, float], Floats],
        end: Callable[[Floats], float],
    ) -> float:
        if not noises:
            return end(weight)
        s, later = noises[0], noises[1:]
        found = []
        for question in range(len(MENU)):
            paid = weight * step(question, s / self.rows)
            found.append(sum(self._play(paid * law, later, step, end) for law in self._laws(question, s)))
        return max(found)

    def _laws(self, question: int, s: float) -> list[Floats]:
        """For each possible answer, its chance under every sample."""
        noise = self.noise(s)
        reach = (len(noise) - 1) // 2
        counts = self.counts[question]
        found = []
        for answer in range(-reach, self.rows + reach + 1):
            place = answer - counts + reach
            inside = (place >= 0) & (place < len(noise))
            found.append(np.where(inside, noise[np.clip(place, 0, len(noise) - 1)], 0.0))
        return found


def discrete_gaussian(s: float) -> Floats:
    """The law on -r..r, r so large that the rest is below 1e-12."""
    reach = math.ceil(7.5 * s) + 1
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * s * s))
    law: Floats = weights / weights.sum()
    return law
