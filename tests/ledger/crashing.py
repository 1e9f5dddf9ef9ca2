"""Kill a process that answers questions, at a named place or at any moment, and look at what it leaves.

As a program (`python -m ledger.crashing`) it is the nursery: it has everything imported, reads jobs from its
standard input, forks a child for each, kills it if the job says when, and reports. The children write what they
deliver to the same standard output.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import holdfast as hf
from holdfast.errors import LedgerError
from holdfast.ledger import ChainedLedger, Charge, Entry, MemoryLedger, failpoint, open_ledger, verify

ROWS = {"x": np.arange(1000) * 10**6}
SCHEMA = hf.Schema(x=hf.Integer(0, 10**9))
QUESTIONS = 400
"""The most that a child asks: it would go on for seconds, and is killed before."""


@dataclass(frozen=True)
class Job:
    """One life of a child. `failpoint` or `delay` (seconds after it began to ask, or `warm`, after its first
    answer) ends it."""

    address: str
    anchors: str
    life: int
    threads: int = 1
    failpoint: str = ""
    delay: float | None = None
    warm: bool = False
    mutant: bool = False


@dataclass
class Life:
    """What a child said before it died, and how it died."""

    asked: list[str] = field(default_factory=list)
    delivered: dict[str, str] = field(default_factory=dict)
    killed: bool = False


def session(ledger: Any) -> hf.Session:
    return hf.open(ROWS, SCHEMA, ledger=ledger).session(rho=1e6, target="table", name="s")


def ask(asking: hf.Session, where: str) -> str:
    return asking.fraction(where, within=0.3).to_json()


class ChargesAfterwards:
    """The broken twin of a ledger: an answer leaves first, and is charged when the next one is asked for."""

    def __init__(self, ledger: ChainedLedger) -> None:
        self._ledger = ledger
        self._owed = threading.local()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def reserve(self, session: str, key: str, plan: str, event: str, charge: Charge, holds: object) -> Entry:
        owed = getattr(self._owed, "answer", None)
        if owed is not None:
            entry = self._ledger.reserve(*owed[0])
            self._ledger.record(entry.id, owed[1])
        self._owed.charge = (session, key, plan, event, charge)
        return Entry(0, session, key, plan, event, charge, None)

    def record(self, entry: int, answer: str, *, secret: bool = False, told: int | None = None) -> str:
        self._owed.answer = (self._owed.charge, answer)
        return answer


def live(job: Job, ready: int) -> None:
    """A child's life: ask and deliver until killed."""
    ledger = open_ledger(job.address, anchors=job.anchors)
    asking = session(ChargesAfterwards(ledger) if job.mutant else ledger)
    failpoint.arm(job.failpoint)
    if not job.warm:
        os.write(ready, b".")

    def work(number: int) -> None:
        for question in range(QUESTIONS):
            where = f"x > {job.life * 100_000 + number * 1_000 + question}"
            say({"asks": where})
            say({"asked": where, "answer": ask(asking, where)})
            if job.warm and not question:
                os.write(ready, b".")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(job.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def say(what: dict[str, str]) -> None:
    os.write(1, (json.dumps(what) + "\n").encode())  # short enough for the pipe to keep it whole


def nurse(job: Job) -> None:
    """Fork the child, kill it in time, and report its end."""
    hears, tells = os.pipe()
    child = os.fork()
    if not child:
        try:
            live(job, tells)
        finally:
            os._exit(0)
    os.close(tells)
    os.read(hears, 1)  # returns also if the child dies before
    os.close(hears)
    if job.delay is not None:
        time.sleep(job.delay)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    say({"end": "killed" if os.WIFSIGNALED(status) else "done"})


class Nursery:
    """The program, as its parent sees it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ledger.crashing"],
            cwd=Path(__file__).parent.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, job: Job) -> Life:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(job)) + "\n")
        self._process.stdin.flush()
        life = Life()
        for line in self._process.stdout:
            said = json.loads(line)
            if "end" in said:
                life.killed = said["end"] == "killed"
                return life
            if "asks" in said:
                life.asked.append(said["asks"])
            else:
                life.delivered[said["asked"]] = said["answer"]
        raise AssertionError("the nursery died")

    def close(self) -> None:
        self._process.communicate()


@contextmanager
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    try:
        yield made
    finally:
        made.close()


def problems(job: Job, life: Life, known: set[str], charged: int) -> list[str]:
    """What is wrong after a life; nothing, one hopes. `known` gets all delivered answers so far, and `charged`
    is how many entries there were before this life."""
    found = []
    ledger = open_ledger(job.address, anchors=job.anchors)
    stored = {entry.answer for entry in ledger.entries() if entry.answer is not None}
    known |= set(life.delivered.values())
    found += [f"delivered without its committed charge: {answer}" for answer in sorted(known - stored)]
    entries = ledger.totals().entries
    if entries < charged + len(life.delivered) - (1 if job.mutant else 0):
        found.append("a charge was lost")
    if ledger.totals("s").units != sum(entry.charge.session for entry in ledger.entries("s")):
        found.append("the total is not the sum of the charges")
    found += resumed(ledger, life)
    try:
        verify(ledger)
    except LedgerError as error:
        found.append(str(error))
    ledger.close()
    return found


def resumed(ledger: ChainedLedger, life: Life) -> list[str]:
    """Ask all that was asked and not delivered, twice: what was paid for is not paid again."""
    found, asking = [], session(ledger)
    for where in life.asked:
        if where in life.delivered:
            continue
        before, pending = ledger.totals(), unanswered(ledger)
        first = ask(asking, where)
        if unanswered(ledger) < pending and ledger.totals() != before:
            found.append(f"a reservation was paid twice: {where}")
        after = ledger.totals()
        again = ask(asking, where)
        if again != first or ledger.totals() != after:
            found.append(f"a second retry gave another answer, or was charged: {where}")
        life.delivered[where] = first
    if unanswered(ledger):
        found.append("a reservation cannot be resumed")
    return found


def unanswered(ledger: ChainedLedger) -> int:
    """How many reservations have no answer."""
    return sum(entry.answer is None for entry in ledger.entries())


if __name__ == "__main__":
    import psycopg  # noqa: F401  (what is imported here, the children need not import)

    ask(session(MemoryLedger()), "x > 3")
    for line in sys.stdin:
        nurse(Job(**json.loads(line)))
