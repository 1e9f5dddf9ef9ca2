"""Guess-and-Check: a guess stands unless the holdout contradicts it; only contradictions cost."""

from __future__ import annotations

from holdfast.holdout.design import Design
from holdfast.holdout.left import Left
from holdfast.holdout.metric import GRID
from holdfast.privacy.rounding import miss
from holdfast.validity.guess_and_check import accept_slack, checked_width, costliest, failure_share
from holdfast.validity.search import most


def certified(plan: Design, look: int, failures: int) -> bool:
    """Whether the look in this place (from 1, among those answered) can still be answered within the width.

    Guarantee: depends on the transcript only: which guesses failed is public.
    """
    beta = miss(plan.confidence)
    return checked_width(plan.rows, beta, look, failures, plan.cells) <= plan.width


def check_guess(plan: Design, look: int, failures: int, held: int, guess: float) -> float | None:
    """None if the guess stands, or else the centre of the cell that holds the holdout's mean.

    Guarantee: with probability `plan.confidence`, every guess that stands and every centre is within
    `plan.width` of its population value, for any guesser that never saw these labels otherwise.
    Requires: `certified(plan, look, failures)`. Not private.
    Reference: Rogers et al. 2020, Algorithm 2; a centre is at most half a cell from the mean.
    """
    share = failure_share(miss(plan.confidence), look, failures, plan.cells)
    mean = held / (plan.rows * GRID)
    if abs(guess - mean) <= accept_slack(plan.width, plan.rows, share):
        return None
    cell = min(held * plan.cells // (plan.rows * GRID), plan.cells - 1)
    return (cell + 0.5) / plan.cells


def answerable(plan: Design, answered: int, failures: int, looks: int) -> bool:
    """Whether so many further looks can all be answered, however many of their guesses fail.

    The last of them is the widest, for any number of failures, so only that one is looked at.
    """
    look = answered + looks
    worst = costliest(miss(plan.confidence), look, failures, failures + looks - 1, plan.cells)
    return certified(plan, look, worst)


def left(plan: Design, used: int, answered: int, failures: int) -> Left:
    """What is left after `used` looks, of which `answered` were answered and `failures` guesses failed.

    A look that was charged and whose answer was lost may still come back, and fail: it is counted as one to come.
    """
    planned, lost = plan.queries - used, used - answered
    return Left(
        looks=most(lambda more: more <= planned and answerable(plan, answered, failures, lost + more)),
        at_most=most(lambda more: more <= planned and certified(plan, answered + more, failures)),
        failures=max(0, plan.failures - failures),
    )
