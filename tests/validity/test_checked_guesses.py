"""Checked guesses: the widths of the plan, and attacks that they withstand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from holdfast.validity.checked_guesses import GuessPlan, plan_guesses
from holdfast.validity.leave_out_checks import guesses_width


@pytest.mark.parametrize(("rows", "looks", "alarms"), [(100_000, 10_000, 10), (10_000, 1000, 3)])
def test_a_secret_threshold_and_the_answers_cost_a_little(rows: int, looks: int, alarms: int) -> None:
    """Against a public threshold whose alarms are not answered."""
    made = plan_guesses(rows, looks, alarms, alarms, 0.05, 1)
    assert made is not None
    first, last = guesses_width(rows, looks, 0, 0.05)[0], guesses_width(rows, looks, alarms, 0.05)[0]
    assert first < made.width(0) < 1.35 * first
    assert last < made.widest < 1.25 * last
    assert made.widest == pytest.approx(made.width(alarms - 1))


def test_widths_grow_with_alarms_and_tolerance() -> None:
    made = plan_guesses(50_000, 1000, 6, 2, 0.05, 1)
    wide = plan_guesses(50_000, 1000, 6, 2, 0.05, 1, 0.01)
    assert made is not None
    assert wide is not None
    widths = [made.width(j) for j in range(6)]
    assert widths == sorted(widths)
    assert [made.rate(j) for j in range(7)] == sorted((made.rate(j) for j in range(7)), reverse=True)
    assert wide.width(0) == pytest.approx(made.width(0) + 0.01, rel=0.05)
    assert made.charged(3, 0, 500) < made.charged(4, 0, 500) < made.charged(4, 1, 500)
    assert plan_guesses(2, 10, 1, 1, 0.05, 1) is None
    assert made.epsilon == pytest.approx(
        1 / made.threshold_scale + sum(2 / stage.scale for stage in made.stages[:6])
    )


def attacked(plan: GuessPlan, generator: np.random.Generator, charge: float) -> bool:
    """Whether silence ever lies: an analyst learns from alarms and answers which random queries lean, then guesses the
    population value of their majority, which the rows do not have. `charge` scales what the widths are told."""
    rows = plan.rows
    noise = generator.laplace(0, plan.threshold_scale)
    told, votes, failures = [], np.zeros(rows), 0
    for look in range(plan.looks):
        bits = generator.integers(0, 2, rows) if look < plan.looks - 1 else (votes > 0).astype(int)
        stage = min(failures, plan.alarms)
        if stage == plan.alarms and failures - stage >= plan.answers:
            break
        held = float(bits.mean())
        guess = 0.5 if look == plan.looks - 1 else 0.5 + plan.threshold(stage) * charge
        bar, scale = plan.threshold(stage) * rows * charge + noise, plan.stages[stage].scale
        alarm = stage == plan.alarms or any(
            sign * (held - guess) * rows - bar + generator.logistic(0, scale) > 0 for sign in (1, -1)
        )
        if not alarm:
            told.append(abs(0.5 - guess) <= plan.width(stage) * charge)
            votes += (2 * bits - 1) * 0.1
            continue
        answer = held + generator.normal(0, plan.sigma(stage))
        told.append(abs(answer - 0.5) <= plan.answer_width(stage, failures - stage) * charge)
        votes += (2 * bits - 1) * (answer - 0.5) * math.sqrt(rows)
        failures += 1
    return all(told)


def test_intervals_hold_under_attack_and_a_sixth_of_them_does_not() -> None:
    plan = plan_guesses(400, 60, 12, 12, 0.05, 1)
    assert plan is not None
    runs = [attacked(plan, np.random.default_rng(seed), 1.0) for seed in range(16)]
    assert all(runs)
    twins = [attacked(plan, np.random.default_rng(seed), 1 / 6) for seed in range(8)]
    assert sum(twins) < 4
