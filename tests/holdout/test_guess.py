"""Guess-and-Check, look by look: whenever the holdout's mean is as near as its share says, so is the answer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from holdfast.holdout import ReusableHoldout, design
from holdfast.holdout import guess as guess_module
from holdfast.holdout.design import Design
from holdfast.holdout.guess import certified, check_guess
from holdfast.holdout.metric import GRID
from holdfast.privacy.rounding import miss
from holdfast.session.answer import Answer
from holdfast.validity.guess_and_check import failure_share, holdout_width
from holdfast.validity.search import most

LABELS = np.random.default_rng(11).integers(0, 2, 3000)
Check = Callable[[Design, int, int, int, float], float | None]


def law(check: Check, plan: Design) -> None:
    """Every count, many guesses, every certified look: |answer - mean| + tau_h <= width."""
    met = 0
    for look in range(1, plan.queries + 1):
        for failures in range(look):
            if not certified(plan, look, failures):
                continue
            tau = holdout_width(plan.rows, failure_share(miss(plan.confidence), look, failures, plan.cells))
            for count in range(plan.rows + 1):
                for guess in np.linspace(0, 1, 41):
                    value = check(plan, look, failures, count * GRID, float(guess))
                    said = guess if value is None else value
                    assert abs(said - count / plan.rows) + tau <= plan.width * (1 + 1e-12)
                    met += 1
    assert met > 10_000


def test_every_answer_is_as_near_as_promised() -> None:
    law(check_guess, design(rows=60, queries=6, mode="guess-and-check", failures=2))


@pytest.mark.parametrize("slack", [1.05, 1.5])
def test_a_guess_accepted_too_easily_would_be_caught(slack: float) -> None:
    """The broken twin accepts guesses a little further off than the share allows."""

    def easy(plan: Design, look: int, failures: int, held: int, guess: float) -> float | None:
        value = check_guess(plan, look, failures, held, guess)
        mean = held / (plan.rows * GRID)
        share = failure_share(miss(plan.confidence), look, failures, plan.cells)
        if value is not None and abs(guess - mean) <= slack * (plan.width - holdout_width(plan.rows, share)):
            return None
        return value

    with pytest.raises(AssertionError):
        law(easy, design(rows=60, queries=6, mode="guess-and-check", failures=2))


def test_the_left_end_of_a_cell_would_be_caught() -> None:
    """The broken twin answers a failed guess by the floor of its cell: half a cell too far for this width."""

    def floored(plan: Design, look: int, failures: int, held: int, guess: float) -> float | None:
        value = check_guess(plan, look, failures, held, guess)
        return None if value is None else value - 0.5 / plan.cells

    with pytest.raises(AssertionError):
        law(floored, design(rows=60, queries=6, mode="guess-and-check", failures=2))


def test_a_look_that_is_not_certified_comes_only_after_failures() -> None:
    plan = design(rows=2000, queries=100, mode="guess-and-check", failures=3)
    assert all(certified(plan, look, 3) for look in range(4, 101))
    assert not certified(plan, 100, 4)
    assert certified(plan, 1, 0)


def resumed_after_failures(holdout: ReusableHoldout, failures: int) -> Answer:
    """A keyed look is charged and crashes; then guesses fail; then it is resumed."""

    def crash(ids: np.ndarray) -> np.ndarray:
        if len(ids) < len(LABELS):  # tried before the charge
            return LABELS[ids]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        holdout.score(crash, guess=1.0, key="crashed")
    for _ in range(failures):
        holdout.score(LABELS, guess=0.0)
    return holdout.score(LABELS, guess=1.0, key="crashed")


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_a_resumed_look_takes_the_place_of_its_answer(monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
    places: list[tuple[int, int]] = []

    def noted(plan: Design, look: int, failed: int, held: int, guess: float) -> float | None:
        places.append((look, failed))
        return check_guess(plan, look, failed, held, guess)

    monkeypatch.setattr(guess_module, "check_guess", noted)
    with ReusableHoldout(LABELS, queries=100, mode="guess-and-check", failures=5) as holdout:
        assert resumed_after_failures(holdout, failures).value == 1.0
        assert holdout.looks_used == failures + 1
    assert places == [(number + 1, number) for number in range(failures + 1)]


@pytest.mark.parametrize("failures", [1, 2])
def test_the_place_of_its_charge_would_be_caught(monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
    """The broken twin keeps place 1 for the crashed look: more failures than earlier looks."""
    places = iter([*range(1, failures + 1), 0])
    monkeypatch.setattr(
        guess_module, "check_guess", lambda plan, look, *rest: check_guess(plan, next(places) + 1, *rest)
    )
    with ReusableHoldout(LABELS, queries=100, mode="guess-and-check", failures=5) as holdout:
        monkeypatch.setattr(guess_module, "certified", lambda *_: True)
        with pytest.raises(ValueError):
            resumed_after_failures(holdout, failures)


def test_a_look_whose_answer_was_lost_is_counted_among_those_to_come() -> None:
    """It may be resumed first and fail; what was promised before that must still be answered."""
    plan = design(rows=3000, queries=60, mode="guess-and-check", failures=4)
    for answered, failures in ((0, 0), (5, 1), (20, 3)):
        for lost in (1, 2):
            promised = guess_module.left(plan, answered + lost, answered, failures).looks
            resumed = answered + lost
            for failed in range(failures, failures + lost + 1):
                left = guess_module.left(plan, resumed, resumed, failed).looks
                assert promised <= left
            blind = most(lambda more, a=answered, f=failures: guess_module.answerable(plan, a, f, more))
            assert promised < blind, "the twin that forgets what was lost promises more"
