"""When an answer is recorded and when its reply leaves: at public times, so that neither tells about the rows."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


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

    @property
    def at_any_time(self) -> bool:
        """Whether nothing has to wait."""
        return self.quantum <= 0

    async def wait(self) -> None:
        """Come back when the reply may leave."""
        await _sleep_until(self._due(0))

    async def until_record(self) -> None:
        """Come back when an answer may be recorded."""
        await _sleep_until(self._due(self.quantum / 2))

    def wait_to_record(self) -> None:
        """The same in a thread beside the event loop."""
        due = self._due(self.quantum / 2)
        while (left := due - time.perf_counter()) > 0:
            time.sleep(left)

    def _due(self, early: float) -> float:
        now = time.perf_counter()
        return deadline(self.arrival - early, now, self.quantum) if self.quantum > 0 else now

    @contextmanager
    def during(self) -> Iterator[None]:
        """What is recorded meanwhile, in this thread or task, waits for this request's times."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


_current: ContextVar[Release] = ContextVar("release")


def current() -> Release:
    """The times of the request under way in this thread or task; without one, any time will do."""
    return _current.get(Release(0.0))


async def _sleep_until(due: float) -> None:
    while (left := due - time.perf_counter()) > 0:
        await asyncio.sleep(left)
