"""When an answer is recorded and when its reply leaves: at public times, so that neither tells about the rows."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[Release | None] = ContextVar("release", default=None)


def deadline(arrival: float, ready: float, quantum: float) -> float:
    """The first whole multiple of `quantum` after the arrival at which something is ready; at least one."""
    return arrival + quantum * max(1, math.ceil((ready - arrival) / quantum))


class Release:
    """The public times of one request.

    Guarantee: what is ready within half a quantum is recorded at exactly half a quantum after the arrival, so that
    lists and repeated questions show it from then on, and its reply leaves at exactly one; whatever was computed.
    A longer computation is told in whole quanta: choose `quantum` above twice the time that the slowest question
    on the slowest table takes (docs/deploy.md), and it is one for all.
    """

    def __init__(self, quantum: float) -> None:
        self.quantum = quantum
        self.arrival = time.perf_counter()

    async def wait(self) -> None:
        """Come back when the reply may leave."""
        if self.quantum > 0:
            due = deadline(self.arrival, time.perf_counter(), self.quantum)
            while (left := due - time.perf_counter()) > 0:
                await asyncio.sleep(left)

    def wait_to_record(self) -> None:
        """Come back, in a thread beside the event loop, when an answer may be recorded."""
        if self.quantum > 0:
            due = self._record_due()
            while (left := due - time.perf_counter()) > 0:
                time.sleep(left)

    async def until_record(self) -> None:
        """The same in the event loop."""
        if self.quantum > 0:
            due = self._record_due()
            while (left := due - time.perf_counter()) > 0:
                await asyncio.sleep(left)

    def _record_due(self) -> float:
        return deadline(self.arrival - self.quantum / 2, time.perf_counter(), self.quantum)

    @contextmanager
    def during(self) -> Iterator[None]:
        """What is recorded meanwhile, in this thread, waits for this request's times."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


def wait_to_record() -> None:
    """Wait for the time of the request under way in this thread, if there is one."""
    release = _current.get()
    if release is not None:
        release.wait_to_record()
