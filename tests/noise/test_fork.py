"""Eight forked children share no bits and no noise with each other or with their parent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from holdfast import process
from holdfast.noise.kept_draws import KeptDraws
from holdfast.noise.law import Law

SCRIPT = Path(__file__).with_name("forked.py")


def repeated(broken: str) -> set[str]:
    """The kinds of draw that two of the nine processes have in common."""
    run = subprocess.run(
        [sys.executable, str(SCRIPT), broken], capture_output=True, text=True, check=True, env=os.environ
    )
    processes = json.loads(run.stdout)
    assert len(processes) == 9
    found = set()
    for kind in processes[0]:
        values = [v for p in processes for v in p[kind]]
        if len(set(values)) < len(values):  # by accident with probability below 1e-12
            found.add(kind)
    return found


def test_children_share_nothing() -> None:
    assert repeated("none") == set()


@pytest.mark.parametrize("left_out", ["id", "hook"])
def test_each_of_the_two_guards_is_enough(left_out: str) -> None:
    assert repeated(left_out) == set()


def test_a_stream_that_survives_the_fork_is_caught() -> None:
    assert {"own", "system", "words"} <= repeated("stream")


def test_kept_draws_that_survive_the_fork_are_caught() -> None:
    assert repeated("draws") == {"laplace", "gaussian"}


class Interrupted(KeptDraws):
    """Before each step of forgetting, another thread asks for a draw."""

    def __setattr__(self, name: str, value: object) -> None:
        asked = getattr(self, "ready_for", None)
        if asked is not None and self._process == process.current() and self._ready:
            asked.append(self._ready[-1])
        super().__setattr__(name, value)


def test_no_thread_of_a_child_finds_a_draw_of_the_parent_while_they_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a fork that skips Python's hooks, every thread forgets for itself; the sign of the process comes last."""
    kept = Interrupted(Law.of(Fraction(1, 2**50), Fraction(0), two_sided=True))
    kept.ready_for = None  # type: ignore[attr-defined]
    for _ in range(50):
        kept.one()
    assert kept._ready
    found: list[int] = []
    kept.ready_for = found  # type: ignore[attr-defined]
    monkeypatch.setattr("os.getpid", lambda: -1)
    kept.forget()
    kept._drawn = kept._drawn  # one step more, as another thread comes after the last
    assert found == []
