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
QUIET = 4
"""After so many turns of the loop that brought nothing new a list is complete. A turn in which nothing happens takes
some microseconds."""


class Together(Generic[Item, Outcome]):
    """A queue before `hand_over`, which has something done with a list of items and gives their outcomes, errors too.

    Guarantee: what comes with no more than `QUIET` turns of the loop in between, or while something is under way, is
    handed over together, at most `MOST` at once; one of each person in turn, and of one person in their order. So
    whoever has nothing else waiting is in the next list if fewer than `MOST` people wait, however much others ask.

    What was told leaves before the next list is begun, and who asks again at once is in it. Otherwise two halves of
    those who ask would take turns: one is worked on in a thread, while the other's replies and next questions keep the
    loop busy, and both wait for Python's one lock again and again.
    """

    def __init__(self, hand_over: Callable[[list[Item]], Future[list[Outcome | Exception]]]) -> None:
        self._hand_over = hand_over
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[str, deque[tuple[Item, Told[Outcome]]]] = {}
        """What each person waits for; who is first has the next turn."""
        self._under_way, self._many = False, 0

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
            self._loop, self._waiting, self._under_way, self._many = loop, {}, False, 0
        self._waiting.setdefault(person, deque()).append((item, told))
        self._many += 1
        if not self._under_way:
            self._under_way = True
            self._gather(self._many, QUIET)

    def _gather(self, many: int, quiet: int) -> None:
        """Hand over what waits when it is enough, or when `quiet` turns of the loop bring nothing more."""
        if self._many > many:
            quiet = QUIET
        if quiet and self._many < MOST:
            asyncio.get_running_loop().call_soon(self._gather, self._many, quiet - 1)
        else:
            self._start()

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
        self._many -= len(batch)
        return batch

    def _tell(self, batch: list[tuple[Item, Told[Outcome]]], outcomes: list[Outcome | Exception]) -> None:
        for (_, told), outcome in zip(batch, outcomes, strict=True):
            told(outcome)
        self._under_way = bool(self._waiting)
        if self._under_way:
            self._gather(self._many, QUIET)


def _outcomes(told: Future[list[Outcome | Exception]], many: int) -> list[Outcome | Exception]:
    try:
        return list(told.result())
    except Exception as error:
        return [error] * many
