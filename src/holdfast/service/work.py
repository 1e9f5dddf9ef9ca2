"""Work beside the event loop: in turns for each person, by the clock of its request, and committed together."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from fastapi import Request

from holdfast.desk.steps import Done, Next, Steps, advance
from holdfast.service.clock import Release
from holdfast.service.public_times import PublicTimesLedger

Result = TypeVar("Result")
_PLANNING_THREADS = 4
_COMMITTING_THREADS = 8
QUICK = 1 << 18
"""Steps of so much work (`Next`) take about a millisecond. The table is small then, so that it is in memory."""


class Work:
    """Threads for charged work, for plans and for commits. Nobody has more than half of the first, so that nobody
    has all."""

    def __init__(self, threads: int) -> None:
        self._answering = ThreadPoolExecutor(threads, thread_name_prefix="answering")
        self._planning = ThreadPoolExecutor(_PLANNING_THREADS, thread_name_prefix="planning")
        self._committing = ThreadPoolExecutor(_COMMITTING_THREADS, thread_name_prefix="committing")
        self._most = max(1, threads // 2)
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._under_way: set[asyncio.Task[object]] = set()

    async def charged(self, request: Request, work: Callable[[], Result]) -> Result:
        """Do charged work. It goes on if the one who asked goes away: what was paid for is answered."""
        release: Release = request.state.release

        def timed() -> Result:
            with release.during():
                return work()

        return await self._beside(request.state.person.id, timed)

    async def _beside(self, person: str, work: Callable[[], Result]) -> Result:
        async with self._turns.setdefault(person, asyncio.Semaphore(self._most)):
            loop = asyncio.get_running_loop()
            return _told(await asyncio.shield(loop.run_in_executor(self._answering, _outcome, work)))

    async def stepwise(self, request: Request, steps: Steps[Result], ledger: PublicTimesLedger) -> Result:
        """The same for an answer in steps, the quick ones of which are taken here, in the event loop.

        Requires: what comes before the first commit, and plans, wait for nobody.
        """
        task = asyncio.create_task(self._taken(request, steps, ledger))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return _told(await asyncio.shield(task))

    async def _taken(
        self, request: Request, steps: Steps[Result], ledger: PublicTimesLedger
    ) -> Done[Result] | Exception:
        try:
            with request.state.release.during():
                step = advance(steps, None)
                while not isinstance(step, Done):
                    if not isinstance(step, Next):
                        step = advance(steps, await ledger.committed(step, self._committing))
                    elif step.work <= QUICK:
                        step = advance(steps, None)
                    elif math.isinf(step.work):  # it reads nothing, and need not queue behind what does
                        loop = asyncio.get_running_loop()
                        step = await loop.run_in_executor(self._committing, advance, steps, None)
                    else:
                        step = await self._beside(request.state.person.id, lambda: advance(steps, None))
                return step
        except Exception as error:
            return error

    async def planned(self, work: Callable[[], Result]) -> Result:
        """Do work that reads no rows and charges nothing."""
        return await asyncio.get_running_loop().run_in_executor(self._planning, work)

    async def close(self) -> None:
        """Finish what is under way."""
        await asyncio.gather(*self._under_way, return_exceptions=True)
        self._planning.shutdown(wait=True, cancel_futures=True)
        for threads in (self._answering, self._committing):
            threads.shutdown(wait=True)


def _outcome(work: Callable[[], Result]) -> Done[Result] | Exception:
    """What comes of work. Errors are outcomes: of those that nobody waits for, asyncio might log the words."""
    try:
        return Done(work())
    except Exception as error:
        return error


def _told(outcome: Done[Result] | Exception) -> Result:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome.result
