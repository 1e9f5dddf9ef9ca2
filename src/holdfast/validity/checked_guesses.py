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
_SHARES = (0.06, 0.25)
"""What the answer after an alarm charges, as a share of the alarm; more where it would certify nothing."""
_WEIGHTS = {1: (1.0,), 2: (0.5, 0.5)}
"""How the numbers of rows to leave out are weighed: one for the first stage, and one for the last."""
_RATES = tuple(0.12 * 1.25**step for step in range(11))


@dataclass(frozen=True, slots=True)
class Stage:
    """What is fixed for the looks between two alarms; scale and noise in steps of the grid, on the sum."""

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
    sizes: tuple[int, ...]
    """The numbers of rows that the theorem leaves out, in all stages: alarms are answers, and may not choose one."""

    @property
    def left_out(self) -> LeaveOut:
        """Those numbers with their weights."""
        return LeaveOut(self.rows, self.sizes, _WEIGHTS[len(self.sizes)])

    def charged(self, alarms: int, answers: int, *, alarm: bool = False) -> tuple[float, ...]:
        """What so many alarms with their answers, and so many further answers, charge at each number of rows; with
        `alarm` also the next alarm, whose answer is still to come."""
        return tuple(
            up(
                math.fsum(self._alarm(i, m) + self._answer(i, m) for i in range(alarms))
                + answers * self._answer(self.alarms, m)
                + (self._alarm(alarms, m) if alarm else 0.0)
            )
            for m in self.sizes
        )

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
        told = self.charged(alarms, answers, alarm=alarms < self.alarms)
        share = down(_ANSWERS * self.beta / max(1, self.alarms + self.answers))
        return self.left_out.half_width(told, self.sigma(alarms), share, 1 / (self.grid * self.rows))

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
    share = down(_CHECKS * plan.beta / (2 * plan.looks))
    return comparison_half_width(plan.left_out, plan.charged(alarms, 0), plan.rate(alarms), share)


@lru_cache(maxsize=64)
def plan_guesses(
    rows: int, looks: int, alarms: int, answers: int, beta: float, grid: int, tolerance: float = 0.0
) -> GuessPlan | None:
    """The plan whose widths before the first and after the last alarm are least together; None for none.

    A search over rates and rows to leave out, which proves nothing: what is certified is computed from the plan.
    """
    if rows < 3 or alarms < 1:
        return None
    size = math.sqrt(8 * rows * (math.log(2 * looks) - math.log(beta)))
    for share in _SHARES:
        # The first alarms are the most likely, and may cost more.
        tried = ([rate * size * (1 + 1 / (1 + j)) for j in range(alarms + 1)] for rate in _RATES)
        made = [_staged(rows, looks, alarms, answers, beta, grid, tolerance, rates, share) for rates in tried]
        best = min(made, key=lambda plan: plan.width(0) + plan.widest)
        if best.widest < 1:
            return best
    return None


def _staged(
    rows: int,
    looks: int,
    alarms: int,
    answers: int,
    beta: float,
    grid: int,
    tolerance: float,
    rates: Sequence[float],
    share: float,
) -> GuessPlan:
    """The plan with these rates, with about the best numbers of rows to leave out."""
    scales = [max(1, round(rows * grid / rate)) for rate in rates]
    log_miss = math.log(2 * looks) - math.log(_CHECKS * beta)

    def best(stage: int) -> int:
        rate = rows * grid / scales[stage]
        spent = sum((rows * grid / scale) ** 2 * (1 + share) for scale in scales[:stage])
        return min(
            (rows - 1, *ladder(rows)[::4]),
            key=lambda m: spent * m / (8 * (rows - m) * (rows - 1)) + rate**2 / (8 * m) + log_miss,
        )

    sizes = tuple(dict.fromkeys(best(stage) for stage in (0, max(1, alarms - 1))))
    stages = tuple(Stage(scale, round_up(Fraction(scale * scale) / Fraction(share))) for scale in scales)
    threshold = max(1, round(min(scales) / max(4, alarms)))
    return GuessPlan(rows, looks, alarms, answers, beta, grid, tolerance, threshold, stages, sizes)
