"""When a reply leaves: at public times, so that its arrival says nothing about the rows."""

from __future__ import annotations

import asyncio
import math
import time


def deadline(arrival: float, ready: float, quantum: float) -> float:
    """The first whole multiple of `quantum` after the arrival at which the reply is ready; at least one."""
    return arrival + quantum * max(1, math.ceil((ready - arrival) / quantum))


class Release:
    """Holds a reply back until its public time.

    Guarantee: a reply that was ready within the first quantum leaves at the same time after its arrival, whatever
    was computed. A longer computation is told in whole quanta: choose `quantum` above the time that the slowest
    question on the slowest table takes (docs/deploy.md), and it is one for all.
    """

    def __init__(self, quantum: float) -> None:
        self.quantum = quantum
        self.arrival = time.perf_counter()

    async def wait(self) -> None:
        """Come back when the reply may leave."""
        if self.quantum <= 0:
            return
        due = deadline(self.arrival, time.perf_counter(), self.quantum)
        while (left := due - time.perf_counter()) > 0:
            await asyncio.sleep(left)
