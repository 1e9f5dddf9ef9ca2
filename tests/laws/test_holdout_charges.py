"""What a holdout says that an answer costs is what it did: every metric, comparison and submission, on neighbours.

Labels are what is protected: one of them is replaced by another. What leaves passes the doors of tests/oracles/tape.py.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from laws import holdout_releases
from laws.holdout_releases import HoldoutRelease, Labels
from oracles.tape import LawBroken, Tape, doors, playing

from holdfast.holdout import ReusableHoldout, label_release, paired_difference, table_score, unit_rows
from holdfast.holdout import checked_guess as checked
from holdfast.holdout.metric import GRID, METRICS
from holdfast.holdout.outcome import Outcome
from holdfast.privacy import event, rule
from holdfast.validity.checked_guesses import GuessPlan, plan_guesses

RELEASES = {
    one.name: one
    for one in (*holdout_releases.scores(), *holdout_releases.others(), *holdout_releases.units())
}
_ROUNDING = 1e-6


def judged(release: HoldoutRelease) -> float:
    """How many times the worst neighbour's loss was claimed; LawBroken if it was less than once."""
    with doors():
        tape = Tape(seed=1)
        claimed, told = _play(release, release.labels, tape)
        worst = 0.0
        for labels in release.neighbours():
            replay = Tape(script=tape, seed=1)
            other, same = _play(release, labels, replay)
            if (other, same) != (claimed, told):
                raise LawBroken("every door said the same, but the neighbour was told something else")
            worst = max(worst, _loss(tape, replay))
    if worst > claimed * (1 + _ROUNDING):
        raise LawBroken(f"claimed {claimed:.6g}, but a neighbour shows {worst:.6g}")
    return claimed / worst if worst else math.inf


def _play(release: HoldoutRelease, labels: Labels, tape: Tape) -> tuple[float, list[str]]:
    """(what all answers say that they cost, all that was told)."""
    with playing(tape), release.opened(labels) as holdout:
        answers = []
        for found in release.ask(holdout):
            answers += [found.answer, *found.against.values()] if isinstance(found, Outcome) else [found]
        left = holdout.left.facts()
    return sum(answer.rho or math.inf for answer in answers), [
        *(answer.to_json() for answer in answers), json.dumps(left),
    ]  # fmt: skip


def _loss(first: Tape, second: Tape) -> float:
    """The zCDP loss of the doors that were passed: they are all Gaussian."""
    total = 0.0
    for one, other in zip(first.steps, second.steps, strict=True):
        assert one.door == "gaussian"
        moved = np.asarray(one.secret - other.secret, dtype=float)
        total += float((moved**2).sum()) / (2 * float(one.public[0]))
    return total


@pytest.mark.parametrize("name", RELEASES)
def test_what_an_answer_says_that_it_costs_is_what_it_did(name: str) -> None:
    assert judged(RELEASES[name]) <= RELEASES[name].slack


def test_every_metric_and_every_method_that_answers_has_a_line() -> None:
    assert {f"score, {name}" for name in METRICS} <= set(RELEASES)
    methods = {
        name
        for name, method in vars(ReusableHoldout).items()
        if not name.startswith("_") and callable(method) and name not in ("scorer", "history", "close")
    }
    assert methods == {name.split(",")[0] for name in RELEASES}
    assert [one.name for one in RELEASES.values() if one.slack > 1.01 and not one.because] == []


def moved_by_one(noise: Fraction, doubt: Fraction | None) -> float:
    return rule.zcdp(event.Gaussian(1 << 34, noise)).rho


