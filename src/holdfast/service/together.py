"""What the requests of an event loop hand to threads, many at once: a hand-over costs more than most of them do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class Together(Generic[Item, Outcome]):
    """A queue before `hand_over`, which has something done with a list of items and gives their outcomes, errors too.

    Guarantee: whatever comes in one turn of the loop, or while something is under way, is handed over together, in its
    order; nothing waits longer than for the list that is under way, and for those that came before it in the same list.
    """

    def __init__(self, hand_over: Callable[[list[Item]], Future[list[Outcome | Exception]]]) -> None:
        self._hand_over = hand_over
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[tuple[Item, asyncio.Future[Outcome | Exception]]] = []
        self._under_way = False

    async def put(self, item: Item) -> Outcome | Exception:
        """What comes of an item."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # another took this one's place
            self._loop, self._waiting, self._under_way = loop, [], False
        future: asyncio.Future[Outcome | Exception] = loop.create_future()
        self._waiting.append((item, future))
        if not self._under_way:
            self._under_way = True
            loop.call_soon(self._start)  # after what else is ready now
        return await future

    def _start(self) -> None:
        loop, batch = asyncio.get_running_loop(), self._waiting
        self._waiting = []
        try:
            done = self._hand_over([item for item, _ in batch])
        except Exception as error:
            self._tell(batch, [error] * len(batch))
            return
        done.add_done_callback(
            lambda told: loop.call_soon_threadsafe(self._tell, batch, _outcomes(told, len(batch)))
        )

    def _tell(
        self,
        batch: list[tuple[Item, asyncio.Future[Outcome | Exception]]],
        outcomes: list[Outcome | Exception],
    ) -> None:
        self._under_way = bool(self._waiting)
        if self._under_way:
            self._start()
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            if not future.done():  # whoever asked may have gone
                future.set_result(outcome)


def _outcomes(told: Future[list[Outcome | Exception]], many: int) -> list[Outcome | Exception]:
    try:
        return list(told.result())
    except Exception as error:
        return [error] * many
