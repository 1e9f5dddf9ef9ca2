"""What the requests of an event loop hand to threads, many at once: a hand-over costs more than most of them do."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
Told = Callable[[Outcome | Exception], None]
MOST = 64
"""A list is no longer: more of them at once save nothing, and whoever comes next waits for all of it."""


class Together(Generic[Item, Outcome]):
    """A queue before `hand_over`, which has something done with a list of items and gives their outcomes, errors too.

    Guarantee: what comes in one turn of the loop, or while something is under way, is handed over together, at most
    `MOST` at once; one of each person in turn, and of one person in their order. So whoever has nothing else waiting is
    in the next list if fewer than `MOST` people wait, however much others ask.
    """

    def __init__(self, hand_over: Callable[[list[Item]], Future[list[Outcome | Exception]]]) -> None:
        self._hand_over = hand_over
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[str, deque[tuple[Item, Told[Outcome]]]] = {}
        """What each person waits for; who is first has the next turn."""
        self._under_way = False

    async def put(self, item: Item, person: str) -> Outcome | Exception:
        """What comes of an item of somebody."""
        future: asyncio.Future[Outcome | Exception] = asyncio.get_running_loop().create_future()

        def tell(outcome: Outcome | Exception) -> None:
            if not future.done():  # whoever asked may have gone
                future.set_result(outcome)

        self.hand(item, person, tell)
        return await future

    def hand(self, item: Item, person: str, told: Told[Outcome]) -> None:
        """The same for whoever does not wait: `told` hears of it, in the event loop, and must not raise."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # another took this one's place
            self._loop, self._waiting, self._under_way = loop, {}, False
        self._waiting.setdefault(person, deque()).append((item, told))
        if not self._under_way:
            self._under_way = True
            loop.call_soon(self._start)  # after what else is ready now

    def _start(self) -> None:
        loop, batch = asyncio.get_running_loop(), self._next()
        try:
            done = self._hand_over([item for item, _ in batch])
        except Exception as error:
            self._tell(batch, [error] * len(batch))
            return
        done.add_done_callback(
            lambda told: loop.call_soon_threadsafe(self._tell, batch, _outcomes(told, len(batch)))
        )

    def _next(self) -> list[tuple[Item, Told[Outcome]]]:
        """One of each person in turn; who has had theirs goes to the end."""
        batch: list[tuple[Item, Told[Outcome]]] = []
        while self._waiting and len(batch) < MOST:
            person = next(iter(self._waiting))
            theirs = self._waiting.pop(person)
            batch.append(theirs.popleft())
            if theirs:
                self._waiting[person] = theirs
        return batch

    def _tell(self, batch: list[tuple[Item, Told[Outcome]]], outcomes: list[Outcome | Exception]) -> None:
        self._under_way = bool(self._waiting)
        if self._under_way:
            self._start()
        for (_, told), outcome in zip(batch, outcomes, strict=True):
            told(outcome)


def _outcomes(told: Future[list[Outcome | Exception]], many: int) -> list[Outcome | Exception]:
    try:
        return list(told.result())
    except Exception as error:
        return [error] * many