TWINS: dict[str, tuple[Any, str, Any, str]] = {
    "a label moves a difference by one row": (paired_difference, "_rho", moved_by_one, "compare, known"),
    "the same of a submission": (paired_difference, "_rho", moved_by_one, "submit"),
    "a table is one number": (table_score, "TABLE_LOOKS", 1, "score, balanced-accuracy"),
    "a unit counts by its rows": (unit_rows, "_shared", lambda halves, among: 2 * halves, "score, units"),
    "rows beyond the bound count": (
        unit_rows,
        "_kept",
        lambda rank, most: rank >= 0,
        "score, units, weighted",
    ),
    "each row of a unit weighs one in a table": (
        unit_rows,
        "_shares",
        lambda lengths, ranks: np.full(len(lengths), GRID),
        "score, units, auc",
    ),
    "a difference of units that moves by one": (paired_difference, "_rho", moved_by_one, "compare, units"),
    "half of the noise on a disagreement": (
        label_release,
        "_with_noise",
        lambda plan, held, variance: held / (plan.rows * (1 << 17)),
        "compare, expected",
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_an_undercharge_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    room, what, planted, release = TWINS[name]
    monkeypatch.setattr(room, what, planted)
    with pytest.raises(LawBroken):
        judged(RELEASES[release])


# Guesses that are checked: the threshold is drawn once, so that the whole transcript is judged, over all thresholds.


def likely(
    plan: GuessPlan,
    held: int,
    guesses: tuple[float, ...],
    said: tuple[bool, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> float:
    """The chance of these alarms, up to a factor and thresholds of e^-15; each look is run by the code itself."""
    total, scale = 0.0, plan.threshold_scale
    for rho in range(-15 * scale, 15 * scale + 1, scale // 4):
        secret, chance = json.dumps({"rho": rho}), math.exp(-abs(rho) / scale)
        for number, (guess, alarm) in enumerate(zip(guesses, said, strict=True)):
            quiet = 1.0

            def exceeds(distance: int, width: int) -> bool:
                nonlocal quiet
                quiet *= 1 / (1 + math.exp(min(700.0, distance / width)))
                return False

            monkeypatch.setattr(checked, "exceeds", exceeds)
            checked.check_guess(plan, secret, sum(said[:number]), held, guess, 0.0)
            chance *= 1 - quiet if alarm else quiet
        total += chance
    return total


def checks_loss(plan: GuessPlan, monkeypatch: pytest.MonkeyPatch) -> float:
    """The largest |ln ratio| over neighbours, guesses around the threshold, and all patterns of alarms."""
    held, row, worst = plan.rows * plan.grid // 2, plan.grid, 0.0
    monkeypatch.setattr(checked, "add_gaussian", lambda value, variance: 0)
    for shift in (0.7, 1.0):
        bar = plan.threshold(0) * shift
        guesses = (0.5 + bar, 0.5 - bar, 0.5 + bar)
        for said in itertools.product((False, True), repeat=3):
            if sum(said) <= plan.alarms:
                here, there = (
                    likely(plan, value, guesses, said, monkeypatch) for value in (held, held + row)
                )
                worst = max(worst, abs(math.log(here / there)))
    return worst


def test_the_checks_of_guesses_cost_what_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_guesses(400, 12, 2, 1, 0.5, 8)
    assert plan is not None
    assert 0.2 * plan.epsilon < checks_loss(plan, monkeypatch) <= plan.epsilon


def test_a_public_threshold_would_cost_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: the threshold's noise is forgotten, and silence tells too."""
    plan = plan_guesses(400, 12, 2, 1, 0.5, 8)
    assert plan is not None
    original: Callable[..., Any] = checked.check_guess

    def public(plan: GuessPlan, secret: str, *rest: Any) -> Any:
        return original(plan, '{"rho": 0}', *rest)

    monkeypatch.setattr(checked, "check_guess", public)
    held, bar = plan.rows * plan.grid // 2, plan.threshold(0)
    guesses, said = (0.5 + bar,) * 40, (False,) * 40
    here, there = (likely(plan, value, guesses, said, monkeypatch) for value in (held - plan.grid, held))
    assert abs(math.log(here / there)) > 1.05 * (plan.epsilon - 4 * plan.grid / plan.stages[0].scale)
