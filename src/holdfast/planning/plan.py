"""What will be done to answer a question: complete before any row is touched."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from holdfast.ledger import Charge
from holdfast.planning.promise import Promise
from holdfast.privacy.event import Event, to_json
from holdfast.privacy.filter import UNITS
from holdfast.privacy.rounding import sure
from holdfast.query.extremes import EXTREMES, SAID
from holdfast.query.grouping import wide_bins
from holdfast.query.running import FINENESS
from holdfast.query.statistic import Statistic
from holdfast.validity.leave_out import planned_place, planned_sizes, recorded_grid

DISAGREEMENT_NOISE = 4
"""How many times the variance of a difference that of the disagreement is, which is told before it.

At least 1, so that it costs no privacy: a row moves the two sums by (2, 0) or by (1, 1), and the first is worse."""

PUBLIC = "public"
"""What is done for a question that needs no row: nothing."""


STATISTIC = "statistic"
"""The kind of an entry whose answer is an `Answer`."""

_OLDER = "The part for the population is by Theorem 20: the leave-out theorem does not cover it, or was ended here."

SELECTED = ("exponential", "smoothed")
"""The mechanisms of a quantile: three selections by the distance to a rank, or by a smooth form of it, which the
leave-out theorem covers."""


ADDED = ("gaussian", "laplace", "logistic")
"""The mechanisms that add noise to exact totals."""

ADDED_UP = ("sum", "mean")
"""The statistics whose noise is told in the scale of the column."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A mechanism with its numbers: enough, with the question and the session's terms, to answer.

    `noise` is the variance (gaussian), the scale (laplace, logistic, subsampled-laplace), the number of votes (votes),
    or the epsilon of each selection (exponential, smoothed). `rows` is how many rows are read. With `per_span` the
    noise is meant for contributions in [0,1] and grows with a measurement's span, a variance with its square. With
    `expect` a difference is told after the disagreement, which has `DISAGREEMENT_NOISE` times its variance; `expect` is
    the guess of it.
    """

    mechanism: str
    noise: Fraction
    rows: int
    flip: Fraction | None = None
    per_span: bool = False
    expect: Fraction | None = None

    def stretched(self, times: Fraction | int) -> Fraction:
        """The noise for numbers that are so many times as large."""
        return (
            self.noise if times == 1 else self.noise * (times**2 if self.mechanism == "gaussian" else times)
        )

    def of_span(self, span: int) -> Fraction:
        """The noise of a measurement's total."""
        return self.stretched(span) if self.per_span else self.noise


@dataclass(frozen=True, slots=True)
class Widths:
    """Half-widths. `totals` has one for each measurement, in its own units; the others are on the scale of
    the statistic: what noise, sampling and adaptivity contribute to the interval."""

    totals: tuple[float, ...]
    noise: float
    sampling: float
    population: float
    shares: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3)
    """How the half-width divides into these three, where no half-width is known before the rows are read."""

    @property
    def whole(self) -> float:
        return self.noise + self.sampling + self.population

    @property
    def divided(self) -> tuple[float, float, float]:
        """The same three as parts of 1."""
        if not 0 < self.whole < math.inf:
            return self.shares
        return self.noise / self.whole, self.sampling / self.whole, self.population / self.whole


@dataclass(frozen=True, slots=True)
class Alternative:
    """What another mechanism would have cost and read for the same width."""

    mechanism: str
    rho: float
    rows: int


