"""The live attack: a race that a browser can watch. All of it is made up on the spot."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from holdfast.holdout.race import ATTACKS, HONEST, Race
from holdfast.service.fast_route import looked_up
from holdfast.service.page.shell import PageRoute, page
from holdfast.service.page.visits import Visitor, visitor_of
from holdfast.service.problem import Problem

router = APIRouter(route_class=PageRoute, include_in_schema=False)
MOST = 4
"""Races that a worker runs at a time."""
ROWS = SUBMISSIONS = 2000
STEPS = 80
SECONDS = 0.1
"""How long a race rests between two steps: an attack takes about 10 seconds and a fifth of one core."""


class Races:
    """The races that run in this worker: one for each visitor, the newest, and few at a time."""

    def __init__(self) -> None:
        self._newest: dict[str, object] = {}

    def start(self, who: str) -> object:
        """A ticket to race with; it ends a race that the same visitor had."""
        if who not in self._newest and len(self._newest) >= MOST:
            raise Problem("rate", "others are watching; try again in a few seconds", retry_after=10.0)
        ticket = self._newest[who] = object()
        return ticket

    def goes_on(self, who: str, ticket: object) -> bool:
        """Whether this is still the newest race of the visitor."""
        return self._newest.get(who) is ticket

    def end(self, who: str, ticket: object) -> None:
        """Make room for others."""
        if self.goes_on(who, ticket):
            del self._newest[who]


_RACES = Races()


@router.get("/demo")
def demo(request: Request) -> Response:
    """The stage."""
    return page(request, "demo.html", visitor_of(request), attacks=ATTACKS, whole=None, honest=HONEST)


@router.get("/demo/whole")
async def whole(request: Request, attack: str = "majority-vote") -> Response:
    """The whole race at once, for browsers without scripts."""
    last: dict[str, float] = {}
    visitor = await looked_up(lambda: visitor_of(request))
    async for event in _race(_watching(request, visitor), _known(attack), 0.0):
        last |= event
    if "honest" not in last:
        raise Problem("rate", "you have started a newer race; watch that one", retry_after=10.0)
    return page(request, "demo.html", visitor, attacks=ATTACKS, whole=last, honest=HONEST)


@router.get("/demo/run")
async def run(request: Request, attack: str = "majority-vote") -> Response:
    """The race as it goes, as server-sent events; the last one says what fresh data reveals."""
    visitor = await looked_up(lambda: visitor_of(request))
    events = _race(_watching(request, visitor), _known(attack), SECONDS)
    first = await anext(events)

    async def lines() -> AsyncIterator[str]:
        yield _line(first)
        async for event in events:
            yield _line(event)

    return StreamingResponse(lines(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _race(who: str, attack: str, rest: float) -> AsyncIterator[dict[str, float]]:
    """Events of a race: how many were submitted, and the best score that each board shows."""
    ticket = _RACES.start(who)
    try:
        race = await asyncio.to_thread(Race, attack, ROWS, SUBMISSIONS)
        yield {"of": race.submissions, "rows": race.rows, "width": race.width}
        going = True
        while going and _RACES.goes_on(who, ticket):
            going = await asyncio.to_thread(race.step, race.submissions // STEPS)
            yield {"done": race.done, "ordinary": race.ordinary[-1], "guarded": race.guarded[-1]}
            await asyncio.sleep(rest)
        if not going:
            await asyncio.to_thread(race.end)
            yield {
                "ordinary_fresh": race.ordinary_fresh, "guarded_fresh": race.guarded_fresh, "honest": race.honest,
            }  # fmt: skip
    finally:
        _RACES.end(who, ticket)


def _known(attack: str) -> str:
    if attack not in ATTACKS:
        raise Problem("not-found")
    return attack


def _watching(request: Request, visitor: Visitor | None) -> str:
    """Who watches: a visit, or whoever has not signed in at an address. A cookie that is none counts for nothing."""
    if visitor is not None:
        return visitor.form_token
    return request.client.host if request.client else ""


def _line(event: dict[str, float]) -> str:
    return f"data: {json.dumps(event)}\n\n"
