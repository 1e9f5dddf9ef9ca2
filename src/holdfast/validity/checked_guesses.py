"""Guesses that are checked by logistic comparisons: a silent check charges nothing, an alarm is paid for and answered.

Stage j is between the j-th alarm and the next. Around a guess g it asks whether n(q(S) - g) or n(g - q(S)) exceeds
T_j + rho, with logistic noise of scale B_j; rho is secret and drawn once. After an alarm a Gaussian answer follows;
after the last one only Gaussian answers do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from holdfast.privacy.rounding import down, round_up, up
from holdfast.validity.leave_out import LeaveOut, ladder
from holdfast.validity.leave_out_charges import comparison_charge, gaussian_charge
from holdfast.validity.leave_out_tails import comparison_half_width

_CHECKS, _ANSWERS, _THRESHOLD = 0.8, 0.15, 0.05
"""How the chance of a miss is divided."""
_SHARE = 0.25
"""What the answer after an alarm charges, as a share of the alarm."""
_RATES = tuple(0.12 * 1.25**step for step in range(11))


@dataclass(frozen=True, slots=True)
class Stage:
    """What is fixed for the looks between two alarms; scale and noise in steps of the grid, on the sum."""

    left_out: int
    scale: int
    variance: Fraction


@dataclass(frozen=True, slots=True)
class GuessPlan:
    """Everything that is fixed before the first guess.

    Guarantee: with probability 1 - beta, for every adaptive analyst, every guess that raised no alarm in stage j is
    within `width(j)` of the population, every answer is within `answer_width`, and a guess that is right within
    `tolerance` raises none.
    Requires: independent rows; guesses are functions of what was told; rho and the coins are secret, and never drawn
    again.
    Privacy: pure epsilon = g/s + sum over alarms of 2g/B_j for the checks (g grid steps are a row), and the answers'.
    Reference: docs/theorems.md, Theorem 55; Theorem 32 for the privacy of the checks.
    """

    rows: int
    looks: int
    alarms: int
    answers: int
    """How many Gaussian answers are kept for when the alarms are used up."""
    beta: float
    grid: int
    tolerance: float
    threshold_scale: int
    stages: tuple[Stage, ...]
    """One for each number of alarms raised so far; the last has answers only."""

    def charged(self, alarms: int, answers: int, left_out: int) -> float:
        """What so many alarms with their answers, and so many further answers, charge."""
        told = [self._alarm(i, left_out) + self._answer(i, left_out) for i in range(alarms)]
        return up(math.fsum(told) + answers * self._answer(self.alarms, left_out))

    def reach(self, alarms: int) -> float:
        """tau of the checks of a stage."""
        return _reach(self, alarms)

    @property
    def secret_reach(self) -> float:
        """r with Pr[|rho| > r] at most its share of beta, on the scale of a mean."""
        steps = self.threshold_scale * math.log(2 / down(_THRESHOLD * self.beta)) + 1
        return up(steps / (self.rows * self.grid))

    def threshold(self, alarms: int) -> float:
        """T of a stage: a guess that is right within the tolerance is silent."""
        return self.reach(alarms) + self.secret_reach + self.tolerance

    def width(self, alarms: int) -> float:
        """Within this a guess without alarm is right: T + tau + r."""
        return up(self.threshold(alarms) + self.reach(alarms) + self.secret_reach)

    def answer_width(self, alarms: int, answers: int = 0) -> float:
        """The half-width of the answer to the next alarm, or after the last one of the next answer."""
        stage = self.stages[alarms]
        told = self.charged(alarms, answers, stage.left_out)
        if alarms < self.alarms:
            told += self._alarm(alarms, stage.left_out)
        share = down(_ANSWERS * self.beta / max(1, self.alarms + self.answers))
        step = 1 / (self.grid * self.rows)
        return LeaveOut(self.rows, (stage.left_out,)).half_width((told,), self.sigma(alarms), share, step)

    @property
    def widest(self) -> float:
        """The half-width that all looks keep."""
        checks = [self.width(j) for j in range(self.alarms)]
        answers = [self.answer_width(j) for j in range(self.alarms)]
        last = [self.answer_width(self.alarms, self.answers - 1)] if self.answers else []
        return max(checks + answers + last)

    @property
    def epsilon(self) -> float:
        """The pure loss of all checks."""
        alarms = sum(Fraction(2 * self.grid, stage.scale) for stage in self.stages[: self.alarms])
        return up(float(Fraction(self.grid, self.threshold_scale) + alarms))

    @property
    def answers_rho(self) -> float:
        """The zCDP loss of all answers."""
        each = [self.grid**2 / (2 * stage.variance) for stage in self.stages]
        return up(float(sum(each[: self.alarms]) + self.answers * each[-1]))

    def rate(self, alarms: int) -> float:
        """lam on the scale of a mean."""
        return self.rows * self.grid / self.stages[alarms].scale

    def sigma(self, alarms: int) -> float:
        """The noise of a stage's answers on the scale of a mean."""
        return math.sqrt(self.stages[alarms].variance) / (self.grid * self.rows)

    def _alarm(self, stage: int, left_out: int) -> float:
        return comparison_charge(self.rows, left_out, self.rate(stage))

    def _answer(self, stage: int, left_out: int) -> float:
        return gaussian_charge(self.rows, left_out, self.sigma(stage))


