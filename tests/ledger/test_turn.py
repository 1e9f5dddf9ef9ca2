"""A turn at a ledger is one holder's, over threads, processes and hosts, and ends with whoever has it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest
from services import postgres

from holdfast.errors import LedgerError
from holdfast.ledger import Ledger, MemoryLedger
from ledger.homes import HOMES
from ledger.makers import MAKERS

HOLDER = """
import sys, time
from holdfast.ledger import open_ledger
with open_ledger(sys.argv[1], anchors=sys.argv[2]).turn():
    print("mine", flush=True)
    time.sleep(600)
"""


def most_at_once(ledgers: list[Ledger], threads: int = 8, turns: int = 5) -> int:
    """How many threads were in their turn at the same time, at most."""
    inside: list[int] = []
    most: list[int] = []

    def run(ledger: Ledger) -> None:
        for number in range(turns):
            with ledger.turn():
                inside.append(number)
                most.append(len(inside))
                ledger.totals()
                inside.remove(number)

    started = [threading.Thread(target=run, args=(ledgers[i % len(ledgers)],)) for i in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    assert len(most) == threads * turns
    return max(most)


@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_one_has_the_turn(kind: str, tmp_path: Path) -> None:
    """Over several openings of one ledger, as several processes have them."""
    ledgers = [MAKERS[kind](tmp_path) for _ in range(1 if kind == "memory" else 3)]
    assert most_at_once(ledgers) == 1
    for ledger in ledgers:
        ledger.close()


def test_turns_that_nobody_takes_would_be_caught() -> None:
    meeting = threading.Barrier(8)

    class Crowded(MemoryLedger):
        """The broken twin: everybody is let in."""

        def turn(self) -> Any:
            return contextlib.nullcontext()

        def totals(self, session: str | None = None) -> Any:
            meeting.wait()
            return super().totals(session)

    assert most_at_once([Crowded()]) == 8


@pytest.mark.parametrize("kind", sorted(HOMES))
def test_a_turn_ends_with_the_process_that_has_it(kind: str, tmp_path: Path) -> None:
    home = HOMES[kind](tmp_path)
    ledger = home.open()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, home.address, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None and holder.stdout.readline() == "mine\n"
    taken = threading.Event()

    def take() -> None:
        with ledger.turn():
            taken.set()

    waiting = threading.Thread(target=take)
    waiting.start()
    assert not taken.wait(0.3)
    holder.kill()
    holder.communicate()
    waiting.join()
    assert taken.is_set()
    ledger.close()


def test_a_turn_that_fails_is_given_back(tmp_path: Path) -> None:
    for kind in sorted(MAKERS):
        ledger = MAKERS[kind](tmp_path)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError), ledger.turn():
                raise ZeroDivisionError
        ledger.close()


def test_a_turn_lost_with_its_connection_is_another_ones(tmp_path: Path) -> None:
    """The server forgets a holder whose connection broke. Its end of the turn says nothing, and the next begins."""
    first, second = HOMES["postgres"](tmp_path).open(), HOMES["postgres"](tmp_path).open()
    with first.turn():
        with psycopg.connect(postgres().url, autocommit=True) as server:
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
            )
        with second.turn():
            pass
    with first.turn():
        pass
    for ledger in (first, second):
        ledger.close()
    with pytest.raises(LedgerError), first.turn():
        pass
