"""Guesses that last: a guess that the holdout does not contradict costs nothing, and all of it is private."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from holdfast.holdout.left import Left
from holdfast.holdout.measured import Reading
from holdfast.mechanisms.gaussian import add_gaussian
from holdfast.noise.laplace import laplace
from holdfast.noise.logistic import exceeds
from holdfast.privacy.rounding import up
from holdfast.validity.checked_guesses import GuessPlan, Stage


def plan_to_json(plan: GuessPlan) -> dict[str, Any]:
    """What a design keeps of it."""
    stages = [[stage.scale, str(stage.variance)] for stage in plan.stages]
    return {name: getattr(plan, name) for name in GuessPlan.__slots__} | {"stages": stages}


def plan_from_json(kept: dict[str, Any]) -> GuessPlan:
    """What `plan_to_json` wrote."""
    stages = tuple(Stage(scale, Fraction(variance)) for scale, variance in kept["stages"])
    return GuessPlan(**kept | {"stages": stages, "sizes": tuple(kept["sizes"])})


def plan_rho(plan: GuessPlan) -> float:
    """The zCDP loss of everything: the checks are pure, and epsilon-DP is (epsilon^2/2)-zCDP."""
    return up(plan.epsilon**2 / 2 + plan.answers_rho)


def open_threshold(plan: GuessPlan) -> str:
    """The secret state: the noise of the threshold, drawn once and never again."""
    return json.dumps({"rho": laplace(plan.threshold_scale)})


def check_guess(
    plan: GuessPlan, secret: str, failures: int, held: int, guess: float, rho: float
) -> tuple[float | None, Reading]:
    """(None if the guess stands, or else a noisy mean; how wide it is), after so many alarms and further answers.

    Guarantee: see `GuessPlan`. `held` is the exact sum in steps of the grid.
    Requires: `failures` below what `left` allows; the secret is that of `open_threshold`.
    """
    alarms = min(failures, plan.alarms)
    stage, whole = plan.stages[alarms], plan.rows * plan.grid
    if alarms < plan.alarms:
        said = round(guess * whole)
        # Rounded up: a whole distance can only be further from the threshold, and the width has room for a step.
        bar = int(plan.threshold(alarms) * whole) + 1 + int(json.loads(secret)["rho"])
        silent = not exceeds(held - said - bar, stage.scale) and not exceeds(said - held - bar, stage.scale)
        if silent:
            return None, Reading(up(plan.width(alarms) + 2 / whole), rho, plan.rows)
    noisy = add_gaussian(held, stage.variance)
    assert isinstance(noisy, int)
    return noisy / whole, Reading(plan.answer_width(alarms, failures - alarms), rho, plan.rows)


def left(plan: GuessPlan, planned: int, failures: int) -> Left:
    """What is left of `planned` looks: while alarms are left, or afterwards while answers are."""
    sure = plan.alarms + plan.answers - failures
    alarms = max(0, plan.alarms - failures)
    return Left(max(0, min(planned, sure)), planned if alarms else max(0, min(planned, sure)), alarms)
