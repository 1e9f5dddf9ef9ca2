"""The gateway under load, on a store of 100,000 rows, SQLite with full sync; the load runs in a process beside it.

A charged answer needs two commits, its charge and its answer; those of questions under way at the same time are
committed together. *Bare commits* are one-row inserts into SQLite with the same settings, one after another,
in the same run: before, between and after the others. Goals: 1000 estimates a second; charged answers at 70% of
the bare commits; no growth over 100,000 answers.
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

import holdfast as hf
from benchmarks import load

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


@contextmanager
def gateway(folder: Path, *, workers: int, quantum: float) -> Iterator[Running]:
    """`holdfast serve` over a folder; the table is registered at the first start."""
    environment = os.environ | {
        "HOLDFAST_ANCHORS": str(folder / "anchors"), "HOLDFAST_REQUESTS_PER_SECOND": "0",
        "HOLDFAST_ANSWERING_THREADS": "16", "PYTHONUNBUFFERED": "1",
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


def bare_commits(folder: Path, seconds: float) -> float:
    """One-row inserts a second, each committed and synced."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        connection = sqlite3.connect(Path(place) / "bare.sqlite", isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
        start, count = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            connection.execute("INSERT INTO t (text) VALUES (?)", ("x" * 300,))
            count += 1
        spent = time.perf_counter() - start
        connection.close()
    return count / spent


def rows(quick: bool = False, data: Path = Path("build/bench")) -> list[dict[str, object]]:
    """Estimates and charged answers a second, with their times, and the gateway's memory."""
    data.mkdir(parents=True, exist_ok=True)
    seconds, first = (1.0, 0) if quick else (SECONDS, 0)
    shown: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(dir=data) as place:
        folder = Path(place) / "server"
        commits = [bare_commits(data, seconds / 4)]
        for workers in (1, 2):
            with gateway(folder, workers=workers, quantum=0.0) as server:
                spent, times = load.run(server.port, server.token, "estimate", connections=8, seconds=seconds)
                shown.append(_row(f"estimates, {workers} worker{'s' * (workers > 1)}", spent, times))
        for workers, quantum in ((1, 0.0), (2, 0.0), (1, 0.05)):
            with gateway(folder, workers=workers, quantum=quantum) as server:
                spent, times = load.run(
                    server.port, server.token, "ask", connections=CONNECTIONS, seconds=seconds, first=first
                )
                first += len(times) + CONNECTIONS
                name = f"charged answers, {workers} worker{'s' * (workers > 1)}, quantum {quantum:g} s"
                shown.append(_row(name, spent, times))
            commits.append(bare_commits(data, seconds / 4))
        bare = median(commits)
        for row in shown:
            rate = row["a second"]
            assert isinstance(rate, float)
            row["of bare commits"] = f"{rate / bare:.0%}" if "charged" in str(row["what"]) else ""
        shown.insert(0, {"what": "bare SQLite commits", "a second": bare, "of bare commits": "100%"})
        shown += _growth(folder, 300 if quick else ANSWERS, first)
    return [row | {"a second": f"{row['a second']:,.0f}"} if "a second" in row else row for row in shown]


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
        "a second": len(times) / seconds,
        "median ms": f"{1000 * median(ordered):.1f}",
        "p99 ms": f"{1000 * ordered[int(0.99 * len(ordered))]:.1f}",
    }
