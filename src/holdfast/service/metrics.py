"""Counts for the operator, of all workers together. Nothing in them depends on a row of a table but what its ledger
counts, which owners and auditors may see."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from threading import Lock
from typing import Any

from holdfast import __version__

EDGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_FLUSH_SECONDS = 1.0
KINDS = {
    "requests_total": ("counter", "requests, by method, route and status"),
    "request_seconds": (
        "histogram",
        "how long a request took, until its reply had left, by method and route",
    ),
    "failures_total": ("counter", "requests that ended in 5xx, by the code of the problem"),
    "start_time_seconds": ("gauge", "when the oldest worker that counts here began"),
    "workers": ("gauge", "workers that have counted something since the gateway was started"),
    "ready": ("gauge", "1 if this check of readiness passes, by check"),
    "budget_limit": ("gauge", "the cap of a table, in its currency"),
    "budget_spent": ("gauge", "what was charged to a table, in its currency"),
    "answers": ("gauge", "answers given about a table, without those about units that are set aside"),
    "answers_promised": (
        "gauge",
        "answers that a table's intervals were promised for; absent if no number was",
    ),
    "information_told": ("gauge", "how much a table's answers have told of its rows (docs/theorems.md)"),
    "validity_covered": ("gauge", "1 while the leave-out theorem covers all that was told of a table"),
    "ledger_entries": ("gauge", "charges in a table's ledger"),
    "ledger_readable": ("gauge", "1 if a table's ledger can be read"),
    "ledger_commit_seconds": ("gauge", "for how long the commit that is under way has been"),
}
"""Every name, after `holdfast_`, with its kind and what it says."""


class Metrics:
    """Counts since the gateway was started, in Prometheus' text format.

    Guarantee: what a worker has counted is in the replies of all workers after about a second, and stays there when
    the worker ends: each keeps a file of its own in `folder`, and adds up all files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock, self._start = folder, Lock(), time.time()
        self._file = folder / f"{os.getpid()}-{secrets.token_hex(4)}.json"
        self._requests: Counter[tuple[str, ...]] = Counter()
        self._seconds: Counter[tuple[str, ...]] = Counter()
        self._sums: Counter[tuple[str, ...]] = Counter()
        self._failures: Counter[tuple[str, ...]] = Counter()
        self._flushed = 0.0

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """One request. `route` is the pattern, not the path, which could hold anything."""
        edge = bisect_left(EDGES, seconds)
        with self._lock:
            self._requests[method, route, str(status)] += 1
            self._seconds[method, route, str(edge)] += 1
            self._sums[method, route] += seconds  # type: ignore[assignment]

    def failed(self, code: str) -> None:
        """A request that ended in 5xx."""
        with self._lock:
            self._failures[(code,)] += 1

    def flush(self, *, now: bool = False) -> None:
        """Let the other workers know, if a second has passed. For a thread: it writes a file."""
        if not now and time.monotonic() - self._flushed < _FLUSH_SECONDS:
            return
        self._flushed = time.monotonic()
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps(self._snapshot()))
        fresh.replace(self._file)

    def clear(self) -> None:
        """Forget the workers of an earlier start."""
        for file in self._folder.glob("*.json"):
            file.unlink(missing_ok=True)

    def text(self, gauges: Iterable[tuple[str, dict[str, str], float]] = ()) -> str:
        """All counts of all workers, and these gauges: name, labels, value."""
        workers = [self._snapshot(), *self._others()]
        whole = {part: Counter[tuple[str, ...]]() for part in ("requests", "seconds", "sums", "failures")}
        for worker in workers:
            for part, counter in whole.items():
                for *labels, value in worker[part]:
                    counter[tuple(labels)] += value
        lines: dict[str, list[str]] = {name: [] for name in KINDS}
        for (method, route, status), count in sorted(whole["requests"].items()):
            _add(lines["requests_total"], "requests_total", count, method=method, route=route, status=status)
        for (code,), count in sorted(whole["failures"].items()):
            _add(lines["failures_total"], "failures_total", count, code=code)
        for (method, route), seconds in sorted(whole["sums"].items()):
            total, labels = 0, {"method": method, "route": route}
            for index, edge in enumerate((*EDGES, None)):
                total += whole["seconds"][method, route, str(index)]
                le = "+Inf" if edge is None else f"{edge:g}"
                _add(lines["request_seconds"], "request_seconds_bucket", total, **labels, le=le)
            _add(lines["request_seconds"], "request_seconds_sum", seconds, **labels)
            _add(lines["request_seconds"], "request_seconds_count", total, **labels)
        _add(lines["start_time_seconds"], "start_time_seconds", min(worker["start"] for worker in workers))
        _add(lines["workers"], "workers", len(workers))
        for name, labels, value in gauges:
            _add(lines[name], name, value, **labels)
        told = []
        for name, (kind, words) in KINDS.items():
            told += [f"# HELP holdfast_{name} {words}", f"# TYPE holdfast_{name} {kind}", *lines[name]]
        return "\n".join(told) + "\n"

    def _snapshot(self) -> dict[str, Any]:
        with self._lock:
            counted = {
                "requests": self._requests, "seconds": self._seconds, "sums": self._sums, "failures": self._failures,
            }  # fmt: skip
            parts = {
                part: [[*labels, value] for labels, value in kept.items()] for part, kept in counted.items()
            }
        return {"version": __version__, "start": self._start} | parts

    def _others(self) -> list[dict[str, Any]]:
        """What the other workers wrote last; what another release wrote does not count here."""
        found = []
        for file in self._folder.glob("*.json"):
            with contextlib.suppress(OSError, ValueError):
                worker = json.loads(file.read_text())
                if file != self._file and worker.get("version") == __version__:
                    found.append(worker)
        return found


def _add(lines: list[str], name: str, value: float, **labels: str) -> None:
    inside = ",".join(f'{label}="{text}"' for label, text in labels.items())
    lines.append(f"holdfast_{name}{'{' + inside + '}' if inside else ''} {value!r}")
