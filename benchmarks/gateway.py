"""The gateway under load, on a store of 100,000 rows, SQLite with full sync; the load runs in a process beside it.

A charged answer needs two commits, its charge and its answer; those of questions under way at the same time are
committed together. *Bare commits* are one-row inserts into SQLite with the same settings, one after another,
in the same run: before, between and after the others. The disk below syncs in a seventh of a millisecond, and then
Python's own time is the limit: an answer takes about a millisecond of it. So the same is measured on a disk each sync
of which takes 1 and 4 milliseconds longer (benchmarks/slow_sync.c), for bare commits and gateway alike.
*Processor ms each* is what the gateway's processes take for an answer, and *load's* what the load takes beside them:
on a machine that others use too, these two compare and the rates do not.
Goals: 1000 estimates a second; charged answers at 70% of the bare commits; no growth over 100,000 answers.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

import holdfast as hf
from benchmarks import commits, load

ROWS, SECONDS, ANSWERS = 100_000, 8.0, 100_000
CONNECTIONS = 64


@dataclass(frozen=True)
class Running:
    """A gateway in a process, with an analyst's token."""

    port: int
    token: str
    process: int

    def megabytes(self) -> float:
        """What the process holds in memory by itself."""
        text = Path(f"/proc/{self.process}/smaps_rollup").read_text()
        kilobytes = re.findall(r"^(?:Private_Dirty|Private_Clean):\s+(\d+)", text, re.MULTILINE)
        return sum(map(int, kilobytes)) / 1024

    def processor(self) -> float:
        """The seconds of processor time that the gateway's processes have taken."""
        seconds = 0.0
        for place in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                fields = place.read_text().rpartition(")")[2].split()
                if self.process in (int(place.parent.name), int(fields[1])):
                    seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return seconds


@contextmanager
def gateway(
    folder: Path, *, workers: int, quantum: float, disk: dict[str, str] | None = None
) -> Iterator[Running]:
    """`holdfast serve` over a folder; the table is registered at the first start."""
    environment = os.environ | (disk or {}) | {
        "HOLDFAST_ANCHORS": str(folder / "anchors"), "HOLDFAST_REQUESTS_PER_SECOND": "0",
        "PYTHONUNBUFFERED": "1",
    }  # fmt: skip
    token = _registered(folder)
    flags = ["--workers", str(workers), "--quantum", str(quantum)]
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "serve", "--folder", str(folder), "--port", "0", *flags],
        env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    port = int(re.findall(r":(\d+)  ", process.stdout.readline())[0])
    try:
        load.run(port, token, "estimate", connections=4, seconds=1)
        yield Running(port, token, process.pid)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def _registered(folder: Path) -> str:
    """A fresh token for the analyst of the table `people`."""
    from holdfast.service import auth
    from holdfast.service.gateway import Gateway
    from holdfast.service.settings import Settings

    opened = Gateway(Settings(folder, anchors=folder / "anchors"))
    if not opened.catalog.people():
        owner = opened.catalog.add_person("owner", "owner")
        draw = np.random.default_rng(1)
        columns = {"age": draw.integers(0, 100, ROWS), "income": draw.uniform(0, 10**9, ROWS)}
        schema = hf.Schema(age=hf.Integer(0, 99), income=hf.Real(0, 10**9))
        hf.open(columns, schema).save(folder / "data/people.hf")
        opened.register(
            owner, "people", "people.hf", None, name="people", budget={"rho": 10.0}, confidence=0.95,
            queries=None, target="table",
        )  # fmt: skip
        opened.admit(owner, "people", opened.catalog.add_person("ann", "analyst").id, {"rho": 10.0})
    ann = next(person for person in opened.catalog.people() if person.scope == "analyst")
    token = auth.issue(opened.catalog, ann.id)
    opened.close()
    return token


