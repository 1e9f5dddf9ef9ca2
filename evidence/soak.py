"""A day of a gateway in an hour: at 80% of its rate, on a clock that runs 24 times faster, with a ledger of a million.

taskset -c 1 nice -n -10 python evidence/soak.py                     an hour and a quarter; writes evidence/soak.md
python evidence/soak.py --minutes 6 --minute 10 --small 1000        a taste
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "evidence" / "soak.md"
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import numpy as np  # noqa: E402  (the path must be set first)

import holdfast as hf  # noqa: E402
from evidence.large_ledger import Measured, grown, measure  # noqa: E402
from evidence.soak_load import ANALYSTS, CONNECTIONS, Load, Seen  # noqa: E402

TIMES, SHARE, QUANTUM = 24, 0.8, 0.1
ROWS = 100_000
MINUTES, SMALL, LARGE = 60, 100_000, 1_000_000
ROTATED = 10
"""After so many minutes the log is moved away, as logrotate does it."""
FLAT = {"own MB": (0.05, 0.0), "handles": (0.0, 2.0), "p99 ms": (0.25, 0.0)}
"""By how much each may grow over the last three quarters: a part of its median, or so many."""


@dataclass(frozen=True)
class Minute:
    """What one minute showed. `own` is what the gateway has written, and no page of a library: those become its own
    when another process ends that has them too."""

    seconds: list[float]
    kinds: Counter[str]
    wrong: Counter[str]
    own: float
    resident: float
    handles: int
    entries: int
    processor: float
    load: float

    def quantile(self, part: float) -> float:
        """Milliseconds within which such a part of the replies came."""
        ordered = sorted(self.seconds)
        return 1000 * ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else float("nan")

    def measures(self) -> dict[str, float]:
        """What must stay flat."""
        return {"own MB": self.own, "handles": float(self.handles), "p99 ms": self.quantile(0.99)}


def slope(values: Sequence[float]) -> float:
    """The median of the slopes between all pairs (Theil and Sen): some odd minutes do not move it."""
    pairs = [
        (later - value) / (place - first)
        for first, value in enumerate(values)
        for place, later in enumerate(values)
        if place > first
    ]
    return statistics.median(pairs) if pairs else 0.0


def growths(minutes: Sequence[Minute]) -> dict[str, tuple[float, float, float]]:
    """Of each measure over the last three quarters: its median, by how much it grew, and by how much it may."""
    last, found = minutes[len(minutes) // 4 :], {}
    for name, (part, more) in FLAT.items():
        values = [minute.measures()[name] for minute in last]
        middle = statistics.median(values)
        found[name] = middle, slope(values) * (len(values) - 1), part * middle + more
    return found


def verdict(minutes: Sequence[Minute]) -> list[str]:
    """What is not flat, and what was answered otherwise than it should be."""
    found = growths(minutes).items()
    grew = [f"{name} grew by {by:.1f}, {most:.1f} allowed" for name, (_, by, most) in found if by > most]
    wrong = sum((minute.wrong for minute in minutes), Counter[str]())
    grew += [f"no reply in minute {place}" for place, one in enumerate(minutes, 1) if not one.seconds]
    return grew + [f"{times} times {kind}" for kind, times in wrong.items()]


@dataclass(frozen=True)
class Served:
    """A gateway in a process of its own."""

    folder: Path
    process: int
    port: int

    @property
    def ledger(self) -> Path:
        """The file of the table's ledger."""
        return next((self.folder / "data").rglob("*.sqlite"))

    def entries(self) -> int:
        """How many were charged, as the file says."""
        with closing(sqlite3.connect(f"file:{self.ledger}?mode=ro", uri=True)) as file:
            return int(file.execute("SELECT coalesce(max(table_entries), 0) FROM entries").fetchone()[0])

    def minute(self, seen: Seen, processor: float, load: float) -> Minute:
        """What is true now, beside what was seen."""
        text = Path(f"/proc/{self.process}/smaps_rollup").read_text()
        own = int(re.findall(r"^Private_Dirty:\s+(\d+)", text, re.MULTILINE)[0]) / 1024
        resident = int(re.findall(r"^Rss:\s+(\d+)", text, re.MULTILINE)[0]) / 1024
        handles = len(os.listdir(f"/proc/{self.process}/fd"))
        return Minute(
            seen.seconds, seen.kinds, seen.wrong, own, resident, handles, self.entries(),
            self.processor() - processor, sum(os.times()[:2]) - load,
        )  # fmt: skip

    def processor(self) -> float:
        """The seconds of processor time that it has taken."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def prepare(folder: Path) -> tuple[str, list[str]]:
    """A table with analysts: the owner's token, and the analysts' ids."""
    from holdfast.service import auth
    from holdfast.service.gateway import Gateway
    from holdfast.service.settings import Settings

    (folder / "data").mkdir(parents=True)
    columns = {"age": np.arange(ROWS) % 100, "income": np.arange(ROWS) * 7919.0 % 10**9}
    schema = hf.Schema(age=hf.Integer(0, 99), income=hf.Real(0, 10**9))
    hf.open(columns, schema).save(folder / "data/people.hf")
    with closing(Gateway(Settings(folder, anchors=folder / "anchors"))) as opened:
        owner = opened.catalog.add_person("owner", "owner")
        opened.register(
            owner, "people", "people.hf", None, name="people", budget={"rho": 10.0}, confidence=0.95,
            queries=None, target="table",
        )  # fmt: skip
        people = [opened.catalog.add_person(f"ann {number}", "analyst").id for number in range(ANALYSTS)]
        for person in people:
            opened.admit(owner, "people", person, {"rho": 10.0 / ANALYSTS})
        return auth.issue(opened.catalog, owner.id), people


@contextmanager
def serving(folder: Path, times: float = TIMES, program: Sequence[str] = ()) -> Iterator[Served]:
    """`holdfast serve` on a clock that runs faster; `program` is another way to start it."""
    environment = os.environ | {
        "HOLDFAST_ANCHORS": str(folder / "anchors"), "HOLDFAST_REQUESTS_PER_SECOND": "0",
        "PYTHONUNBUFFERED": "1",
    }  # fmt: skip
    started = program or [sys.executable, str(ROOT / "evidence" / "fast_clock.py")]
    flags = ["--folder", str(folder), "--port", "0", "--quantum", str(QUANTUM * times)]
    process = subprocess.Popen(
        [*started, str(times), "serve", *flags, "--log", str(folder / "gateway.log")],
        env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield Served(folder, process.pid, int(re.findall(r":(\d+)  ", process.stdout.readline())[0]))
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


async def fastest(server: Served, load: Load, entries: int) -> float:
    """Requests a second with every connection asking as soon as it is answered, until the ledger has so many entries;
    the middle of spells of five seconds, without the first."""
    rates = list[float]()
    await load.ready()
    while server.entries() < entries or len(rates) < 2:
        begun = time.perf_counter()
        await load.run(begun + 5.0)
        seen = load.taken()
        if seen.wrong:
            raise RuntimeError(f"expected no errors, got {dict(seen.wrong)}")
        rates.append(len(seen.seconds) / (time.perf_counter() - begun))
    return statistics.median(rates[1:])


async def soak(
    server: Served, load: Load, rate: float, minutes: int, minute: float = 60.0
) -> tuple[list[Minute], list[str]]:
    """What each minute showed, at so many requests a second; and whether as much was charged as was answered."""
    await load.ready()
    begun, found, before = time.perf_counter(), list[Minute](), server.entries()
    asking = asyncio.create_task(load.run(begun + minutes * minute, rate))
    for number in range(1, minutes + 1):
        processor, own = server.processor(), sum(os.times()[:2])
        await asyncio.sleep(begun + number * minute - time.perf_counter())
        found.append(server.minute(load.taken(), processor, own))
        if number % ROTATED == 0:
            (server.folder / "gateway.log").replace(server.folder / "gateway.log.1")
        print(number, {name: round(value, 1) for name, value in found[-1].measures().items()}, flush=True)
    await asking
    told = sum((one.kinds for one in found), load.taken().kinds)["new"]
    charged = server.entries() - before
    return found, [] if told == charged else [f"{told:,} new answers were told and {charged:,} charged"]


def section(
    command: str, rate: float, minutes: Sequence[Minute], measured: Sequence[Measured], wrong: Sequence[str]
) -> str:
    """The page."""
    every = max(1, len(minutes) // 12)
    shown = "\n".join(_row(place + 1, minutes[place]) for place in range(every - 1, len(minutes), every))
    rule = "\n".join(
        f"| {name} | {middle:,.1f} | {by:+,.2f} | {most:,.2f} |"
        for name, (middle, by, most) in growths(minutes).items()
    )
    kinds = sum((one.kinds for one in minutes), Counter[str]())
    asked = ", ".join(f"{kind}: {times:,}" for kind, times in kinds.most_common())
    served, own = sum(len(one.seconds) for one in minutes), sum(one.processor for one in minutes)
    loads, on = sum(one.load for one in minutes), len(os.sched_getaffinity(0))
    return f"""
