"""Killed at every step and at random moments: nothing leaves without its charge, and no charge is lost."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.ledger import failpoint
from ledger.crashing import Job, Nursery, nursery, problems
from ledger.homes import HOMES

STEPS = [
    f"{place}:{times}"
    for place in failpoint.PLACES
    # A reservation and its answer both pass the steps of a transaction.
    for times in ((1, 2) if place in ("inside the transaction", "after commit", "after anchor") else (1,))
]
MOMENTS = 30


@pytest.fixture(scope="module")
def children() -> Iterator[Nursery]:
    with nursery() as made:
        yield made


@pytest.fixture(params=sorted(HOMES))
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    home = HOMES[request.param](tmp_path)
    home.open().close()
    return home.address


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_every_step(step: str, address: str, tmp_path: Path, children: Nursery) -> None:
    job = Job(address, str(tmp_path / "anchors"), 0, failpoint=step)
    life = children.run(job)
    assert life.killed
    assert len(life.asked) == 1
    assert problems(job, life, set(), 0) == []


def test_killed_at_random_moments_under_load(address: str, tmp_path: Path, children: Nursery) -> None:
    draw, known, charged, delivered = random.Random(9), set[str](), 0, 0
    for number in range(MOMENTS):
        delay, warm = draw.uniform(0, 0.08), number % 2 == 1
        job = Job(address, str(tmp_path / "anchors"), number, threads=4, delay=delay, warm=warm)
        life = children.run(job)
        assert life.killed
        delivered += len(life.delivered)
        assert problems(job, life, known, charged) == []
        charged = len(known)
    assert delivered >= MOMENTS // 2  # it did work when it was killed


def test_the_swapped_order_is_caught(address: str, tmp_path: Path, children: Nursery) -> None:
    """The broken twin delivers first and charges afterwards: the same check sees it, at a step and at random."""

    def caught(number: int, **how: Any) -> bool:
        job = Job(address, str(tmp_path / "anchors"), number, mutant=True, **how)
        life = children.run(job)
        assert life.killed
        return any("without its committed charge" in found for found in problems(job, life, set(), 0))

    assert caught(0, failpoint="before reserve")
    # A random moment may be between two answers, so one of twenty is enough.
    assert any(caught(number, threads=4, delay=0.03, warm=True) for number in range(1, 21))


def test_a_failpoint_is_named_by_the_environment() -> None:
    script = "from holdfast.ledger.failpoint import reached; reached('after draw'); print('alive')"

    def run(**environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=60
        )

    assert run().stdout == "alive\n"
    assert run(HOLDFAST_FAILPOINT="after draw:2").stdout == "alive\n"
    assert run(HOLDFAST_FAILPOINT="after draw").returncode == -9
