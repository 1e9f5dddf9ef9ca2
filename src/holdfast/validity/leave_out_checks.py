"""Guesses that are checked, and multiplicative weights: comparisons of which only the alarms charge.

The step around a guess g: "up" has weight e^{lam(q(S) - g - T)}, "down" e^{lam(g - q(S) - T)}, silence 1.
Silence is free, an alarm charges theta(lam), and each outcome is true of the population within tau.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from holdfast.privacy.rounding import down, up
from holdfast.validity.leave_out_charges import comparison_charge
from holdfast.validity.search import least

_MOST_ALARMS = 10**5


@dataclass(frozen=True, slots=True)
class Checks:
    """What is fixed before the first guess."""

    rows: int
    left_out: int
    rate: float
    log_miss: float
    """ln of 2(k + c)/beta: at most two of the four ways to be wrong are open to one look."""

    def reach(self, alarms: int) -> float:
        """tau after so many alarms: (A + b^2/(8m) + L)/b at b = rate, A the charges of these alarms.

        Guarantee: with probability 1 - beta for all looks together, silence means |q(P) - g| <= T + tau, and an alarm
        means that q(P) is on its side of g by T - tau or more.
        Reference: docs/theorems.md, Theorem 30.
        """
        told = alarms * comparison_charge(self.rows, self.left_out, self.rate)
        return up((told + self.rate**2 / (8 * self.left_out) + self.log_miss) / self.rate)


def _log_miss(looks: int, beta: float) -> float:
    return up(math.log(2 * looks) - math.log(down(beta)))


@lru_cache(maxsize=256)
def guesses_width(rows: int, looks: int, alarms: int, beta: float) -> tuple[float, Checks]:
    """(W, plan): a guess that raised no alarm is within W = 2 tau of the population, until so many alarms were raised.

    T = tau, so that only exactly right guesses are promised silence; one that is right within d wants T = tau + d, and
    has W = 2 tau + d. inf where nothing is certified.
    Guarantee: as `Checks.reach`, for `looks` looks.
    Requires: rows independent; guesses are functions of the transcript; T, rate and m fixed beforehand; a public
    threshold.
    Reference: docs/theorems.md, Theorem 30.
    """
    if rows < 2:
        return math.inf, Checks(rows, 1, 1.0, math.inf)
    log_miss = _log_miss(looks, beta)

    def best_rate(left_out: int) -> tuple[float, float]:
        centre = 0.5 * math.log(8 * left_out * log_miss)
        return least(
            lambda x: Checks(rows, left_out, math.exp(x), log_miss).reach(alarms), centre - 6, centre + 2, 40
        )

    def of_share(x: float) -> int:
        return min(rows - 1, max(1, round(math.exp(x))))

    _, place = least(lambda x: best_rate(of_share(x))[0], 0.0, math.log(rows), 40)
    tried = {of_share(place), rows - 1}
    left_out = min(tried, key=lambda m: best_rate(m)[0])
    reach, log_rate = best_rate(left_out)
    return up(2 * reach), Checks(rows, left_out, math.exp(log_rate), log_miss)


@dataclass(frozen=True, slots=True)
class WeightsPlan:
    """Multiplicative weights that answer every question within `width` of the population; all fixed beforehand."""

    checks: Checks
    width: float
    alarms: int
    """More alarms than this cannot be raised while everything is true."""

    def threshold(self, alarms: int) -> float:
        """T after so many alarms: W - tau."""
        return self.width - self.checks.reach(alarms)

    def gain(self, alarms: int) -> float:
        """gamma after so many alarms: how far the population then is from the guess, at least; W - 2 tau.

        A sign step of 4 gamma takes 2 gamma^2 from the divergence. Refuse where it is not positive.
        """
        return self.width - 2 * self.checks.reach(alarms)


def weights_plan(rows: int, queries: int, cells: int, beta: float) -> WeightsPlan | None:
    """The least W that one rate and one m allow for so many questions on a universe of so many cells; None for none.

    Guarantee: with probability 1 - beta all answers that are released in silence are within W of q(P), and the sum of
    2 gamma_i^2 over the alarms is at most ln(cells), so that there are fewer than `alarms` + 1 of them.
    Requires: a public universe, uniform start, k and c fixed beforehand; never an answer after an alarm without a fresh
    silence; public threshold.
    Reference: docs/theorems.md, Theorem 30.
    """
    log_cells = up(math.log(cells))
    best: WeightsPlan | None = None
    alarms = 4
    while alarms <= _MOST_ALARMS and rows >= 2:
        made = _with_alarms(rows, queries, alarms, log_cells, beta)
        if made is not None and (best is None or made.width < best.width):
            best = made
        elif best is not None and alarms > 4 * best.alarms:
            break
        alarms = alarms + max(1, alarms // 8)
    return best


def _with_alarms(rows: int, queries: int, alarms: int, log_cells: float, beta: float) -> WeightsPlan | None:
    """The least W for which `alarms` alarms would take more than ln N: gains in every place, the last included."""
    log_miss = _log_miss(queries + alarms, beta)

    def width(left_out: int, rate: float) -> float:
        checks = Checks(rows, left_out, rate, log_miss)
        first, last = 2 * checks.reach(0), 2 * checks.reach(alarms - 1)
        # gains fall on a line from W - first to W - last; the sum of 2 gamma^2 must pass ln N
        mean, spread = (first + last) / 2, (last - first) ** 2 * (alarms + 1) / (12 * max(1, alarms - 1))
        need = log_cells / (2 * alarms) - spread
        return up(max(last, mean + math.sqrt(max(0.0, need))) * (1 + 1e-9))

    def best_rate(left_out: int) -> tuple[float, float]:
        centre = 0.5 * math.log(8 * left_out * log_miss)
        return least(lambda x: width(left_out, math.exp(x)), centre - 6, centre + 2, 30)

    def of_share(x: float) -> int:
        return min(rows - 1, max(1, round(math.exp(x))))

    _, place = least(lambda x: best_rate(of_share(x))[0], math.log(rows) * 0.3, math.log(rows), 24)
    left_out = of_share(place)
    found, log_rate = best_rate(left_out)
    plan = WeightsPlan(Checks(rows, left_out, math.exp(log_rate), log_miss), found, alarms - 1)
    gains = [plan.gain(i) for i in range(alarms)]
    good = min(gains) > 0 and 2 * math.fsum(g * g for g in gains) > log_cells
    return plan if good and found < 1 else None
