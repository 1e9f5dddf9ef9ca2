"""What is left: never more than will be answered, however the guesses turn out."""

from __future__ import annotations

import sys
from functools import cache

import numpy as np
import pytest

from holdfast.errors import BudgetError
from holdfast.holdout import ReusableHoldout, design
from holdfast.holdout.design import Design
from holdfast.holdout.guess import certified, left
from holdfast.holdout.left import Left

LABELS = np.random.default_rng(11).integers(0, 2, 3000)
SMALL = [(100, 20, 19), (100, 25, 3), (60, 12, 11), (400, 30, 8)]


def by_walking(plan: Design, answered: int, failures: int) -> Left:
    """The slow truth: every way in which the next guesses may stand or fail, look by look."""

    @cache
    def surely(done: int, failed: int) -> int:
        if done == plan.queries or not certified(plan, done + 1, failed):
            return 0
        return 1 + min(surely(done + 1, failed), surely(done + 1, failed + 1))

    at_most = next(
        done for done in range(answered, plan.queries + 1)
        if done == plan.queries or not certified(plan, done + 1, failures)
    )  # fmt: skip
    return Left(surely(answered, failures), at_most - answered, max(0, plan.failures - failures))


@pytest.mark.parametrize(("rows", "queries", "failures"), SMALL)
def test_guess_and_check_tells_what_every_course_of_guesses_leaves(
    rows: int, queries: int, failures: int
) -> None:
    plan = design(rows=rows, queries=queries, mode="guess-and-check", failures=failures)
    for answered in range(queries + 1):
        for failed in range(answered + 1):
            assert left(plan, answered, answered, failed) == by_walking(plan, answered, failed)


@pytest.mark.parametrize(("rows", "queries", "failures"), SMALL)
def test_a_plan_bears_all_its_looks_with_any_number_of_failures_up_to_its_own(
    rows: int, queries: int, failures: int
) -> None:
    plan = design(rows=rows, queries=queries, mode="guess-and-check", failures=failures)
    assert all(certified(plan, queries, failed) for failed in range(failures + 1))


def test_a_plan_for_the_largest_number_of_failures_alone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: twenty looks bear nineteen failures, but not seventeen."""
    monkeypatch.setattr(sys.modules["holdfast.validity.guess_and_check"], "costliest", lambda *part: part[3])
    kept = sys.modules["holdfast.holdout.design"]._chosen
    kept.cache_clear()
    plan = design(rows=100, queries=20, mode="guess-and-check", failures=19)
    kept.cache_clear()
    assert certified(plan, 20, 19)
    assert not certified(plan, 20, 17)


@pytest.mark.parametrize("mode", ["guess-and-check", "thresholdout"])
@pytest.mark.parametrize("honest", [0, 3, 30])
def test_as_many_looks_as_are_left_are_answered_although_every_guess_fails(mode: str, honest: int) -> None:
    with ReusableHoldout(LABELS, queries=200, mode=mode) as guarded:
        for _ in range(honest):
            guarded.score(LABELS, guess=1.0)
        promised = guarded.left
        assert 0 < promised.looks < promised.at_most == 200 - honest
        assert guarded.looks_left == promised.looks
        for number in range(promised.looks):
            guarded.score(LABELS, guess=0.5 * (number % 2))
        assert "while no more than" in str(promised)


@pytest.mark.parametrize("mode", ["guess-and-check", "thresholdout"])
def test_no_looks_are_left_exactly_when_the_next_is_refused(mode: str) -> None:
    """Guesses that always fail, as plain scores do: the count never says more than comes."""
    with ReusableHoldout(LABELS, queries=200, mode=mode) as guarded:
        for _ in range(200):
            promised = guarded.looks_left
            try:
                guarded.score(LABELS)
            except BudgetError:
                break
            assert promised > 0
        assert (promised, guarded.looks_left) == (0, 0)
        assert 5 < guarded.looks_used < 100


def test_modes_that_take_no_guesses_have_one_number() -> None:
    with ReusableHoldout(LABELS, queries=1200) as guarded:
        assert guarded.left == Left(1200, 1200, None)
        assert str(guarded.left) == "1,200"
