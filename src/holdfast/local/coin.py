"""Warner's coin."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.check import refusal
from holdfast.local.oracle_estimate import Estimate
from holdfast.local.parameter import read_reports
from holdfast.local.support import Support
from holdfast.mechanisms.response import randomized_response, response_epsilon, response_truth
from holdfast.noise.bits import Bits


@dataclass(frozen=True, slots=True, init=False)
class RandomizedResponse:
    """Each user tells the truth with probability `truth`, else the opposite.

    Guarantee: ln(truth/(1-truth))-local differential privacy for one bit, exactly. Truth 0.55 gives ln(11/9).
    Requires: 1/2 < truth < 1. A float is read as it is written, so 0.55 is 11/20.
    Reference: Warner 1965; Kasiviswanathan, Lee, Nissim, Raskhodnikova, Smith 2008.
    Cost: standard deviation sqrt(truth(1-truth)/n)/(2 truth - 1); 0.55 gives sqrt(24.75/n).
    """

    truth: Fraction

    def __init__(self, truth: float | Fraction) -> None:
        object.__setattr__(self, "truth", response_truth(truth))
        if self.truth == Fraction(1, 2):
            raise refusal("more than 1/2", "truth", truth, "a fair coin tells nothing, give 0.55 or more")

    @property
    def epsilon(self) -> float:
        """ln(truth/(1-truth)), rounded up."""
        return response_epsilon(self.truth)

    @property
    def support(self) -> Support:
        """A report of 1 supports "yes"."""
        return Support(self.truth, 1 - self.truth)

    def randomize(self, values: ArrayLike, bits: Bits | None = None) -> NDArray[np.uint8]:
        """One bit per user, private. Truth values or integers; any integer but 0 counts as yes."""
        told = randomized_response(np.atleast_1d(np.asarray(values)), truth=self.truth, source=bits)
        return told.astype(np.uint8)

    def estimate(self, reports: ArrayLike, *, confidence: float = 0.95) -> Estimate:
        """The fraction of yes: (X - (1-truth))/(2 truth - 1) for a mean report X; 10(X - 0.45) at 0.55."""
        told = np.asarray(reports)
        if (
            told.dtype.kind in "iub"
            and told.ndim == 1
            and told.size
            and int(told.max()) <= 1
            and int(told.min()) >= 0
        ):
            told = told.astype(np.uint8)
        told = read_reports(told, np.dtype(np.uint8))
        yes = np.array([np.count_nonzero(told)])
        return self.support.estimate(yes, told.size, epsilon=self.epsilon, confidence=confidence, items=None)
