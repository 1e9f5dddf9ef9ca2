"""The short way of /ask and /estimate says no as the long one would; the steps of quick answers share commits."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter
from gateway import SHARE, prepared
from ledger.makers import together

from holdfast.desk import Next
from holdfast.errors import BudgetError, DataError
from holdfast.ledger import (
    Account,
    ChainedLedger,
    Charge,
    Ledger,
    MemoryLedger,
    Record,
    Reserve,
    SqliteLedger,
    Survey,
)
from holdfast.service import api
from holdfast.service import work as service_work
from holdfast.service.catalog import Catalog
from holdfast.service.clock import Release
from holdfast.service.fast_route import FastRoute, question_of
from holdfast.service.public_times import PublicTimesLedger
from holdfast.service.tables import Tables
from holdfast.service.work import Work
from holdfast.session import session as session_module
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
    "a name twice": ('{"kind": "fraction", "where": "age > 1", "rho": 1e-5, "rho": 0.1}', 422),
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
    names = {"Upper": "invalid", "a" * 65: "invalid", "people%0A": "invalid", "unknown": "not-found"}
    for name, code in names.items():
        reply = here.client.post(f"/v1/datasets/{name}/ask", content=good, headers=sent)
        assert reply.json()["code"] == code, name


def test_the_document_tells_of_short_routes_what_it_tells_of_others(here: Site) -> None:
    """The same endpoints on plain routes are described in the same words."""
    from fastapi import FastAPI

    plain, short = FastAPI(), FastAPI()
    for app, kind in ((plain, None), (short, FastRoute)):
        router = APIRouter()
        for endpoint in (api.ask, api.estimate):
            path = f"/datasets/{{dataset}}/{endpoint.__name__}"
            router.add_api_route(path, endpoint, methods=["POST"], route_class_override=kind)
        app.include_router(router)
    assert plain.openapi() == short.openapi()
    assert "Idempotency-Key" in json.dumps(short.openapi()["paths"]["/datasets/{dataset}/ask"])
    assert "Idempotency-Key" not in json.dumps(short.openapi()["paths"]["/datasets/{dataset}/estimate"])


def _first_commit(steps: Any, ledger: Ledger) -> Any:
    """What the ledger is asked to commit first, after whatever is done in threads before."""
    step = next(steps)
    while isinstance(step, Next | Survey):
        step = steps.send(None if isinstance(step, Next) else step.put(ledger))
    return step


def commit(number: int, units: int = 1) -> Reserve:
    return Reserve("s", f"key {number}", "{}", "{}", Charge(units, units))


@pytest.fixture
def held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[ChainedLedger, list[int], threading.Event]]:
    """A ledger that notes how many commits came together, and waits until it may commit."""
    ledger, batches, go = SqliteLedger(tmp_path / "ledger.sqlite"), list[int](), threading.Event()
    ledger.open(Account("s", "zcdp", 100))
    real = ledger._batches._run

    def noted(tickets: Any) -> None:
        batches.append(len(tickets))
        assert go.wait(30)
        real(tickets)

    monkeypatch.setattr(ledger._batches, "_run", noted)
    yield ledger, batches, go
    ledger.close()


def test_commits_that_come_meanwhile_are_committed_together(
    held: tuple[ChainedLedger, list[int], threading.Event],
) -> None:
    ledger, batches, go = held

    async def many() -> list[Any]:
        work, public = Work(4), PublicTimesLedger(ledger)

        def asking(number: int, units: int) -> Any:
            return (yield commit(number, units))

        def ask(number: int, units: int = 1) -> asyncio.Task[Any]:
            return asyncio.create_task(work.stepwise(_request(Release(0)), asking(number, units), public))

        first = [ask(0)]
        while not batches:
            await asyncio.sleep(0.001)
        later = [ask(number, units=40) for number in range(1, 6)]
        while sum(map(len, work._lists[""]._waiting.values())) < 5:
            await asyncio.sleep(0.001)
        assert not any(task.done() for task in [*first, *later]), "nobody hears before the commit"
        go.set()
        outcomes = await asyncio.gather(*first, *later, return_exceptions=True)
        await work.close()
        return outcomes

    outcomes = asyncio.run(many())
    assert batches == [1, 5]
    assert [type(outcome).__name__ for outcome in outcomes] == ["Entry"] * 3 + ["BudgetError"] * 3
    assert ledger.totals().units == 81


def _request(release: Any) -> Any:
    """A request by somebody, for nothing in particular."""
    state = type("State", (), {"person": type("Person", (), {"id": "p"}), "release": release})
    return type("Asked", (), {"state": state, "path_params": {}})


def test_what_was_paid_for_is_answered_before_the_gateway_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one who asked is gone, and the gateway is told to stop: the answer is recorded all the same."""
    ledger = MemoryLedger()
    ledger.open(Account("s", "zcdp", 100))

    class Quick:
        async def until_record(self) -> None:
            await asyncio.sleep(0.05)

        during, at_any_time = Release.during, False

    def steps() -> Any:
        entry = yield commit(1)
        return (yield Record(entry.id, "told"))

    async def run() -> None:
        work = Work(4)
        task = asyncio.create_task(work.stepwise(_request(Quick()), steps(), PublicTimesLedger(ledger)))
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


