"""The short way of /ask and /estimate says no as the long one would; the steps of quick answers share commits."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import APIRouter

from holdfast.ledger import Account, Charge, Entry, MemoryLedger, Record, Reserve
from holdfast.service import api
from holdfast.service import work as service_work
from holdfast.service.short import ShortRoute
from holdfast.service.work import Commits, Work
from service.site import Site, site

QUESTION = {"kind": "fraction", "where": "age > 40", "rho": 1e-5}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    with site() as made:
        yield made


def send(here: Site, verb: str, body: str | bytes, **headers: str) -> Any:
    sent = {"Authorization": f"Bearer {here.started.analyst}"} | JSON | headers
    return here.client.post(f"/v1/datasets/people/{verb}", content=body, headers=sent)


BODIES = {
    "no JSON": ("{", 422),
    "nothing": ("", 422),
    "a list": ("[]", 422),
    "no kind": ("{}", 422),
    "an unknown kind": (json.dumps({"kind": "gossip"}), 422),
    "an unknown field": (json.dumps(QUESTION | {"more": 1}), 422),
    "a number in words": (json.dumps(QUESTION | {"rho": "0.1"}), 422),
    "not a number": (json.dumps(QUESTION | {"rho": float("nan")}), 422),
    "without end": (json.dumps(QUESTION | {"rho": float("inf")}), 422),
    "half a letter": ('{"kind": "fraction", "where": "\\ud800", "rho": 1e-5}', 422),
    "bytes": (b"\xff\xfe", 422),
    "deep": ("[" * 10_000, 422),
    "good": (json.dumps(QUESTION), 200),
}


@pytest.mark.parametrize("verb", ["ask", "estimate"])
@pytest.mark.parametrize("name", BODIES)
def test_bodies(here: Site, verb: str, name: str) -> None:
    body, status = BODIES[name]
    before = here.totals().entries
    reply = send(here, verb, body)
    assert reply.status_code == status, reply.text
    if status != 200:
        assert reply.json()["code"] == "invalid" and reply.json()["detail"].startswith("body")
        assert here.totals().entries == before


def test_what_stands_around_a_body(here: Site) -> None:
    good = json.dumps(QUESTION)
    assert send(here, "ask", good, **{"Content-Type": "text/plain"}).json()["code"] == "media"
    assert send(here, "ask", good, **{"Content-Type": "application/json; charset=utf-8"}).status_code == 200
    assert send(here, "ask", good, **{"Idempotency-Key": "k" * 201}).json()["code"] == "invalid"
    assert send(here, "ask", good, **{"Idempotency-Key": "k" * 200}).status_code == 200
    assert send(here, "estimate", good, **{"Idempotency-Key": "k" * 201}).status_code == 200
    for token in ("", "Bearer", "Bearer x", f"Basic {here.started.analyst}"):
        reply = send(here, "ask", good, Authorization=token)
        assert reply.status_code == 401 and reply.headers["www-authenticate"] == "Bearer"
    assert send(here, "ask", good, Authorization=f"bearer {here.started.analyst}").status_code == 200
    sent = {"Authorization": f"Bearer {here.started.analyst}"} | JSON
    for name, code in (("Upper", "invalid"), ("a" * 65, "invalid"), ("unknown", "not-found")):
        reply = here.client.post(f"/v1/datasets/{name}/ask", content=good, headers=sent)
        assert reply.json()["code"] == code, name


def test_the_document_tells_of_short_routes_what_it_tells_of_others(here: Site) -> None:
    """The same endpoints on plain routes are described in the same words."""
    from fastapi import FastAPI

    plain, short = FastAPI(), FastAPI()
    for app, kind in ((plain, None), (short, ShortRoute)):
        router = APIRouter()
        for endpoint in (api.ask, api.estimate):
            path = f"/datasets/{{dataset}}/{endpoint.__name__}"
            router.add_api_route(path, endpoint, methods=["POST"], route_class_override=kind)
        app.include_router(router)
    assert plain.openapi() == short.openapi()
    assert "Idempotency-Key" in json.dumps(short.openapi()["paths"]["/datasets/{dataset}/ask"])
    assert "Idempotency-Key" not in json.dumps(short.openapi()["paths"]["/datasets/{dataset}/estimate"])


class Counting(MemoryLedger):
    """A ledger that notes how many wishes came together, and waits until it may commit."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[int] = []
        self.go = threading.Event()

    def together(self, operations: Any) -> Any:
        self.batches.append(len(operations))
        self.go.wait(30)
        return super().together(operations)


def wish(number: int, units: int = 1) -> Reserve:
    return Reserve("s", f"key {number}", "{}", "{}", Charge(units, units))


def test_wishes_that_come_meanwhile_are_committed_together() -> None:
    ledger = Counting()
    ledger.open(Account("s", "zcdp", 100))

    async def many() -> list[Any]:
        work = Work(4)
        commits = Commits(ledger, work._committing)
        first = [commits.put(wish(number)) for number in range(3)]
        while not ledger.batches:
            await asyncio.sleep(0.001)
        later = [commits.put(wish(number, units=40)) for number in range(3, 8)]
        assert not any(future.done() for future in [*first, *later]), "nobody hears before the commit"
        ledger.go.set()
        outcomes = await asyncio.gather(*first, *later)
        await work.close()
        return outcomes

    outcomes = asyncio.run(many())
    assert ledger.batches == [3, 5]
    assert [type(outcome).__name__ for outcome in outcomes] == ["Entry"] * 5 + ["BudgetError"] * 3
    assert ledger.totals().units == 83


def test_a_ledger_that_fails_is_told_to_all_and_the_next_is_served() -> None:
    class Broken(MemoryLedger):
        fails = True

        def together(self, operations: Any) -> Any:
            if self.fails:
                raise OSError("the disk is gone")
            return super().together(operations)

    ledger = Broken()
    ledger.open(Account("s", "zcdp", 100))

    async def run() -> tuple[list[Any], Any]:
        work = Work(4)
        commits = Commits(ledger, work._committing)
        broken = await asyncio.gather(*(commits.put(wish(number)) for number in range(3)))
        ledger.fails = False
        return broken, await commits.put(wish(9))

    broken, after = asyncio.run(run())
    assert [str(outcome) for outcome in broken] == ["the disk is gone"] * 3
    assert isinstance(after, Entry)


def test_what_was_paid_for_is_answered_before_the_gateway_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one who asked is gone, and the gateway is told to stop: the answer is recorded all the same."""
    ledger = MemoryLedger()
    ledger.open(Account("s", "zcdp", 100))

    class Quick:
        async def until_record(self) -> None:
            await asyncio.sleep(0.05)

    class Asked:
        state = type("State", (), {"release": Quick(), "person": type("Person", (), {"id": "p"})})

    def steps() -> Any:
        entry = yield wish(1)
        return (yield Record(entry.id, "told"))

    async def run() -> None:
        work = Work(4)
        task = asyncio.create_task(work.stepwise(Asked(), steps(), ledger))  # type: ignore[arg-type]
        while not ledger.totals().entries:
            await asyncio.sleep(0)
        task.cancel()
        await work.close()

    asyncio.run(run())
    assert [entry.answer for entry in ledger.entries()] == ["told"]
    monkeypatch.setattr(service_work.asyncio, "shield", lambda task: task)  # the broken twin
    ledger = MemoryLedger()
    ledger.open(Account("s", "zcdp", 100))
    asyncio.run(run())
    assert [entry.answer for entry in ledger.entries()] == [None]
