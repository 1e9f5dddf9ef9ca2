"""Checked guesses: the widths of the plan, and attacks that they withstand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from holdfast.validity.checked_guesses import GuessPlan, plan_guesses
from holdfast.validity.leave_out import LeaveOut
from holdfast.validity.leave_out_charges import comparison_charge
from holdfast.validity.leave_out_checks import guesses_width


@pytest.mark.parametrize(("rows", "looks", "alarms"), [(100_000, 10_000, 10), (10_000, 1000, 3)])
def test_a_secret_threshold_and_the_answers_cost_a_little(rows: int, looks: int, alarms: int) -> None:
    """Against a public threshold whose alarms are not answered."""
    made = plan_guesses(rows, looks, alarms, alarms, 0.05, 1)
    assert made is not None
    first, last = guesses_width(rows, looks, 0, 0.05)[0], guesses_width(rows, looks, alarms, 0.05)[0]
    assert first < made.width(0) < 1.4 * first
    assert last < made.widest < 1.3 * last
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
    grown = [made.charged(*told) for told in ((3, 0), (4, 0), (4, 1))]
    assert all(
        a < b for before, after in itertools.pairwise(grown) for a, b in zip(before, after, strict=True)
    )
    assert all(a < c < b for a, b, c in zip(grown[0], grown[1], made.charged(3, 0, alarm=True), strict=True))
    assert plan_guesses(2, 10, 1, 1, 0.05, 1) is None
    assert made.epsilon == pytest.approx(
        1 / made.threshold_scale + sum(2 / stage.scale for stage in made.stages[:6])
    )


def exact_game(sizes: Callable[[str], LeaveOut]) -> float:
    """E exp(b D - exponent) after one check of 20 coins, exactly; `sizes` are the rows to leave out, by what it said.

    An alarm says that ones are many, and D is theirs; silence that zeros are.
    """
    rows, rate, threshold, tilt = 20, 7.4, 0.7, 5.4
    ones = np.arange(rows + 1)
    chances = np.array([math.comb(rows, int(one)) for one in ones]) / 2.0**rows
    alarm = 1 / (1 + np.exp(-rate * (ones / rows - threshold)))
    total = 0.0
    for said, likely, sign in (("alarm", alarm, 1), ("silence", 1 - alarm, -1)):
        left_out = sizes(said)
        charged = [comparison_charge(rows, m, rate) if said == "alarm" else 0.0 for m in left_out.sizes]
        gained = np.exp(sign * tilt * (ones / rows - 0.5) - left_out.exponent(charged, tilt))
        total += float((chances * likely * gained).sum())
    return total


def test_a_number_of_rows_that_alarms_choose_breaks_the_theorem() -> None:
    """So the plan leaves out the same numbers of rows, with the same weights, in all stages (Theorem 90)."""
    for m in range(1, 20):
        assert exact_game(lambda said, m=m: LeaveOut(20, (m,))) <= 1  # type: ignore[misc]
    assert exact_game(lambda said: LeaveOut(20, (8, 19), (0.5, 0.5))) <= 1
    assert exact_game(lambda said: LeaveOut(20, (8 if said == "alarm" else 19,))) > 1.01
    plan = plan_guesses(400, 60, 12, 12, 0.05, 1)
    assert plan is not None
    assert sum(plan.left_out.weights) <= 1


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
