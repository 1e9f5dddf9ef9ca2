"""What a charged answer costs on disk: SQLite with full sync, beside its bare rate of one-row commits.

An answer is two commits (the reservation, then the answer), chained, anchored outside and told after the sync.
Threads that come at the same time share a commit; so do charges that one thread puts together, as the gateway does.
The goal is 70% of the bare rate or more, with 16 at once. Bare commits and answers take turns, several times; medians
are shown. Latencies are of whole answers, in milliseconds.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

from benchmarks import commits
from holdfast.ledger import (
    Account,
    Charge,
    Entry,
    MemoryLedger,
    Record,
    Reserve,
    SqliteLedger,
    verify,
)

GOAL = 0.7
Way = Callable[[SqliteLedger, int, int], tuple[float, list[float]]]
PLAN = '{"question": "fraction where age > 40 and smoker = \'yes\'", "recipe": {"mechanism": "votes", "rows": 13973}}'
ANSWER = '{"value": 0.314159, "low": 0.30, "high": 0.33, "explanation": "' + 400 * "." + '"}'


def rows(quick: bool = False, data: Path | None = None) -> list[dict[str, object]]:
    """One row for each number of threads, then what a charge costs in memory."""
    answers, turns = (64, 1) if quick else (1600, 5)
    if data is not None:
        data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=data) as folder, _ledger(Path(folder)) as ledger:
        found = [
            _measured(ledger, Path(folder), way, at_once, answers, turns)
            for way in (_by_threads, _together)
            for at_once in (1, 4, 16, 64)
        ]
        facts, begun = verify(ledger).place, time.perf_counter()
        verify(ledger)
        took = time.perf_counter() - begun
    return [
        *found,
        {"also": "facts verified a second", "figure": round(facts / took)},
        {"also": "charges a second in memory", "figure": round(_in_memory(10**3 if quick else 10**5))},
    ]


@contextmanager
def _ledger(folder: Path) -> Iterator[SqliteLedger]:
    ledger = SqliteLedger(folder / "ledger.sqlite", folder)
    ledger.open(Account("s", "zcdp", 10**18))
    try:
        yield ledger
    finally:
        ledger.close()


def _measured(
    ledger: SqliteLedger, folder: Path, way: Way, at_once: int, answers: int, turns: int
) -> dict[str, object]:
    bare, charged, times = [], [], []
    for _ in range(turns):
        bare.append(commits.bare(folder, 0.25 if turns > 1 else 0.05))
        rate, took = way(ledger, at_once, answers)
        charged.append(rate)
        times += took
    ratio = median(ours / theirs for ours, theirs in zip(charged, bare, strict=True))
    cuts = quantiles(times, n=100)
    found = {
        "at once": f"{at_once} thread{'s' * (at_once > 1)}"
        if way is _by_threads
        else f"{at_once} put together",
        "bare commits/s": round(median(bare)),
        "charged answers/s": round(median(charged)),
        "ratio": round(ratio, 2),
        "p50 ms": round(1e3 * cuts[49], 2),
        "p99 ms": round(1e3 * cuts[98], 2),
    }
    return found | ({"goal met": ratio >= GOAL} if at_once >= 16 else {})


def _together(ledger: SqliteLedger, at_once: int, answers: int) -> tuple[float, list[float]]:
    """Answers a second by one thread that puts so many together, and how long each took."""
    taken: list[float] = []
    first, started = ledger.totals().entries, time.perf_counter()
    for start in range(first, first + answers, at_once):
        begun = time.perf_counter()
        commits = [Reserve("s", str(key), PLAN, "{}", Charge(1, 1)) for key in range(start, start + at_once)]
        entries = [entry for entry in ledger.commit_all(commits) if isinstance(entry, Entry)]
        ledger.commit_all([Record(entry.id, ANSWER) for entry in entries])
        taken += [time.perf_counter() - begun] * len(entries)
    return len(taken) / (time.perf_counter() - started), taken


def _by_threads(ledger: SqliteLedger, threads: int, answers: int) -> tuple[float, list[float]]:
    """Answers a second by so many threads, and how long each took."""
    taken: list[float] = []
    first = ledger.totals().entries

    def work(number: int) -> None:
        for key in range(first + number, first + answers, threads):
            begun = time.perf_counter()
            entry = ledger.reserve("s", str(key), PLAN, "{}", Charge(1, 1))
            ledger.record(entry.id, ANSWER)
            taken.append(time.perf_counter() - begun)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    begun = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return answers / (time.perf_counter() - begun), taken


def _in_memory(charges: int) -> float:
    ledger, one = MemoryLedger(), Charge(1, 1)
    ledger.open(Account("s", "zcdp", 10**18))
    begun = time.perf_counter()
    for key in range(charges):
        ledger.reserve("s", str(key), PLAN, "{}", one)
    return charges / (time.perf_counter() - begun)


if __name__ == "__main__":
    for row in rows():
        print(row)
