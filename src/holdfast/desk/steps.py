"""Work in steps. Whoever takes them says when and where each is done: at once, or beside an event loop."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from holdfast.ledger import Commit, Ledger, Outcome, Survey, outcome

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Next:
    """What the next step will take, a public number: the rows of the table times the length of the question, as far
    as it reads; infinity if it may have to wait for somebody else, and then `place` says at whose."""

    work: float
    place: str = ""


Step = Commit | Survey | Next
Steps = Generator[Step, Any, Result]
"""Yields what the ledger has to commit or to say before the next step, and gets what it says; before a long step it
says so."""


def run(steps: Steps[Result], ledger: Ledger) -> Result:
    """Take all steps, one after the other, in this thread."""
    step = advance(steps, None)
    while not isinstance(step, Done):
        step = advance(steps, None if isinstance(step, Next) else outcome(step, ledger))
    return step.result


@dataclass(frozen=True, slots=True)
class Done(Generic[Result]):
    """All steps are taken."""

    result: Result


def advance(steps: Steps[Result], said: Outcome | None) -> Step | Done[Result]:
    """Take one step, with what the ledger said before it."""
    try:
        return steps.throw(said) if isinstance(said, Exception) else steps.send(said)
    except StopIteration as done:
        return Done(done.value)