@dataclass(frozen=True, repr=False)
class Plan:
    """Couples what must agree: the mechanism, its noise, what it costs, and how wide the answer will be.

    It depends on the text, the schema, the number of rows and the ledger, and on nothing else.
    """

    statistic: Statistic
    recipe: Recipe
    promise: Promise
    event: Event
    charge: Charge
    rho: float
    epsilon: float | None
    widths: Widths
    rows: int
    confidence: float
    scope: str = ""
    """What the widths are measured in, and when they hold, in plain words."""
    within: float | None = None
    """The half-width that was asked for; None if none was, and for a quantile, whose width is in rank."""
    qualifying: int | None = None
    """For a mean, how many rows must qualify (in a group) for `width`; None where that is not certain for any
    number of them, and for other statistics, whose width holds whatever qualifies."""
    alternatives: tuple[Alternative, ...] = ()
    advice: str = ""
    """What would be better, in plain words."""
    on_the_rows: tuple[float, ...] | None = None
    """Of an answer for the population, how far each of its totals may be from that of the rows themselves, in its
    units; None for the table, and for quantiles."""
    currency: str = "pure"
    """What the session counts its budget in."""
    noise_unit: float = 1.0
    """For a sum or a mean, what one unit of the recipe's noise is worth in the column's own scale."""
    ends_theorem: bool = False
    """Whether no theorem bounds what it tells, so that later intervals on the table are wider; `advice` says so."""

    @property
    def mechanism(self) -> str:
        return self.recipe.mechanism

    @property
    def noise_parameter(self) -> Fraction:
        """See `Recipe.noise`."""
        return self.recipe.noise

    @property
    def rows_read(self) -> int:
        return self.recipe.rows

    @property
    def noise(self) -> float:
        """The part of the half-width that privacy costs."""
        return self.widths.noise

    @property
    def sampling(self) -> float:
        """The part for rows that were not read."""
        return self.widths.sampling

    @property
    def population(self) -> float:
        """The part for adaptively chosen questions, between the table and the population."""
        return self.widths.population

    @property
    def width(self) -> float:
        """The half-width of the interval, in the statistic's own scale."""
        return self.widths.whole

    @property
    def target(self) -> str:
        """What the interval covers: "table" or "population"."""
        return self.promise.target

    @property
    def cost(self) -> float:
        """What it costs, in the session's currency."""
        return self.charge.session / UNITS

    def about(self, statistic: Statistic) -> Plan:
        """The same plan for a question that differs only in which rows it chooses."""
        # None of these names the question; they are worked out once for all, and kept with the plan.
        _ = self.event_text, self._reasons, self._numbers
        other = object.__new__(Plan)
        vars(other).update(vars(self), statistic=statistic, question=str(statistic))
        return other

    @cached_property
    def question(self) -> str:
        """What is asked, in its canonical words."""
        return str(self.statistic)

    @cached_property
    def event_text(self) -> str:
        return json.dumps(to_json(self.event))

    @property
    def text(self) -> str:
        """What the ledger keeps: enough to compute the answer once more under the same charge."""
        return f'{{"kind": "{STATISTIC}", "question": {json.dumps(self.question)}, {self._numbers[1:]}'

    @cached_property
    def _numbers(self) -> str:
        """The recipe, the promise and the width, as a JSON object."""
        return json.dumps(
            {
                "recipe": [
                    self.recipe.mechanism,
                    str(self.recipe.noise),
                    self.recipe.rows,
                    None if self.recipe.flip is None else str(self.recipe.flip),
                    self.recipe.per_span,
                    None if self.recipe.expect is None else str(self.recipe.expect),
                ],
                "promise": [
                    self.promise.target,
                    self.promise.allowance,
                    self.promise.population,
                    self.promise.slack,
                    min(self.promise.most_rho, 1e300),
                    self._left_out,
                    self.promise.rare,
                    self.promise.information,
                ],
                "within": self.within,
                "width": min(self.width, 1e300),
            }
        )

    @property
    def _left_out(self) -> list[int] | None:
        """The numbers of rows that a planned place leaves out; none for the mixture over the recorded grid."""
        left_out = self.promise.left_out
        if left_out is None:
            return None
        return list(planned_sizes(self.rows, left_out))

    @property
    def explanation(self) -> str:
        """What was chosen, and why, in plain words."""
        return f"{self.question}\n{self._reasons}"

    @cached_property
    def _reasons(self) -> str:
        if self.mechanism == PUBLIC:
            return f"That there are {self.rows:,} rows is public, so the answer is known: nothing is read or charged."
        pure = self.currency == "pure" and self.epsilon is not None
        cost = f"epsilon {self.epsilon:.4g}" if pure else f"rho {self.rho:.4g}"
        known = math.isfinite(self.width)
        parts = (self.noise, self.sampling, self.population) if known else self.widths.divided
        near = (
            f"is within {self.width:.4g} of the {self.target} value{', ' + self.scope if self.scope else ''},"
        )
        if not known:
            near = f"has an interval for the {self.target} whose width depends on the rows,"
        lines = [
            f"reads {self._reading()} and adds {self._noise()}.",
            f"It costs {cost} and {near}",
            f"together with all other answers of the session, with confidence {sure(self.confidence)}.",
            f"Of the half-width, noise takes {parts[0]:.3g}, sampling {parts[1]:.3g}, population {parts[2]:.3g}"
            f"{'' if known else ' parts of 1'}.",
        ]
        lines += [
            f"{other.mechanism} would have cost rho {other.rho:.4g} and read {other.rows:,} rows."
            for other in self.alternatives
        ]
        if self.promise.population:
            lines.append(_OLDER)
        if self.statistic.rank in EXTREMES.values():
            lines.append(SAID)
        wide = wide_bins(self.statistic.by) or wide_bins(self.statistic.cells)
        lines += [each for each in (wide, self.advice) if each]
        return "\n".join(lines)

    def explain(self) -> str:
        """What was chosen, and why, in plain words."""
        return self.explanation

    def __str__(self) -> str:
        return self.explanation

    __repr__ = __str__

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """In the terminal of IPython."""
        printer.text(str(self))

    def _reading(self) -> str:
        if self.rows_read >= self.rows:
            return f"all {self.rows:,} rows"
        return f"{self.rows_read:,} of {self.rows:,} rows"

    def _noise(self) -> str:
        size = float(self.recipe.noise)
        if self.statistic.running or self.statistic.ranks:
            size = size**0.5 / FINENESS
            return f"discrete Gaussian noise of standard deviation {size:.4g} to a square root of the running sums"
        scale = (size**0.5 if self.mechanism == "gaussian" else size) * self.noise_unit
        large = f"{scale:,.0f}" if scale >= 1000 else f"{scale:.4g}"
        to = " to the sum" if self.statistic.kind in ADDED_UP else ""
        return {
            "gaussian": f"discrete Gaussian noise of standard deviation {large}{to}",
            "laplace": f"discrete Laplace noise of scale {large}{to}",
            "logistic": f"discrete logistic noise of scale {large}{to}",
            "subsampled-laplace": f"discrete Laplace noise of scale {large} to the sample",
            "votes": f"a coin to each vote, which flips it with probability {self.recipe.flip}",
            "exponential": f"three private selections of epsilon {size:.4g} each",
            "smoothed": f"three private selections, smoothed, of epsilon {size:.4g} each",
        }[self.mechanism]


def recipe_from_text(text: str, rows: int) -> tuple[Recipe, Promise, float | None]:
    """What `Plan.text` recorded: the recipe, the promise (about so many rows), and the half-width asked for."""
    record = json.loads(text)
    mechanism, noise, read, flip, per_span, expect = record["recipe"]
    target, allowance, population, slack, most_rho, sizes, rare, information = record["promise"]
    shares = (None if share is None else Fraction(share) for share in (flip, expect))
    recipe = Recipe(mechanism, Fraction(noise), read, next(shares), per_span, next(shares))
    left_out = None if sizes is None else planned_place(rows, *sizes) if sizes else recorded_grid(rows)
    promise = Promise(target, allowance, population, slack, most_rho, left_out, rare, information)
    return recipe, promise, record["within"]
