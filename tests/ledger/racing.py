"""Two processes with 32 threads each race for the last unit of a table; as a program it is one of the two."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

from holdfast.errors import BudgetError, LedgerError
from holdfast.ledger import Account, ChainedLedger, Charge, open_ledger, verify
from holdfast.ledger.sqlite import SqliteDatabase
from holdfast.ledger.writer import Writer

THREADS = 32


def rounds(address: str, folder: Path, count: int, mutant: str = "") -> list[str]:
    """What went wrong in so many rounds: each must have one winner among 64, and no error but a refusal."""
    found: list[str] = []
    (folder / "owner").mkdir(parents=True)
    owner = open_ledger(address, anchors=folder / "owner")
    with ExitStack() as stack:
        stack.callback(owner.close)
        racers = [_racer(stack, address, folder / str(number), mutant) for number in range(2)]
        for turn in range(count):
            owner.set_limit(Account("the table", "zcdp", turn + 1))
            won, broken = (sum(numbers) for numbers in zip(*_both(racers, turn), strict=True))
            if won != 1 or broken:
                found.append(f"round {turn}: {won} winners, {broken} errors")
                if mutant:
                    break
            if owner.totals().units != turn + 1 and not found:
                found.append(f"round {turn}: the total is {owner.totals().units}")
        if not mutant:
            verify(owner)
    return found


def _racer(stack: ExitStack, address: str, anchors: Path, mutant: str) -> subprocess.Popen[str]:
    """Each has anchors of its own, as two machines would: only the database keeps them apart."""
    anchors.mkdir()
    racer = subprocess.Popen(
        [sys.executable, "-m", "ledger.racing", address, str(anchors), mutant],
        cwd=Path(__file__).parent.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    stack.callback(racer.communicate)
    assert racer.stdout is not None and racer.stdout.readline() == "ready\n"
    return racer


def _both(racers: list[subprocess.Popen[str]], turn: int) -> list[list[int]]:
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(f"{turn}\n")
        racer.stdin.flush()
    return [[int(word) for word in racer.stdout.readline().split()] for racer in racers if racer.stdout]


def race(ledger: ChainedLedger, turn: int) -> tuple[int, int]:
    """(winners, errors) among the threads of this process."""
    won, broken, start = [], [], threading.Barrier(THREADS)

    def run(number: int) -> None:
        name = f"{os.getpid()} {number}"
        start.wait()
        try:
            ledger.reserve(name, str(turn), "{}", "{}", Charge(1, 1))
            won.append(1)
        except BudgetError:
            pass
        except LedgerError:
            broken.append(1)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(won), len(broken)


def trusts_memory(writer: Writer) -> bool:
    """Takes the new tip, and keeps the old totals."""
    writer.ledger, writer.place, writer._head = writer.tip()
    writer.begun = writer.place
    return True


def main(address: str, anchors: str, mutant: str) -> None:
    ledger = open_ledger(address, anchors=anchors)
    for number in range(THREADS):
        ledger.open(Account(f"{os.getpid()} {number}", "zcdp", 10**6))
    if mutant == "no lock":  # totals are read before the lock is taken
        SqliteDatabase.BEGIN = "BEGIN DEFERRED"
    if mutant == "trusts memory":
        Writer.goes_on = trusts_memory  # type: ignore[method-assign]
    print("ready", flush=True)
    for line in sys.stdin:
        print(*race(ledger, int(line)), flush=True)
    ledger.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
