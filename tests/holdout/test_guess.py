"""Guess-and-Check, look by look: whenever the holdout's mean is as near as its share says, so is the answer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from holdfast.holdout import design
from holdfast.holdout.design import Design
from holdfast.holdout.guess import certified, check_guess
from holdfast.holdout.metric import GRID
from holdfast.validity.argument import miss
from holdfast.validity.guess_and_check import failure_share, holdout_width

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
