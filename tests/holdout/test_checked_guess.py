"""Guesses that last: silent while they are right, answered when they are not, private throughout."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from holdfast.errors import BudgetError, InputError, MechanismError
from holdfast.holdout import ReusableHoldout, design
from holdfast.holdout import checked_guess as module
from holdfast.holdout.checked_guess import check_guess, left, open_threshold, plan_from_json, plan_to_json
from holdfast.holdout.metric import GRID
from holdfast.validity.checked_guesses import plan_guesses

pytestmark = pytest.mark.usefixtures("replayed_noise")


def world(rows: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(5)
    labels = draw.integers(0, 2, rows)
    return labels, np.where(draw.random(rows) < 0.8, labels, 1 - labels)


def test_ten_thousand_looks_are_within_two_hundredths_while_guesses_hold() -> None:
    plan = design(rows=100_000, queries=10_000, mode="guesses", alarms=10)
    made = plan.guesses
    assert made is not None
    assert made.width(0) < 0.0188
    assert plan.width < 0.0521
    assert plan.private
    assert made.epsilon < 0.6
    assert plan.theorem == "Theorem 55"
    assert design(rows=100_000, queries=10_000).width > 0.05  # falling noise alone


def test_true_guesses_are_silent_and_false_ones_are_answered(tmp_path: Path) -> None:
    labels, said = world(100_000)
    truth = float(np.mean(labels == said))
    with ReusableHoldout(labels, queries=300, mode="guesses", alarms=3, ledger=tmp_path) as guarded:
        assert (guarded.looks_left, guarded.left.at_most, guarded.alarms_left) == (6, 300, 3)
        for _ in range(100):
            answer = guarded.score(said, guess=truth)
            assert answer.value == pytest.approx(truth, abs=1e-9)
            assert answer.width < 0.02
        assert (guarded.alarms_left, guarded.left.at_most) == (3, 200)
        verdict = guarded.check(0.99, said)
        assert not verdict.fine
        assert verdict.answer.low <= truth <= verdict.answer.high
        assert guarded.alarms_left == 2
        again = guarded.score(said)  # without a guess: the last value told
        assert abs(again.value - truth) < 0.05
        assert again.width > answer.width
    with ReusableHoldout(labels, ledger=tmp_path) as later:
        assert later.alarms_left is not None
        assert later.alarms_left <= 2
        assert later.looks_used == 102


def test_when_alarms_end_it_goes_on_with_answers_and_then_is_refused() -> None:
    labels, said = world(100_000)
    with ReusableHoldout(labels, queries=50, mode="guesses", alarms=2, answers=3) as guarded:
        for number in range(5):
            answer = guarded.score(said, guess=0.2)
            assert answer.low <= 0.8 <= answer.high
            assert guarded.looks_left == 4 - number
        assert guarded.alarms_left == 0
        with pytest.raises(BudgetError, match="2 alarms and 3 answers"):
            guarded.score(said, guess=0.8)
        assert guarded.looks_used == 5


def test_a_ratio_and_a_wrong_plan_are_refused_before_a_look() -> None:
    labels, said = world(5000)
    with ReusableHoldout(labels, queries=50, mode="guesses", alarms=2) as guarded:
        with pytest.raises(InputError, match="mean over rows"):
            guarded.score(said, metric="precision")
        with pytest.raises(InputError, match="gaussian"):
            guarded.score(said, metric="auc")
        assert guarded.looks_used == 0
    with pytest.raises(MechanismError, match="fewer alarms"):
        design(rows=1000, queries=1000, mode="guesses", within=0.01)
    with pytest.raises(InputError, match="name the mode"):
        design(rows=1000, queries=10, alarms=3)
    for wrong in ({"alarms": 0}, {"alarms": 99}, {"answers": -1}, {"tolerance": -0.1}):
        with pytest.raises(InputError):
            design(rows=10_000, queries=10, mode="guesses", **wrong)  # type: ignore[arg-type]


def test_the_threshold_is_secret_and_drawn_once(tmp_path: Path) -> None:
    labels, said = world(5000)
    with ReusableHoldout(labels, queries=50, mode="guesses", alarms=2, ledger=tmp_path) as guarded:
        before = guarded.looks.transcript().state
        guarded.score(said, guess=0.8)
        assert guarded.looks.transcript().state == before
    with ReusableHoldout(labels, ledger=tmp_path) as later:
        assert later.looks.transcript().state == before
        assert str(before) not in str(later.design.to_json())
        assert all('rho"' not in answer.explanation for _, answer in later.history())


@pytest.mark.usefixtures("replayed_noise")
def test_silence_means_what_it_says_and_half_the_threshold_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A guess that is wrong by the width is never silent; a right one always is. The twin alarms at right guesses."""
    made = plan_guesses(20_000, 500, 4, 4, 0.05, GRID)
    assert made is not None
    secret, whole = open_threshold(made), 20_000 * GRID
    held = round(0.5 * whole)

    def silent(distance: float) -> int:
        return sum(
            check_guess(made, secret, 0, held, 0.5 + sign * distance, 0.0)[0] is None
            for sign in (-1, 1)
            for _ in range(50)
        )

    assert silent(0.0) == 100
    assert silent(made.width(0)) == 0
    assert 0 < silent(made.threshold(0)) < 100
    blunt = replace(made, stages=tuple(replace(stage, scale=stage.scale * 20) for stage in made.stages))
    original = module.exceeds
    monkeypatch.setattr(module, "exceeds", lambda distance, scale: original(distance, blunt.stages[0].scale))
    assert silent(0.0) < 100


def test_what_is_left_and_json() -> None:
    made = plan_guesses(20_000, 500, 4, 2, 0.05, GRID)
    assert made is not None
    assert plan_from_json(plan_to_json(made)) == made
    assert str(left(made, 100, 0)) == "6 whatever is asked, 100 while no more than 4 guesses fail"
    assert (left(made, 100, 5).looks, left(made, 100, 5).at_most, left(made, 100, 5).failures) == (1, 1, 0)
    assert left(made, 100, 6).looks == 0
