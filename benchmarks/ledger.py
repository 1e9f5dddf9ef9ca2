"""What a charged answer costs on disk: SQLite with full sync, beside its bare rate of one-row commits.

An answer is two commits (the reservation, then the answer), chained, anchored outside and told after the sync.
Threads that come at the same time share a commit. The goal is 70% of the bare rate or more, with 16 threads. Bare
commits and answers take turns, several times; medians are shown. Latencies are of whole answers, in milliseconds.
"""

from __future__ import annotations

import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median, quantiles

from holdfast.ledger import Account, Charge, MemoryLedger, SqliteLedger, verify

GOAL = 0.7
PLAN = '{"question": "fraction where age > 40 and smoker = \'yes\'", "recipe": {"mechanism": "votes", "rows": 13973}}'
ANSWER = '{"value": 0.314159, "low": 0.30, "high": 0.33, "explanation": "' + 400 * "." + '"}'


def rows(quick: bool = False, data: Path | None = None) -> list[dict[str, object]]:
    """One row for each number of threads, then what a charge costs in memory."""
    answers, turns = (64, 1) if quick else (1600, 5)
    if data is not None:
        data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=data) as folder, _ledger(Path(folder)) as ledger:
        found = [_measured(ledger, Path(folder), threads, answers, turns) for threads in (1, 4, 16, 64)]
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
    ledger: SqliteLedger, folder: Path, threads: int, answers: int, turns: int
) -> dict[str, object]:
    bare, charged, times = [], [], []
    for _ in range(turns):
        bare.append(_bare(folder / "bare.sqlite", answers))
        rate, took = _answers(ledger, threads, answers)
        charged.append(rate)
        times += took
    ratio = median(ours / theirs for ours, theirs in zip(charged, bare, strict=True))
    cuts = quantiles(times, n=100)
    found = {
        "threads": threads,
        "bare commits/s": round(median(bare)),
        "charged answers/s": round(median(charged)),
        "ratio": round(ratio, 2),
        "p50 ms": round(1e3 * cuts[49], 2),
        "p99 ms": round(1e3 * cuts[98], 2),
    }
    return found | ({"goal met": ratio >= GOAL} if threads >= 16 else {})


def _bare(path: Path, commits: int) -> float:
    """One-row transactions a second, in one thread: the disk's own pace."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE IF NOT EXISTS facts (id INTEGER PRIMARY KEY, text TEXT)")
        begun = time.perf_counter()
        for _ in range(commits):
            connection.execute("INSERT INTO facts (text) VALUES ('one row')")
        return commits / (time.perf_counter() - begun)


def _answers(ledger: SqliteLedger, threads: int, answers: int) -> tuple[float, list[float]]:
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
