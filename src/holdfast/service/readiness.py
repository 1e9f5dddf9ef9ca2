"""Whether a gateway can answer: databases, disk, the writers of ledgers, the clock. And what its ledgers stand at."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

from holdfast.errors import HoldfastError
from holdfast.ledger.entry import UNCOVERED, UNIT
from holdfast.privacy.filter import UNITS
from holdfast.service.dataset import Dataset
from holdfast.service.gateway import Gateway
from holdfast.service.logs import note, note_failure
from holdfast.session.set_aside import answers_aside

SECONDS = 2.0
"""How long a check may take before it counts as failed."""
STALLED_SECONDS = 30.0
"""A commit that has been under way for so long is one that does not come to its end."""
LEAST_FREE = 64 * 2**20
"""So many bytes must be free where ledgers, records and anchors are."""
CLOCK_SECONDS = 5.0
"""By so much the clock may be set back."""
Gauge = tuple[str, dict[str, str], float]


class Readiness:
    """The checks, each in a thread of its own: one that hangs is told, keeps nobody, and is not begun twice."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._checks: dict[str, Callable[[], bool]] = {
            "records": self._records, "disk": self._disk, "ledgers": self._ledgers, "clock": self._clock,
        }  # fmt: skip
        self._threads = ThreadPoolExecutor(len(self._checks) + 1, thread_name_prefix="readiness")
        self._under_way: dict[str, Future[bool]] = {}
        self._gauging: Future[list[Gauge]] | None = None
        self._lock, self._begun = Lock(), (time.time(), time.monotonic())
        self._stalled: set[str] = set()

    async def checked(self) -> dict[str, bool]:
        """Each check, and whether it passes within SECONDS."""
        waited = {name: asyncio.wrap_future(self._start(name)) for name in self._checks}
        await asyncio.wait(waited.values(), timeout=SECONDS)
        return {name: one.done() and not one.cancelled() and one.result() for name, one in waited.items()}

    async def gauges(self) -> list[Gauge]:
        """What the metrics say of checks and ledgers; of the ledgers nothing if they take longer than SECONDS."""
        with self._lock:
            if self._gauging is None or self._gauging.done():
                self._gauging = self._threads.submit(lambda: list(self._of_ledgers()))
        ready, waited = await self.checked(), asyncio.wrap_future(self._gauging)
        await asyncio.wait([waited], timeout=SECONDS)
        found = waited.result() if waited.done() else []
        return [("ready", {"check": name}, int(passes)) for name, passes in ready.items()] + found

    async def watch(self, every: float = 5.0) -> None:
        """Log a writer that no longer commits, once; and when it does again. For ever."""
        while True:
            await asyncio.sleep(every)
            for key, seconds in self._gateway.tables.committing():
                if seconds > STALLED_SECONDS and key not in self._stalled:
                    self._stalled.add(key)
                    note("stalled", logging.ERROR, ledger=key, seconds=round(seconds, 1))
                elif seconds <= STALLED_SECONDS and key in self._stalled:
                    self._stalled.discard(key)
                    note("recovered", logging.WARNING, ledger=key)

    def close(self) -> None:
        """Let go; what hangs is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _start(self, name: str) -> Future[bool]:
        with self._lock:
            known = self._under_way.get(name)
            if known is None or known.done():
                known = self._under_way[name] = self._threads.submit(self._passes, name)
            return known

    def _passes(self, name: str) -> bool:
        try:
            return self._checks[name]()
        except (HoldfastError, OSError) as error:
            note_failure(error, f"not ready: {name}")
            return False

    def _records(self) -> bool:
        """People, tokens and replies can be read and written."""
        self._gateway.catalog.touch()
        return True

    def _disk(self) -> bool:
        settings = self._gateway.settings
        places = [settings.folder] + ([] if settings.anchors is None else [settings.anchors])
        free = (os.statvfs(place) for place in places if place.exists())
        return all(one.f_bavail * one.f_frsize >= LEAST_FREE for one in free)

    def _ledgers(self) -> bool:
        """No commit hangs, and every ledger that is open can be read."""
        tables = self._gateway.tables
        if any(seconds > STALLED_SECONDS for _, seconds in tables.committing()):
            return False
        for key, _ in tables.committing():
            ledger = tables.ledger(key)
            ledger.totals()
        return True

    def _clock(self) -> bool:
        """The clock was not set back, neither since the start nor behind what was written before."""
        wall, monotonic = self._begun
        expected = wall + time.monotonic() - monotonic
        return time.time() >= max(expected, self._gateway.catalog.latest()) - CLOCK_SECONDS

    def _of_ledgers(self) -> Iterator[Gauge]:
        busy = dict(self._gateway.tables.committing())
        for dataset in self._gateway.tables.all():
            labels = {"dataset": dataset.id}
            yield "ledger_commit_seconds", labels, round(busy.get(dataset.id, 0.0), 3)
            try:
                found = list(self._of_ledger(dataset))
            except HoldfastError:
                found = []
            yield "ledger_readable", labels, int(bool(found))
            yield from ((name, labels, value) for name, value in found)

    def _of_ledger(self, dataset: Dataset) -> Iterator[tuple[str, float]]:
        ledger = self._gateway.tables.ledger(dataset.id)
        whole, cap = ledger.totals(), ledger.limit()
        if cap is not None:
            yield "budget_limit", cap.limit / UNITS
        yield "budget_spent", whole.units / UNITS
        yield "answers", whole.answers - (answers_aside(ledger) if dataset.aside else 0)
        if dataset.queries is not None:
            yield "answers_promised", dataset.queries
        covered = whole.information < UNCOVERED
        yield "validity_covered", int(covered)
        if covered:
            yield "information_told", whole.information * UNIT
        yield "ledger_entries", whole.entries
