"""Was the event that was charged what the release did? Every neighbour is tried, on every path that is asked for."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from laws.releases import Release, Row
from oracles.observed_loss import Played, observed
from oracles.tape import LawBroken, Tape, doors, modules, playing

import holdfast as hf
from holdfast.privacy.filter import UNITS
from holdfast.session.session import Session

Function = tuple[str, str]
"""A file and the name of a function in it."""
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Verdict:
    """What was charged, as events and in the session's currency, path by path; and what the worst neighbour shows."""

    events: frozenset[str]
    charged: tuple[float, ...]
    observed: tuple[float, ...]
    doors: frozenset[str]
    functions: frozenset[Function]

    @property
    def overcharge(self) -> float:
        """How much more than the worst neighbour shows was charged, on the path that shows most."""
        return min(c / o if o else float("inf") for c, o in zip(self.charged, self.observed, strict=True))


def judged(release: Release) -> Verdict | None:
    """The verdict; None where the session refuses. LawBroken where more was done than was charged."""
    with doors():
        if refused(release):
            return None
        paths = [_path(release, seed) for seed in range(len(release.answers))]
    events, charged, worst, passed, functions = zip(*paths, strict=True)
    return Verdict(
        frozenset().union(*events), charged, worst, frozenset().union(*passed), frozenset().union(*functions)
    )


def refused(release: Release) -> bool:
    """Whether the session says no; it must not have charged."""
    with playing(Tape()):
        session = release.opened(release.base)
        try:
            release.ask(session)
        except hf.HoldfastError:
            if list(session._ledger.entries(session.name)):
                raise LawBroken("charged and refused") from None
            return True
    return False


def _path(release: Release, seed: int) -> tuple[Any, ...]:
    """One path through the release's doors: on the table itself, and then the same on all its neighbours."""
    tape = Tape(answers=release.answers[seed], seed=seed)
    with _seen() as functions:
        session, told = _play(release, release.base, tape)
    first, events = _played(release, release.base, tape), _events(session)
    worst = 0.0
    for rows in release.neighbours():
        replay = Tape(script=tape, seed=seed)
        other, same = _play(release, rows, replay)
        if same != told:
            raise LawBroken("every door said the same, but the neighbour was told something else")
        if _events(other) != events:
            raise LawBroken("what is charged depends on the rows")
        worst = max(worst, observed(first, _played(release, rows, replay), session.currency))
    charged = session._ledger.totals(session.name).units / UNITS
    if worst > charged * (1 + _ROUNDING) + _ROUNDING:
        raise LawBroken(f"charged {charged:.6g} ({session.currency}), but a neighbour shows {worst:.6g}")
    return events, charged, worst, {step.door for step in tape.steps}, functions


def _play(release: Release, rows: Sequence[Row], tape: Tape) -> tuple[Session, Any]:
    with playing(tape):
        session = release.opened(rows)
        return session, _plain(release.ask(session))


def _played(release: Release, rows: Sequence[Row], tape: Tape) -> Played:
    @cache
    def only(row: int) -> Tape:
        alone = Tape(script=tape, only_row=row)
        _play(release, rows, alone)
        return alone

    return Played(rows if release.alike else tuple(enumerate(rows)), tape, only)


def _events(session: Session) -> tuple[str, ...]:
    return tuple(entry.event for entry in session._ledger.entries(session.name))


def _plain(told: Any) -> Any:
    if isinstance(told, hf.Answer):
        return told.to_json()
    return [_plain(part) for part in told] if isinstance(told, list) else told


@contextmanager
def _seen() -> Iterator[set[Function]]:
    """The functions that charge or read rows and were called meanwhile."""
    wanted, called = guarded(), set()

    def notice(frame: Any, event: str, _: Any) -> None:
        place = frame.f_code.co_filename, frame.f_code.co_name
        if event == "call" and place in wanted:
            called.add(place)

    before = sys.getprofile()
    sys.setprofile(notice)
    try:
        yield called
    finally:
        sys.setprofile(before)


@lru_cache
def guarded() -> frozenset[Function]:
    """Every function that charges a ledger or reads a session's rows, by its source text, and all of Session's."""
    found = {
        (inspect.getsourcefile(module) or "", name)
        for module in modules("desk", "planning", "session", "weights", "optimize", "synthesis", "learn")
        for name in _guarded_in(ast.parse(inspect.getsource(module)))
    }
    return frozenset(found) | frozenset(asked().values())


def asked() -> dict[str, Function]:
    """Every public method of a session, and where it is written."""
    methods = {n: inspect.unwrap(getattr(Session, n)) for n in dir(Session) if not n.startswith("_")}
    return {
        name: (method.__code__.co_filename, method.__code__.co_name)
        for name, method in methods.items()
        if inspect.isfunction(method)
    }


_CHARGES = {"pay", "paid", "reserve", "Reserve", "for_the_owner"}
_READS = {"totals", "scan", "gather", "draw", "one"}
_ROWS = {"_source", "source", "_admit", "_paid", "paid", "rows"}


def _guarded_in(node: ast.AST, inside: str = "") -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        name = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else inside
        if isinstance(child, ast.Call) and _is_guarded(child.func):
            yield inside
        yield from _guarded_in(child, name)


def _is_guarded(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id in _CHARGES
    if not isinstance(function, ast.Attribute):
        return False
    owner = function.value.func if isinstance(function.value, ast.Call) else function.value
    holder = (
        owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    )
    return function.attr in _CHARGES or (function.attr in _READS and holder in _ROWS)
