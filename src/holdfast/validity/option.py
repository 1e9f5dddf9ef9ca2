"""One way to answer, with all its numbers: what sessions and holdouts are made from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from holdfast.check import probability, whole
from holdfast.privacy import event, rule
from holdfast.privacy.rounding import miss, up

EPOCHS = 16
"""In so many epochs noise falls where nobody says otherwise: within 2.3% of the finest schedule's width."""


@dataclass(frozen=True, slots=True)
class Request:
    """What shall be certified, in public numbers.

    `within` is the half-width of each answer; None asks for the least. Row values are multiples of 1/grid, and noise
    is on their sum in such steps. `failures` is how many guesses may fail (Guess-and-Check); None leaves it open. Noise
    falls in `epochs`.
    """

    rows: int
    queries: int
    confidence: float
    within: float | None = None
    grid: int = 1
    flip: float = 0.25
    failures: int | None = None
    epochs: int = EPOCHS

    def checked(self) -> Request:
        """The same numbers, as ints and floats; InputError before anything is computed."""
        n, k = whole("rows", self.rows), whole("queries", self.queries)
        confidence = probability("confidence", self.confidence)
        within = None if self.within is None else probability("within", self.within)
        failures = None if self.failures is None else whole("failures", self.failures, 0)
        flip = probability("flip", self.flip, 0.5)
        grid, epochs = whole("grid", self.grid), whole("epochs", self.epochs)
        return Request(n, k, confidence, within, grid, flip, failures, epochs)

    @property
    def beta(self) -> float:
        """The chance that some answer misses."""
        return miss(self.confidence)


@dataclass(frozen=True, slots=True)
class Epoch:
    """So many answers in a row with one noise. A theorem for one noise has one epoch."""

    answers: int
    noise: Fraction
    """The variance in squared steps of the grid, or the number of votes."""
    left_out: int = 0
    """How many rows the leave-out theorem leaves out for these answers; 0 for theorems that leave out none."""


@dataclass(frozen=True, slots=True)
class Option:
    """One mechanism with its best theorem, for one request."""

    request: Request
    name: str
    """The bound, as `validity.width` knows it, or the mode of a holdout."""
    mechanism: str
    theorem: str
    narrowest: float
    """The least half-width that any noise gives; inf when nothing is certified."""
    width: float
    """The half-width at the noise below."""
    population: float
    """The part of the width for what adaptive questions can do; the rest is noise and sampling."""
    rows_per_answer: int
    epochs: tuple[Epoch, ...] = ()
    """The noise of every place, in order; empty where answers are exact, or where no noise certifies anything."""
    cells: int = 0
    failures: int = 0
    """Guess-and-Check: how many guesses may fail before the width can no longer be certified."""
    most_queries: int | None = None
    """How many queries the requested half-width allows on these rows; None unless `planner.needs` found it."""
    least_rows: int | None = None
    """How many rows the whole request would need; the same, and None beyond 1e15."""

    @property
    def fits(self) -> bool:
        """Whether it keeps the half-width that was asked for, or any below 1."""
        return self.width < 1.0 if self.request.within is None else self.width <= self.request.within

    @property
    def private(self) -> bool:
        """Whether its answers are differentially private."""
        return self.mechanism in ("gaussian", "votes", "sparse vector")

    @property
    def odds(self) -> bool:
        """Whether each answer has an interval of its own; `width` is then half of it where it is longest."""
        return self.theorem in ("V", "W")

    @property
    def standard_deviation(self) -> float | None:
        """Gaussian noise on the first answer's sum, in steps of the grid; on the mean it is this over grid * rows."""
        return math.sqrt(self.epochs[0].noise) if self.mechanism == "gaussian" and self.epochs else None

    @property
    def votes(self) -> int | None:
        """How many votes the first answer takes."""
        return int(self.epochs[0].noise) if self.mechanism == "votes" and self.epochs else None

    def told(self, epoch: Epoch) -> event.Event:
        """What one answer of an epoch tells, for the accountants."""
        if self.mechanism == "votes":
            return event.Votes(self.request.rows, int(epoch.noise), self.request.flip)
        return event.Gaussian(self.request.grid**2, epoch.noise)

    @property
    def told_in_all(self) -> event.Event:
        """What all answers together tell."""
        return event.Sequence(tuple(event.Repeat(self.told(epoch), epoch.answers) for epoch in self.epochs))

    @property
    def rho(self) -> float | None:
        """The zCDP loss of all answers together; None where answers are not private."""
        return rule.zcdp(self.told_in_all).rho if self.epochs else None

    @property
    def mu(self) -> float | None:
        """The exact Gaussian loss of all answers together (mu-GDP), rounded up; None for other mechanisms."""
        if self.mechanism != "gaussian" or not self.epochs:
            return None
        return up(math.sqrt(rule.gdp(self.told_in_all).mu_squared))

    @property
    def rows_needed(self) -> str:
        """`least_rows` in words."""
        return "more than 1e15" if self.least_rows is None else f"{self.least_rows:,}"

    def __str__(self) -> str:
        noise, last = "exact answers", self.epochs[-1].noise if len(self.epochs) > 1 else None
        if self.standard_deviation is not None:
            falling = "" if last is None else f", falling to {math.sqrt(last):,.1f} counts"
            noise = (
                f"noise of standard deviation {self.standard_deviation:,.1f} counts on each answer{falling}"
            )
        elif self.votes is not None:
            rising = "" if last is None else f" to {int(last):,}"
            noise = (
                f"{self.votes:,}{rising} votes an answer, each flipped with probability {self.request.flip:g}"
            )
        privacy = "not private" if self.rho is None else f"rho = {self.rho:.4g} for all of them"
        return f"{self.name} ({self.theorem}): {noise}, {self.rows_per_answer:,} rows read each, {privacy}"
