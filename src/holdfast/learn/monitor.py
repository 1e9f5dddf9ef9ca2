"""The monitor: it runs a mechanism on many samples and shows its worst case.

A mechanism that looks fine on average may still overfit now and then. T independent runs, the worst of them
chosen privately, turn a rare failure into a frequent one, and privacy forbids it even then: this is how the
high-probability theorem is proved, and here it is an experiment.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.check import exact_positive, integer, probability
from holdfast.errors import InputError
from holdfast.mechanisms.selection import exponential, selection_loss

Vector = NDArray[np.float64]
Query = Callable[[Any], Vector]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the monitor saw. `gaps` are h(S) - h(P), one for each run; all are known to the experimenter.

    `allowed` bounds the expected gap of the chosen run for every (epsilon, delta)-DP mechanism. `exposed` says
    that the mean of the chosen gaps is above it by more than chance explains: the mechanism breaks its claim.
    """

    gaps: Vector = field(repr=False)
    chosen: Vector = field(repr=False)
    allowed: float
    margin: float
    confidence: float

    @property
    def worst(self) -> float:
        """The mean gap of the runs that the monitor chose, one for each repetition."""
        return float(self.chosen.mean())

    @property
    def exposed(self) -> bool:
        return self.worst - self.margin > self.allowed

    def __str__(self) -> str:
        word = "EXPOSED: it is not as private as claimed" if self.exposed else "as a private one would"
        return (
            f"mean gap {self.gaps.mean():+.4f}, chosen gap {self.worst:+.4f} (allowed {self.allowed:.4f}, "
            f"chance {self.margin:.4f} at {self.confidence:g}): {word}"
        )


class Monitor:
    """Watch a mechanism that claims to be (epsilon, delta)-DP.

    `sample(n)` draws n independent rows; `mean(h)` is h(P), exactly or from rows of its own. The mechanism maps a
    sample to a query h, a function from rows to numbers in [0, 1].
    """

    def __init__(
        self,
        sample: Callable[[int], Any],
        mean: Callable[[Query], float],
        *,
        rows: int,
        runs: int = 32,
        repetitions: int = 20,
        selecting: float = 0.1,
    ) -> None:
        self.rows = integer("rows", rows)
        self.runs = integer("runs", runs)
        self.repetitions = integer("repetitions", repetitions)
        self.selecting = exact_positive("selecting", selecting)
        self._sample, self._mean = sample, mean

    def run(
        self,
        mechanism: Callable[[Any], Query],
        *,
        epsilon: float,
        delta: float = 0.0,
        confidence: float = 0.99,
    ) -> Verdict:
        """T runs on fresh samples; the exponential mechanism chooses one with a large gap; repeated.

        Guarantee: if the mechanism is (epsilon, delta)-DP, then the expected gap of the chosen run is at most
        tanh((epsilon + e)/4) + T delta, where e is the monitor's own epsilon, so a verdict `exposed` is wrong
        with probability at most 1 - confidence (Hoeffding over the repetitions).
        Reference: Bassily et al. 2016, section 3, with the tight constant of docs/theorems.md, Theorem 4: for
        each place of a row, sum the test 1[run t is chosen] (q(x) - q(z))_+ over t.
        """
        eps, failure = (
            float(exact_positive("epsilon", epsilon)),
            0.0 if delta == 0 else probability("delta", delta),
        )
        beta = 1 - probability("confidence", confidence)
        gaps = np.empty((self.repetitions, self.runs))
        chosen = np.empty(self.repetitions)
        for repetition in range(self.repetitions):
            for run in range(self.runs):
                gaps[repetition, run] = self._gap(mechanism)
            # A row moves one run's h(S) by at most 1/n, and h(P) not at all.
            pick = exponential(gaps[repetition], sensitivity=1 / self.rows, epsilon=self.selecting)
            chosen[repetition] = gaps[repetition, pick]
        t = math.tanh((eps + float(self.selecting)) / 4)
        allowed = min(1.0, t + (1 - t) * self.runs * failure)
        margin = math.sqrt(2 * math.log(1 / beta) / self.repetitions)  # gaps lie in [-1, 1]
        return Verdict(gaps.ravel(), chosen, allowed, margin, 1 - beta)

    def selection_loss(self, confidence: float = 0.99) -> float:
        """How far the chosen gap may be below the worst one."""
        return selection_loss(
            self.runs,
            sensitivity=1 / self.rows,
            epsilon=self.selecting,
            beta=1 - probability("confidence", confidence),
            rounded=True,
        )

    def _gap(self, mechanism: Callable[[Any], Query]) -> float:
        rows = self._sample(self.rows)
        query = mechanism(rows)
        values = np.asarray(query(rows), dtype=np.float64)
        if values.shape != (self.rows,):
            raise InputError(f"expected a query with one number for each row, got shape {values.shape}")
        return float(np.clip(values, 0.0, 1.0).mean()) - float(self._mean(query))