def rows(quick: bool = False, data: Path = Path("build/bench")) -> list[dict[str, object]]:
    """Estimates and charged answers a second, with their times, and the gateway's memory."""
    data.mkdir(parents=True, exist_ok=True)
    seconds = 1.0 if quick else SECONDS
    with tempfile.TemporaryDirectory(dir=data) as place:
        folder = Path(place) / "server"
        shown = [_estimates(folder, workers, seconds) for workers in (1, 2)]
        first = 0
        for name, disk in _disks(Path(place)):
            found, first = _charged(folder, name, disk, seconds, first)
            shown += found
        shown += _growth(folder, 300 if quick else ANSWERS, first)
    return shown


def _disks(place: Path) -> Iterator[tuple[str, dict[str, str]]]:
    yield "", {}
    for milliseconds in (1, 4):
        disk = commits.slower(place, milliseconds)
        if disk is not None:
            yield f"syncs +{milliseconds} ms: ", disk


def _estimates(folder: Path, workers: int, seconds: float) -> dict[str, object]:
    with gateway(folder, workers=workers, quantum=0.0) as server:
        spent, times = load.run(server.port, server.token, "estimate", connections=8, seconds=seconds)
    return _row(f"estimates, {_named(workers)}", spent, times)


def _charged(
    folder: Path, disk_name: str, disk: dict[str, str], seconds: float, first: int
) -> tuple[list[dict[str, object]], int]:
    """Bare commits and charged answers in turns on one disk, and the number of the next question."""
    shown: list[dict[str, object]] = []
    bare = [commits.bare(folder, seconds / 4, disk)]
    for workers, quantum in ((1, 0.0), (2, 0.0), (1, 0.1), (2, 0.1)):
        with gateway(folder, workers=workers, quantum=quantum, disk=disk) as server:
            before = server.processor(), _children()
            spent, times = load.run(
                server.port, server.token, "ask", connections=CONNECTIONS if quantum == 0 else 4 * CONNECTIONS,
                seconds=seconds, first=first,
            )  # fmt: skip
            own, loads = server.processor() - before[0], _children() - before[1]
        first += len(times) + 8 * CONNECTIONS
        name = f"{disk_name}charged answers, {_named(workers)}, quantum {quantum:g} s"
        each = {
            "processor ms each": f"{1000 * own / len(times):.2f}",
            "load's ms each": f"{1000 * loads / len(times):.2f}",
        }
        shown.append(_row(name, spent, times) | each | {"rate": len(times) / spent})
        bare.append(commits.bare(folder, seconds / 4, disk))
    pace = median(bare)
    for row in shown:
        row["of bare commits"] = f"{row.pop('rate') / pace:.0%}"  # type: ignore[operator]
    whole = {"what": f"{disk_name}bare SQLite commits", "a second": f"{pace:,.0f}", "of bare commits": "100%"}
    return [whole, *shown], first


def _children() -> float:
    """The processor time of what was run here and has ended: of loads."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _named(workers: int) -> str:
    return f"{workers} worker{'s' * (workers > 1)}"


def _growth(folder: Path, answers: int, first: int) -> list[dict[str, object]]:
    """The gateway's own memory after a tenth of the answers, and after all."""
    with gateway(folder, workers=1, quantum=0.0) as server:
        shown = []
        for part in (answers // 10, answers - answers // 10):
            load.run(
                server.port, server.token, "ask", connections=CONNECTIONS, seconds=1e4, most=part, first=first
            )
            first += part + CONNECTIONS
            shown.append(server.megabytes())
    return [
        {"what": f"memory after {answers // 10:,} answers", "MB": f"{shown[0]:.0f}"},
        {"what": f"memory after {answers:,} answers", "MB": f"{shown[1]:.0f}"},
    ]


def _row(name: str, seconds: float, times: list[float]) -> dict[str, object]:
    ordered = sorted(times)
    return {
        "what": name,
        "a second": f"{len(times) / seconds:,.0f}",
        "median ms": f"{1000 * median(ordered):.1f}",
        "p99 ms": f"{1000 * ordered[int(0.99 * len(ordered))]:.1f}",
    }