## A day of a gateway in an hour

Written by `{command}`. `holdfast serve`, one process over one folder, SQLite with full sync; its clock runs {TIMES}
times faster (`evidence/fast_clock.py`), so that tokens of one hour end in 150 seconds. Replies leave at multiples of
{QUANTUM:g} s of the right time. {ANALYSTS} analysts on {CONNECTIONS} connections, each closed after 500 requests, ask
at {SHARE:.0%} of the rate that was measured just before ({rate:,.0f} requests a second); latency counts from the moment
at which a request was due. The log is moved away every {ROTATED} minutes. Gateway and load shared {on} processor(s):
the gateway took {1000 * own / max(1, served):.2f} ms a request, the load {1000 * loads / max(1, served):.2f}. The
machine had other work too: a load of {os.getloadavg()[2]:.1f} over the last quarter of an hour.

| minute | requests | p50 ms | p99 ms | own MB | resident MB | handles | ledger entries | tokens ended | wrong |
|---|---|---|---|---|---|---|---|---|---|
{shown}

Asked: {asked}.

Flat means: the median slope between all pairs of the last three quarters of the minutes, times their length, is at
most what is allowed.

| | median | growth | allowed |
|---|---|---|---|
{rule}

### {measured[-1].entries:,} entries in one ledger

