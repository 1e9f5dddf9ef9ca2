"""The sparse vector: questions that stay below a threshold are free."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, Self

from holdfast.check import integer, probability
from holdfast.errors import BudgetError, InputError, MechanismError
from holdfast.mechanisms import sparse_vector_terms as declared
from holdfast.mechanisms.accuracy import gaussian_reach, laplace_reach, logistic_reach
from holdfast.mechanisms.sparse_vector_terms import Number, Terms, Version, is_int, is_number
from holdfast.mechanisms.sparse_vector_terms import units as in_units
from holdfast.noise.bits import Bits
from holdfast.noise.gaussian import gaussian as draw_gaussian
from holdfast.noise.laplace import laplace as draw_laplace
from holdfast.noise.logistic import exceeds
from holdfast.privacy import events
from holdfast.process import Home

_FAR = 1 << 200
"""What a value that is no number stands for, in grid steps: far below (NaN, -inf) or far above (inf)."""


class SparseVector:
    """Tells of each value whether it is about above a threshold, until `hits` of them were.

    Guarantee: the whole sequence of answers, to adaptively chosen questions, costs `event` and no more, if
    each question's value differs by at most `sensitivity` between neighbours. `monotone` promises that,
    between two given neighbours, all questions move the same way; false for counts where neighbours
    replace a row.
    Requires: `epsilon` (with `delta` for an approximate guarantee) or `rho`. Versions: "best" has the least
    noise; "logistic" is the same with logistic noise on the questions, whose answers below tell nothing of the
    population (docs/theorems.md, Theorem 32); "lecture" is the one usually taught, pure or approximate; "gaussian" has
    Gaussian noise, and needs delta and the most `questions` that will be asked. With epsilon alone the threshold may
    have a `threshold_share` of it other than the best for privacy. Values must be integers if
    threshold and sensitivity are ints; otherwise they are rounded half up to multiples of sensitivity/2^20, exactly,
    so that the sensitivity stays 2^20 steps.
    Reference: `allocation`, which has the theorems.
    Cost: `event`, known before the first question; charge it then. About 2 microseconds a question.

    The noisy threshold is secret. `to_json` holds it, so that a restart does not draw it again; store that
    where the data are stored, before the answer that changed it leaves. A forked child would test other values
    against the same threshold and have the same hits again, so there it refuses (MechanismError).
    """

    __slots__ = (
        "_asked",
        "_bits",
        "_home",
        "_left",
        "_lock",
        "_noisy_threshold",
        "_on_integers",
        "_question_noise",
        "_step",
        "allocation",
        "terms",
    )

    def __init__(
        self,
        threshold: Number,
        *,
        sensitivity: Number = 1,
        epsilon: Number | None = None,
        rho: Number | None = None,
        hits: int,
        delta: Number = 0.0,
        monotone: bool = False,
        numeric: bool = False,
        version: Version = "best",
        questions: int | None = None,
        threshold_share: Number | None = None,
        bits: Bits | None = None,
    ) -> None:
        self._open(
            declared.terms(
                threshold=threshold,
                sensitivity=sensitivity,
                epsilon=epsilon,
                rho=rho,
                hits=hits,
                delta=delta,
                monotone=monotone,
                numeric=numeric,
                version=version,
                questions=questions,
                threshold_share=threshold_share,
            ),
            bits,
        )
        self._left = self.terms.hits
        self._asked = 0
        self._draw_threshold()

    def _open(self, terms: Terms, bits: Bits | None) -> None:
        """Everything that follows from the terms; nothing here is random."""
        self.terms = terms
        self.allocation = terms.allocate()
        self._bits = bits
        self._lock = threading.Lock()
        self._home = Home("a sparse vector", "ask there, or open another here", MechanismError)
        self._on_integers = terms.integers
        self._step = terms.step
        self._question_noise = self._noise(self.allocation.question)

    @property
    def event(self) -> events.Event:
        """What the whole run costs, however many questions are asked."""
        return self.allocation.event

    @property
    def halted(self) -> bool:
        """Whether no further question is answered."""
        return self._left == 0 or self._asked == self.allocation.questions

    @property
    def hits_left(self) -> int:
        """How many more values may be reported as above."""
        return self._left

    @property
    def asked(self) -> int:
        """How many questions were answered."""
        return self._asked

    def above(self, value: Number) -> bool:
        """Whether the value, with noise, reaches the noisy threshold. Cost: nothing beyond `event`."""
        self._home.check()
        units = value if type(value) is int and self._on_integers else self._units(value)
        with self._lock:
            return self._test(units)

    def answer(self, value: Number) -> float | None:
        """A noisy value if it is above, None if not; for numeric=True. An int where values are integers."""
        if self.allocation.value is None:
            raise InputError("expected a sparse vector with numeric=True, got one without; use above()")
        self._home.check()
        units = self._units(value)
        with self._lock:
            if not self._test(units):
                return None
        noisy = units + self._noise(self.allocation.value)()
        return noisy if self._on_integers else float(noisy * self._step)

    def half_width(self, questions: int, beta: float) -> float:
        """With probability 1 - beta, every answer to so many questions is right but for this much.

        Guarantee: "above" means value >= threshold - result, "not above" means value <= threshold + result.
        Reference: Dwork and Roth 2014, Theorem 3.24, with the tail of each noise instead of its leading term.
        """
        noise = self.allocation.noise
        reach = gaussian_reach if noise == "gaussian" else laplace_reach
        thresholds = self.terms.hits if self.allocation.redraw else 1
        k, beta = integer("questions", questions), probability("beta", beta)
        total = reach(self.allocation.threshold, beta / (2 * thresholds), False)
        question = self.allocation.question
        if noise == "logistic":
            total += logistic_reach(question, beta / (2 * k))
        else:
            total += reach(question, beta / (2 * k), False)
        # Off the integers, rounding moves the value and the threshold by half a step each.
        return total if self._on_integers else float((total + 1) * self._step)

    def to_json(self) -> dict[str, Any]:
        """The terms and the secret state: keep it with the data."""
        self._home.check()
        with self._lock:
            state = {"noisy_threshold": self._noisy_threshold, "left": self._left, "asked": self._asked}
        return {"terms": self.terms.to_json(), "secret": state}

    @classmethod
    def from_json(cls, saved: dict[str, Any], bits: Bits | None = None) -> Self:
        """The sparse vector as it was, with the same noisy threshold. Draws nothing."""
        try:
            self = cls.__new__(cls)
            self._open(declared.from_json(saved["terms"]), bits)
            secret = saved["secret"]
            self._noisy_threshold = integer("noisy_threshold", secret["noisy_threshold"], least=-_FAR)
            self._left = integer("left", secret["left"], 0, most=self.terms.hits)
            self._asked = integer("asked", secret["asked"], 0, most=self.allocation.questions)
        except (KeyError, TypeError, AttributeError, ValueError) as problem:
            raise InputError("expected what SparseVector.to_json wrote, got something else") from problem
        return self

    def _test(self, units: int) -> bool:
        if self._left == 0 or self._asked == self.allocation.questions:
            raise BudgetError(
                f"expected a question before the halt, got one after {self._asked} questions and "
                f"{self.terms.hits - self._left} hits; open a new sparse vector"
            )
        self._asked += 1
        if not self._reaches(units):
            return False
        self._left -= 1
        if self.allocation.redraw and self._left:
            self._draw_threshold()
        return True

    def _reaches(self, units: int) -> bool:
        if self.allocation.noise == "logistic":
            return exceeds(units - self._noisy_threshold, self.allocation.question, self._bits)
        return units + self._question_noise() >= self._noisy_threshold

    def _draw_threshold(self) -> None:
        noise = self._noise(self.allocation.threshold)()
        self._noisy_threshold = in_units(self.terms.threshold, self._step) + noise

    def _noise(self, parameter: Fraction) -> Callable[[], int]:
        draw = draw_gaussian if self.allocation.noise == "gaussian" else draw_laplace
        return partial(draw, parameter, self._bits)

    def _units(self, value: Number) -> int:
        if self._on_integers:
            if not is_int(value):
                raise InputError(
                    f"expected an integer for the value, got {type(value).__name__}; for other values give the "
                    "threshold or the sensitivity as a float or a Fraction"
                )
            return int(value)
        if not is_number(value):
            raise InputError(f"expected a number for the value, got {type(value).__name__}; convert it")
        try:
            return in_units(value, self._step)
        except (OverflowError, ValueError):
            return _FAR if value > 0 else -_FAR
