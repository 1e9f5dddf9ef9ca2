"""The modes whose next look depends on guesses: what a guess comes to, and how many more there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from holdfast.errors import InputError
from holdfast.holdout import checked_guess, guess, thresholdout
from holdfast.holdout.design import Design
from holdfast.holdout.label_release import Rows, total
from holdfast.holdout.left import Left
from holdfast.holdout.looks import Transcript
from holdfast.holdout.measured import Reading
from holdfast.holdout.metric import GRID
from holdfast.holdout.outcome import Outcome
from holdfast.holdout.refusal import exhausted
from holdfast.holdout.scores import as_planned
from holdfast.session.answer import Answer

Read = Callable[[list[float], Reading], Answer]


class Guesser:
    """Guess-and-Check, Thresholdout, or guesses that are checked by logistic comparisons, on one design."""

    def __init__(self, plan: Design) -> None:
        self._plan = plan
        self._asker = None if plan.thresholds is None else thresholdout.Asker(plan.thresholds)

    def left(self, planned: int, seen: Transcript) -> Left:
        """What is left of so many planned looks."""
        plan = self._plan
        if plan.thresholds is not None:
            return thresholdout.left(str(seen.state), planned)
        if plan.guesses is not None:
            return checked_guess.left(plan.guesses, planned, seen.failures)
        return guess.left(plan, plan.queries - planned, seen.looks, seen.failures)

    def refuse_beyond(self, looks: int, seen: Transcript) -> None:
        """Before the charge, from public facts only: which guesses failed is in the answers."""
        plan = self._plan
        if plan.guesses is not None and looks > 1:
            raise InputError(
                "expected a mean over rows for mode='guesses', got a ratio; use accuracy or a loss"
            )
        if plan.thresholds is not None:
            left = thresholdout.hits_left(str(seen.state))
        elif plan.guesses is not None:
            left = plan.guesses.alarms + plan.guesses.answers - seen.failures
        else:
            fits = (n for n in range(looks, 0, -1) if guess.answerable(plan, seen.looks, seen.failures, n))
            left = next(fits, 0)
        if left < looks:
            raise exhausted(plan, looks, seen.failures, left)

    def release(self, sides: list[Rows], said: float | None, read: Read, seen: Transcript) -> Outcome:
        """What a guess comes to, after what was answered before; without one, the middle of the range."""
        self.refuse_beyond(len(sides), seen)
        plan, state, failed, means = self._plan, seen.state, 0, []
        guessed, scale = 0.5 if said is None else said, plan.rows * GRID
        told = as_planned(plan, len(sides))
        # Places count answers: a look that crashed released nothing, so it has none until it is resumed.
        for place, side in enumerate(sides, seen.looks + 1):
            if self._asker is not None:
                state, noisy = self._asker.ask(str(state), total(side), round(guessed * scale))
                value = None if noisy is None else noisy / scale
            elif plan.guesses is not None:
                value, told = checked_guess.check_guess(
                    plan.guesses, str(state), seen.failures, total(side), guessed, told.rho
                )
                state = None  # it stays as it was drawn
            else:
                value = guess.check_guess(plan, place, seen.failures + failed, total(side), guessed)
            failed += value is not None
            means.append(guessed if value is None else value)
        answer = read(means, told)
        words = "the holdout spoke" if failed else "the guess stands"
        return Outcome(
            replace(answer, explanation=f"{words}; {answer.explanation}"), failed=failed, state=state
        )


def first_state(plan: Design) -> str | None:
    """The secret state before the first look: where there is a noisy threshold, that."""
    if plan.thresholds is not None:
        return thresholdout.open_vector(plan.thresholds)
    return None if plan.guesses is None else checked_guess.open_threshold(plan.guesses)
