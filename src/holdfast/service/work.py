"""Work beside the event loop: in turns for each person, and by the clock of its request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from fastapi import Request

from holdfast.service.clock import Release

Result = TypeVar("Result")
_PLANNING_THREADS = 4


class Work:
    """Threads for charged work and for plans. Nobody has more than half of the former, so that nobody has all."""

    def __init__(self, threads: int) -> None:
        self._answering = ThreadPoolExecutor(threads, thread_name_prefix="answering")
        self._planning = ThreadPoolExecutor(_PLANNING_THREADS, thread_name_prefix="planning")
        self._most = max(1, threads // 2)
        self._turns: dict[str, asyncio.Semaphore] = {}

    async def charged(self, request: Request, work: Callable[[], Result]) -> Result:
        """Do charged work. It goes on if the one who asked goes away: what was paid for is answered."""
        turn = self._turns.setdefault(request.state.person.id, asyncio.Semaphore(self._most))
        release: Release = request.state.release

        def timed() -> Result:
            with release.during():
                return work()

        async with turn:
            loop = asyncio.get_running_loop()
            return await asyncio.shield(loop.run_in_executor(self._answering, timed))

    async def planned(self, work: Callable[[], Result]) -> Result:
        """Do work that reads no rows and charges nothing."""
        return await asyncio.get_running_loop().run_in_executor(self._planning, work)

    def close(self) -> None:
        """Finish what is under way."""
        self._planning.shutdown(wait=True, cancel_futures=True)
        self._answering.shutdown(wait=True)
