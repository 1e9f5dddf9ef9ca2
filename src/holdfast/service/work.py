"""Work beside the event loop: in turns for each person, by the clock of its request, and committed together."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from fastapi import Request

from holdfast.desk.steps import Done, Next, Steps, advance
from holdfast.ledger import Commit
from holdfast.service.clock import Release
from holdfast.service.public_times import PublicTimesLedger
from holdfast.service.together import Together

Result = TypeVar("Result")
_Taking = tuple[Steps[Any], Exception | None]
_PLANNING_THREADS = 4
_COMMITTING_THREADS = 8
LEDGER, REPLIES = Next(math.inf, "ledger"), Next(math.inf, "replies")
"""Steps that read a ledger, and such that read or write replies. Who waits at one keeps nobody from the other."""
QUICK = 1 << 18
"""Steps of so much work (`Next`) take about a millisecond. The table is small then, so that it is in memory."""


class Work:
    """Threads for charged work, for plans, for commits, and for whatever is read or kept in databases meanwhile.

    Guarantee: of the first two nobody has more than half, and no table or board more than three quarters. So nobody has
    all, and one that must be waited for keeps nobody from the others.
    """

    def __init__(self, threads: int) -> None:
        self._answering = ThreadPoolExecutor(threads, thread_name_prefix="answering")
        self._planning = ThreadPoolExecutor(_PLANNING_THREADS, thread_name_prefix="planning")
        self._committing = ThreadPoolExecutor(_COMMITTING_THREADS, thread_name_prefix="committing")
        self._waiting = {
            step.place: ThreadPoolExecutor(_COMMITTING_THREADS, thread_name_prefix=step.place)
            for step in (LEDGER, REPLIES)
        }
        self._planned: dict[str, Together[_Taking, Commit | Next | Done[Any]]] = {}
        self._most = max(1, threads // 2)
        self._turns: dict[tuple[str, int, str], asyncio.Semaphore] = {}
        self._under_way: set[asyncio.Task[object]] = set()

    async def charged(self, request: Request, work: Callable[[], Result]) -> Result:
        """Do charged work. It goes on if the one who asked goes away: what was paid for is answered."""
        release: Release = request.state.release

        def timed() -> Result:
            with release.during():
                return work()

        return await self._beside(request, self._answering, self._most, timed)

    async def _beside(
        self, request: Request, threads: ThreadPoolExecutor, most: int, work: Callable[[], Result]
    ) -> Result:
        """Do work in one of the threads when it is the turn of whoever asks, and of what is asked."""
        place = next(iter(request.path_params.values()), "")
        async with (
            self._turn("person", id(threads), request.state.person.id, most),
            self._turn("place", id(threads), place, most + most // 2 + most % 2),
        ):
            loop = asyncio.get_running_loop()
            return _told(await asyncio.shield(loop.run_in_executor(threads, _outcome, work)))

    def _turn(self, kind: str, threads: int, name: str, most: int) -> asyncio.Semaphore:
        return self._turns.setdefault((kind, threads, name), asyncio.Semaphore(most))

    async def stepwise(self, request: Request, steps: Steps[Result], ledger: PublicTimesLedger) -> Result:
        """The same for an answer in steps, the quick ones of which are taken here, in the event loop.

        Requires: steps that wait for a database say so.
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
                        said = await ledger.committed(step, self._committing)
                        if isinstance(said, Exception):  # it may have to be planned again
                            step = await self._elsewhere(request, LEDGER.place, steps, said)
                        else:
                            step = advance(steps, said)
                    elif step.work <= QUICK:
                        step = advance(steps, None)
                    elif math.isinf(step.work):  # it reads no rows, and need not queue behind what does
                        step = await self._elsewhere(request, step.place, steps, None)
                    else:
                        step = await self._beside(
                            request, self._answering, self._most, lambda: advance(steps, None)
                        )
                return step
        except Exception as error:
            return error

    async def _elsewhere(
        self, request: Request, place: str, steps: Steps[Result], said: Exception | None
    ) -> Commit | Next | Done[Result]:
        """Take a step in a thread. Those that read the ledger of one table are taken together, one after another: each
        is quick, and all of them wait for that ledger."""
        threads = self._waiting[place]
        if place != LEDGER.place:
            return await asyncio.get_running_loop().run_in_executor(threads, advance, steps, said)
        table = next(iter(request.path_params.values()), "")
        together = self._planned.setdefault(
            table, Together(lambda taking: threads.submit(_all_taken, taking))
        )
        step = await together.put((steps, said))
        if isinstance(step, Exception):
            raise step
        return step

    async def planned(self, request: Request, work: Callable[[], Result]) -> Result:
        """Do work that reads no rows and charges nothing."""
        return await self._beside(request, self._planning, _PLANNING_THREADS // 2, work)

    async def close(self) -> None:
        """Finish what is under way."""
        await asyncio.gather(*self._under_way, return_exceptions=True)
        self._planning.shutdown(wait=True, cancel_futures=True)
        for threads in (self._answering, *self._waiting.values(), self._committing):
            threads.shutdown(wait=True)


def _all_taken(taking: list[_Taking]) -> list[Commit | Next | Done[Any] | Exception]:
    taken: list[Commit | Next | Done[Any] | Exception] = []
    for steps, said in taking:
        try:
            taken.append(advance(steps, said))
        except Exception as error:
            taken.append(error)
    return taken


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