def test_an_error_that_nobody_waits_for_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Its words may hold what was read."""
    request, go = _request(Release(0)), threading.Event()

    def broken() -> Any:
        go.wait(30)
        raise RuntimeError("a row says: secret")

    def steps() -> Any:
        yield Next(1e9)  # in a thread
        broken()

    async def run(shielded: bool) -> None:
        work, loop = Work(4), asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: heard.append(str(context)))
        left: list[Any] = [
            asyncio.create_task(work.stepwise(request, steps(), PublicTimesLedger(MemoryLedger()))),
            asyncio.create_task(work.charged(request, broken)),
        ]
        if not shielded:  # the control: a task whose error nobody asks for
            left.append(asyncio.create_task(asyncio.to_thread(broken)))
        await asyncio.sleep(0.05)
        if shielded:
            for task in left:
                task.cancel()
        go.set()
        await asyncio.wait(left)
        await work.close()
        if shielded:
            assert all(task.cancelled() for task in left)

    heard: list[str] = []
    asyncio.run(run(shielded=True))
    gc.collect()
    assert heard == [] and "secret" not in caplog.text
    asyncio.run(run(shielded=False))
    gc.collect()
    assert any("secret" in words for words in heard), "the control"


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads in which rows are read, and keys and replies written."""
    seen: list[str] = []
    for owner, name in ((session_module, "release"), (Catalog, "claim"), (Catalog, "keep_reply")):
        real = getattr(owner, name)

        def noted(*how: Any, real: Any = real, name: str = name, **more: Any) -> Any:
            seen.append(f"{name} {threading.current_thread().name.partition('_')[0]}")
            return real(*how, **more)

        monkeypatch.setattr(owner, name, noted)
    real_open = ChainedLedger.open

    def opened(self: Any, account: Account) -> Account:
        seen.append(f"open {threading.current_thread().name.partition('_')[0]}")
        return real_open(self, account)

    monkeypatch.setattr(ChainedLedger, "open", opened)
    return seen