The same folder before and after, in processor time: from the start of `holdfast serve` to its first answer; the page of
the last answers and the budget (each of 200); `GET …/answers` of one analyst, whole; `holdfast ledger verify` and
`export`; and the most memory that each had. Allowed: starts and pages twice as long; what reads all, half as much
again as there is more of it; memory half as much again.

{grown(measured)}

{"; ".join(wrong) + "." if wrong else "Nothing went wrong: what was charged is what was told, and the chain holds."}
"""


def _row(number: int, one: Minute) -> str:
    wrong, ended = sum(one.wrong.values()), one.kinds["token ended"]
    return (
        f"| {number} | {len(one.seconds):,} | {one.quantile(0.5):.0f} | {one.quantile(0.99):.0f} | {one.own:.1f}"
        f" | {one.resident:.1f} | {one.handles} | {one.entries:,} | {ended} | {wrong} |"
    )


def run(options: argparse.Namespace) -> tuple[str, bool]:
    """The page, and whether something was wrong."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        folder = Path(place) / "server"
        owner, people = prepare(folder)

        async def before() -> tuple[float, int]:
            with serving(folder) as server:
                load = Load(server.port, owner, people)
                return await fastest(server, load, options.small), load.next_number()

        async def day(first: int) -> tuple[list[Minute], list[str]]:
            with serving(folder) as server:
                load = Load(server.port, owner, people, first)
                return await soak(server, load, SHARE * rate, options.minutes, options.minute)

        rate, first = asyncio.run(before())
        measured = [measure(folder, owner, people[0])]
        print(f"{time.perf_counter() - begun:.0f} s: {rate:.0f} a second, {measured[0]}", flush=True)
        minutes, wrong = asyncio.run(day(first))
        measured.append(measure(folder, owner, people[0]))
        print(f"{time.perf_counter() - begun:.0f} s: {measured[1]}", flush=True)
    wrong += verdict(minutes) + [problem for one in measured for problem in one.problems(measured[0])]
    full = options.minutes == MINUTES
    command = "taskset -c 1 nice -n -10 python evidence/soak.py" if full else "a taste"
    if full and measured[-1].entries < LARGE:
        wrong.append(f"{measured[-1].entries:,} entries, fewer than {LARGE:,}")
    return section(command, rate, minutes, measured, wrong), bool(wrong)


def main(arguments: list[str] | None = None) -> int:
    """Exit status 1 if something was not flat, or wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=int, default=MINUTES)
    parser.add_argument("--minute", type=float, default=60.0, help="seconds in a minute")
    parser.add_argument("--small", type=int, default=SMALL, help="entries before the soak")
    parser.add_argument("--folder", type=Path, help="where the gateway's folder is made")
    parser.add_argument("--output", type=Path, default=RECORD)
    options = parser.parse_args(arguments)
    text, wrong = run(options)
    options.output.write_text(text)
    print(text)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
