"""Eight forked children share no bits and no noise with each other or with their parent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_a_stock_that_survives_the_fork_is_caught() -> None:
    assert repeated("stock") == {"laplace", "gaussian"}
