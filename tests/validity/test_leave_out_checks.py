"""Checked guesses and multiplicative weights: the three-way step against its definition, the potential, the figures."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from holdfast.validity.leave_out_charges import comparison_charge
from holdfast.validity.leave_out_checks import Checks, guesses_width, weights_plan


@pytest.mark.parametrize(("rows", "left_out"), [(4, 1), (6, 2), (7, 6)])
@pytest.mark.parametrize("rate", [1.0, 6.0])
def test_silence_is_free_and_each_alarm_pays_for_itself(rows: int, left_out: int, rate: float) -> None:
    """Reference odds e^-theta w for both alarms, on the rows that stay; without the charge the alarms fall short."""
    theta, guess, threshold = comparison_charge(rows, left_out, rate), 0.4, 0.1

    def odds(share: float, scale: float) -> tuple[float, float]:
        return (
            scale * math.exp(rate * (share - guess - threshold)),
            scale * math.exp(rate * (guess - share - threshold)),
        )

    short = 0
    for yes in range(rows + 1):
        truth = odds(yes / rows, 1.0)
        lost = [0.0, 0.0, 0.0]
        for kept in range(max(0, yes - left_out), min(yes, rows - left_out) + 1):
            ways = math.comb(yes, kept) * math.comb(rows - yes, rows - left_out - kept)
            chance = ways / math.comb(rows, left_out)
            up, down = odds(kept / (rows - left_out), math.exp(-theta))
            for i, (before, after) in enumerate(zip((1.0, *truth), (1.0, up, down), strict=True)):
                law = math.log(before / (1 + sum(truth)))
                lost[i] += chance * (law - math.log(after / (1 + up + down)))
        assert lost[0] <= 1e-12
        assert max(lost[1:]) <= theta + 1e-12
        short += max(lost[1:]) > theta / 2
    assert short


def outcomes(checks: Checks, tables: np.ndarray, gap: float, threshold: float) -> tuple[np.ndarray, ...]:
    """(silence, up, down) on tables whose share is `tables`, for a guess that is `gap` below one half."""
    up = np.exp(checks.rate * (tables - (0.5 - gap) - threshold))
    down = np.exp(checks.rate * ((0.5 - gap) - tables - threshold))
    return 1 / (1 + up + down), up / (1 + up + down), down / (1 + up + down)


@pytest.mark.parametrize("gap", [0.0, 0.1, -0.3, 0.45])
def test_what_is_said_is_true_of_the_population_within_tau(gap: float) -> None:
    """One look at a fair coin: the ways to be wrong together, against beta; and a quarter of tau as the twin."""
    rows, beta = 8, 0.2
    _, checks = guesses_width(rows, 1, 0, beta)
    assert wrong(checks, gap, checks.reach(0)) <= beta


def test_a_quarter_of_tau_is_not_enough() -> None:
    _, checks = guesses_width(8, 1, 0, 0.2)
    assert max(wrong(checks, gap, checks.reach(0) / 4) for gap in (0.0, 0.05, 0.1, 0.2, 0.3)) > 0.2


def wrong(checks: Checks, gap: float, tau: float) -> float:
    yes = np.arange(checks.rows + 1)
    chance = np.array([math.comb(checks.rows, k) for k in yes]) / 2**checks.rows
    silence, up, down = (law @ chance for law in outcomes(checks, yes / checks.rows, gap, tau))
    total = 0.0
    if abs(gap) > 2 * tau:
        total += silence
    if gap < 0 or gap == 0:
        total += up
    if gap > 0 or gap == 0:
        total += down
    return float(total)


# W of a confirmed guess after so many alarms, printed in the note of the theorem
@pytest.mark.parametrize(
    ("rows", "looks", "alarms", "printed"),
    [
        (100_000, 10_000, 0, 0.016),
        (100_000, 10_000, 10, 0.044),
        (100_000, 10_000, 100, 0.074),
        (1_000_000, 1_000_000, 0, 0.006),
        (1_000_000, 1_000_000, 10, 0.016),
        (1_000_000, 1_000_000, 100, 0.027),
    ],
)
def test_checked_guesses_reach_the_printed_widths(rows: int, looks: int, alarms: int, printed: float) -> None:
    width, checks = guesses_width(rows, looks, alarms, 0.05)
    assert width == pytest.approx(printed, abs=0.0006)
    assert width == pytest.approx(2 * checks.reach(alarms), rel=1e-9)
    assert checks.reach(alarms + 1) > checks.reach(alarms)


def test_one_row_certifies_no_guess_and_no_weights() -> None:
    assert guesses_width(1, 10, 0, 0.05)[0] == math.inf
    assert weights_plan(1, 10, 4, 0.05) is None
    assert weights_plan(20, 1000, 2**16, 0.05) is None


@pytest.mark.parametrize(("rows", "printed"), [(100_000, 0.191), (1_000_000, 0.088)])
def test_multiplicative_weights_reach_the_printed_widths(rows: int, printed: float) -> None:
    """One rate for all alarms; the printed figures let the rate fall with them."""
    plan = weights_plan(rows, 10**6, 2**16, 0.05)
    assert plan is not None
    assert printed * 0.99 < plan.width < printed * 1.04
    gains = [plan.gain(i) for i in range(plan.alarms + 1)]
    assert min(gains) > 0
    assert 2 * math.fsum(g * g for g in gains) > 16 * math.log(2)
    assert plan.threshold(3) == pytest.approx(plan.gain(3) + plan.checks.reach(3))
    few, many = (weights_plan(rows, k, 2**16, 0.05) for k in (10**4, 10**8))
    assert few is not None
    assert many is not None
    assert few.width < plan.width < many.width < 1.3 * few.width


def test_a_sign_step_of_four_gammas_takes_two_gammas_squared_and_no_larger_share() -> None:
    """KL(P || h) falls by 2 gamma^2 or more where the guess is gamma away; by 3 gamma^2 it need not."""
    rng = np.random.default_rng(5)
    least = math.inf
    for _, cells in itertools.product(range(200), (2, 3, 8)):
        truth, guess = rng.dirichlet(np.ones(cells)), rng.dirichlet(np.ones(cells))
        q = rng.integers(0, 2, cells).astype(float)
        gamma = abs(float(q @ (truth - guess)))
        if gamma < 1e-3:
            continue
        step = guess * np.exp(4 * gamma * np.sign(q @ (truth - guess)) * q)
        step /= step.sum()
        fall = float(truth @ np.log(step / guess))
        assert fall >= 2 * gamma**2 * (1 - 1e-9)
        least = min(least, fall / gamma**2)
    assert least < 3
