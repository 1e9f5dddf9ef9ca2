"""One game: an analyst asks adaptive questions about a sample, and a referee knows the truth.

A *question* is a function from rows to truth values, one for each row; what is asked for is its probability
in the population. An *answerer* sees the truth values on its sample and says a number. An *analyst* sees the
numbers and nothing else of the sample. A new mechanism is one function (see `Maker`), a new opponent is one
function (see `Analyst`).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.audit.overfitting.chance import Generator
from holdfast.check import integer, probability
from holdfast.errors import BudgetError, InputError
from holdfast.noise.bits import Bits

Rows = NDArray[Any]
Truths = NDArray[np.bool_]
Vector = NDArray[np.float64]
Question = Callable[[Rows], Truths]
"""Rows in, one truth value for each out; or a matrix with one column for each of several questions."""


@dataclass(frozen=True, slots=True)
class Answerer:
    """A mechanism at work on one sample.

    `width` is the half-width that it claims for all its answers at once. `answer(truths, guesses)` gets a
    matrix with one column for each question and returns one number for each, NaN from where it stops.
    `guesses` are the analyst's own estimates from other data, or None.
    """

    name: str
    width: float
    answer: Callable[[Truths, Vector | None], Vector]


Maker = Callable[[int, int, float, Bits | None], Answerer]
"""(rows, queries, beta, bits) -> an answerer for one sample; beta is the allowed chance of any miss."""


class Halted(Exception):
    """The answerer gives no more answers: the game is over."""


class Referee:
    """What the analyst is given as `ask`. It knows the rows and the truth, and keeps the score."""

    def __init__(self, rows: Rows, answerer: Answerer, queries: int) -> None:
        self.rows = len(rows)
        self.queries = queries
        self.asked = 0
        self.errors: list[Vector] = []
        self._rows, self._answerer = rows, answerer

    def __call__(self, question: Question, truth: float, guess: float | None = None) -> float:
        """The answer to one question whose probability in the population is `truth`."""
        return float(
            self.many(lambda rows: question(rows)[:, None], [truth], None if guess is None else [guess])[0]
        )

    def many(self, questions: Question, truths: ArrayLike, guesses: ArrayLike | None = None) -> Vector:
        """The answers to several questions that were chosen together."""
        expected = np.asarray(truths, dtype=np.float64)
        if self.asked + len(expected) > self.queries:
            raise BudgetError(
                f"expected at most {self.queries} questions, got more; play with a larger number of queries",
                requested=self.asked + len(expected),
                remaining=self.queries - self.asked,
            )
        values = questions(self._rows)
        if values.dtype != np.bool_ or values.shape != (self.rows, len(expected)):
            raise InputError(
                f"expected truth values of shape {(self.rows, len(expected))}, got {values.dtype} of shape "
                f"{values.shape}; a question is a predicate of a row"
            )
        answers = self._answerer.answer(
            values, None if guesses is None else np.asarray(guesses, dtype=np.float64)
        )
        given = answers[: int(np.argmax(np.isnan(answers)))] if np.isnan(answers).any() else answers
        self.asked += len(given)
        self.errors.append(np.abs(given - expected[: len(given)]))
        if len(given) < len(answers):
            raise Halted
        return answers

    @property
    def left(self) -> int:
        """How many more questions may be asked."""
        return self.queries - self.asked


Analyst = Callable[[Referee, Generator], None]
"""Asks through the referee until it has done its worst. Uses the rows only inside questions."""

Population = Callable[[int, int, Generator], Rows]
"""(rows, queries, generator) -> independent rows."""


@dataclass(frozen=True, slots=True)
class Attack:
    """An analyst and the population that it asks about."""

    name: str
    population: Population
    analyst: Analyst


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a game ended: the worst and the last error against the population, and the claimed width."""

    worst: float
    last: float
    width: float
    answered: int
    queries: int

    @property
    def missed(self) -> bool:
        """Whether any answer was further from the population than claimed."""
        return self.worst > self.width


def play(
    attack: Attack,
    maker: Maker,
    *,
    rows: int,
    queries: int,
    generator: Generator,
    beta: float = 0.05,
    bits: Bits | None = None,
) -> Outcome:
    """One game on a fresh sample."""
    rows, queries, beta = integer("rows", rows), integer("queries", queries), probability("beta", beta)
    answerer = maker(rows, queries, beta, bits)
    referee = Referee(attack.population(rows, queries, generator), answerer, queries)
    with contextlib.suppress(Halted):
        attack.analyst(referee, generator)
    errors = np.concatenate(referee.errors) if referee.errors else np.empty(0)
    if not errors.size:
        return Outcome(0.0, math.nan, answerer.width, 0, queries)
    return Outcome(float(errors.max()), float(errors[-1]), answerer.width, referee.asked, queries)