def test_what_may_take_long_has_a_thread(threads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with site() as here:
        here.started.gateway.tables._sessions.clear()
        threads.clear()
        assert here.ask(QUESTION).status_code == 200
        assert threads == ["open answering", "release answering"], "the first question opens the session"
        threads.clear()
        here.started.gateway.tables._sessions.clear()
        assert here.estimate(QUESTION).status_code == 200
        assert threads == ["open planning"]
        threads.clear()
        assert here.ask(QUESTION | {"where": "age > 41"}).status_code == 200
        assert threads == ["release ledger"], "a quick one is read in a list with others"
        threads.clear()
        assert here.ask(QUESTION | {"where": "age > 42"}, key="k").status_code == 200
        assert threads == ["claim replies", "release ledger", "keep_reply replies"]
        threads.clear()
        monkeypatch.setattr(service_work, "QUICK", 0)
        assert here.ask(QUESTION | {"where": "age > 43"}).status_code == 200
        assert threads == ["release answering"]


def test_a_resumed_answer_has_a_thread_too(threads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It was paid for, and its rows are read without another charge."""
    monkeypatch.setattr(service_work, "QUICK", 0)
    with site() as here:
        assert here.ask(QUESTION).status_code == 200
        analyst, gateway = here.started.person(here.started.analyst), here.started.gateway
        asked = question_of(json.dumps(QUESTION | {"where": "age > 44"}).encode())
        reserve = _first_commit(gateway.asking(analyst, "people", asked), here.ledger())
        assert isinstance(reserve, Reserve)
        together(here.ledger(), [reserve])
        before = here.totals()
        threads.clear()
        assert here.ask(QUESTION | {"where": "age > 44"}).status_code == 200
        assert threads == ["release answering"] and here.totals() == before


def test_who_has_no_session_yet_waits_in_a_thread(here: Site) -> None:
    """Opening one is a commit. So is telling the ledger of another share."""
    gateway, bob = here.started.gateway, here.started.person(here.started.somebody("bob"))
    ready = gateway.tables.ready
    gateway.tables._sessions.pop(("people", bob.id))
    assert ready("people", bob) is None
    gateway.tables.session("people", bob)
    assert ready("people", bob) is not None
    gateway.catalog.set_member("people", bob.id, {"rho": 0.5})  # as another worker does
    assert ready("people", bob) is None
    assert ready("unknown", bob) is None
    stranger = here.started.person(here.started.auditor)
    assert ready("people", stranger) is None


def test_a_share_of_answers_is_part_of_what_the_ledger_checks() -> None:
    """64 at once may all be planned before one is charged; the ledger takes no more than the share."""
    asked = [question_of(json.dumps(QUESTION | {"where": f"age > {age}"}).encode()) for age in range(5)]
    with prepared(declared={"queries": 10, "target": "table"}) as started:
        gateway, ledger = started.gateway, started.gateway.tables.ledger("people")
        for name, share, charged in (("cyd", {}, 5), ("dan", {"queries": 3}, 3)):
            person = started.person(started.somebody(name, SHARE | share))
            commits = [_first_commit(gateway.asking(person, "people", one), ledger) for one in asked]
            outcomes = [type(outcome).__name__ for outcome in together(ledger, commits)]  # type: ignore[arg-type]
            assert outcomes == ["Entry"] * charged + ["Stale"] * (5 - charged)
        with pytest.raises(BudgetError, match="your share is 3"):
            gateway.ask(person, "people", asked[4])


def test_a_table_that_is_away_is_no_news_to_strangers() -> None:
    with site() as here:
        mallory = here.started.somebody("mallory", share={})
        hidden, made_up = (here.ask(QUESTION, table=name, token=mallory) for name in ("people", "nope"))
        assert hidden.json() == made_up.json() and hidden.status_code == 404
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Tables, "_open", _away)
            here.started.gateway.tables._tables.clear()
            assert here.ask(QUESTION, token=mallory).json() == made_up.json()
            here.started.gateway.tables._sessions.clear()
            assert here.ask(QUESTION).status_code == 503, "the control: who may ask is told that it is away"


def _away(*_: object) -> Any:
    raise DataError("the store is away")


def test_a_select_is_about_the_table_it_was_sent_to(here: Site) -> None:
    before = here.totals()
    for name in ("elsewhere", '"people2"', "t2"):
        question = {"kind": "sql", "text": f"SELECT count(*) FROM {name}", "rho": 1e-5}
        for reply in (here.ask(question), here.estimate(question)):
            assert reply.json()["code"] == "question" and "'people'" in reply.json()["detail"]
    assert here.totals() == before
    for name in ("t", "people", "People", '"people"'):
        assert (
            here.ask({"kind": "sql", "text": f"SELECT count(*) FROM {name}", "rho": 1e-5}).status_code == 200
        )