@lru_cache(maxsize=4096)
def _reach(plan: GuessPlan, alarms: int) -> float:
    stage = plan.stages[alarms]
    told = (plan.charged(alarms, 0, stage.left_out),)
    share = down(_CHECKS * plan.beta / (2 * plan.looks))
    return comparison_half_width(LeaveOut(plan.rows, (stage.left_out,)), told, plan.rate(alarms), share)


@lru_cache(maxsize=64)
def plan_guesses(
    rows: int, looks: int, alarms: int, answers: int, beta: float, grid: int, tolerance: float = 0.0
) -> GuessPlan | None:
    """The plan whose widths before the first and after the last alarm are least together; None for none.

    A search over rates and rows to leave out, which proves nothing: what is certified is computed from the plan.
    """
    if rows < 3 or alarms < 1:
        return None
    best: tuple[float, GuessPlan] | None = None
    size = math.sqrt(8 * rows * (math.log(2 * looks) - math.log(beta)))
    for share in _RATES:
        # The first alarms are the most likely, and may cost more.
        rates = [share * size * (1 + 1 / (1 + j)) for j in range(alarms + 1)]
        made = _staged(rows, looks, alarms, answers, beta, grid, tolerance, rates)
        found = made.width(0) + made.widest
        if best is None or found < best[0]:
            best = found, made
    return None if best is None or not best[1].widest < 1 else best[1]


def _staged(
    rows: int,
    looks: int,
    alarms: int,
    answers: int,
    beta: float,
    grid: int,
    tolerance: float,
    rates: Sequence[float],
) -> GuessPlan:
    """The plan with these rates, each stage with about the best number of rows to leave out."""
    scales = [max(1, round(rows * grid / rate)) for rate in rates]
    stages: list[Stage] = []
    told: list[
        tuple[float, float]
    ] = []  # the squared rates and noises so far, in the limit of few rows left out
    log_miss = math.log(2 * looks) - math.log(_CHECKS * beta)
    for scale in scales:
        rate = rows * grid / scale
        spent = sum(lam**2 * (1 + _SHARE) for lam, _ in told)

        def width(m: int, rate: float = rate, spent: float = spent) -> float:
            stay = rows - m
            return spent * m / (8 * stay * (rows - 1)) + rate**2 / (8 * m) + log_miss

        left_out = min(ladder(rows)[::4], key=width)
        variance = round_up(Fraction(scale * scale) / Fraction(_SHARE))
        stages.append(Stage(left_out, scale, variance))
        told.append((rate, float(variance)))
    threshold = max(1, round(min(scales) / max(4, alarms)))
    return GuessPlan(rows, looks, alarms, answers, beta, grid, tolerance, threshold, tuple(stages))
