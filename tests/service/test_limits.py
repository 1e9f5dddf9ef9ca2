"""What one person can do to others: times that are watched, bodies, shares, threads, and what is kept."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from gateway import BUDGET, SHARE, prepared
from services import postgres

from holdfast.service import api, catalog, clock
from holdfast.service import work as service_work
from holdfast.service.clock import Release
from holdfast.service.public_times import PublicTimesLedger
from service.site import Site, site

QUESTION = {"kind": "fraction", "where": "age > 40", "rho": 1e-5}


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as made:
        yield made


class Time:
    """A clock that only moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize("in_the_loop", [False, True])
@pytest.mark.parametrize("ready", [0.0, 0.01, 0.3, 0.499])
def test_what_is_quick_is_recorded_at_one_time(
    monkeypatch: pytest.MonkeyPatch, ready: float, in_the_loop: bool
) -> None:
    moment = Time()

    async def sleep(seconds: float) -> None:
        moment.sleep(seconds)

    monkeypatch.setattr(clock, "time", moment)
    monkeypatch.setattr(clock.asyncio, "sleep", sleep)
    release = Release(1.0)

    def wait() -> None:
        asyncio.run(release.until_record()) if in_the_loop else release.wait_to_record()

    moment.sleep(ready)
    wait()
    assert moment.now == pytest.approx(100.5)
    moment.sleep(1.0 + ready)  # the next answer of the same request
    wait()
    assert moment.now == pytest.approx(102.5 if ready else 101.5)


def _recorded(here: Site, monkeypatch: pytest.MonkeyPatch, question: dict[str, Any]) -> list[int]:
    """How many answers the ledger had whenever one waited for its time to be recorded."""
    seen: list[int] = []

    def watched(self: Release) -> None:
        seen.append(sum(entry.answer is not None for entry in here.ledger().entries()))

    async def watched_here(self: Release) -> None:
        watched(self)

    monkeypatch.setattr(Release, "wait_to_record", watched)
    monkeypatch.setattr(Release, "until_record", watched_here)
    assert here.ask(question).status_code == 200
    return seen


QUESTIONS: list[tuple[dict[str, Any], int]] = [
    (QUESTION, 1),
    ({"kind": "sql", "text": "SELECT sum(age), avg(age) FROM t", "rho": 1e-5}, 2),
    ({"kind": "sample", "where": "age > 3"}, 1),
    ({"kind": "select", "candidates": ["age > 3", "age > 60"], "rho": 1e-5}, 1),
    ({"kind": "above", "threshold": 0.5, "hits": 1, "rho": 1e-4, "where": "age > 90"}, 2),
]


@pytest.mark.parametrize(("question", "answers"), QUESTIONS, ids=lambda value: str(value)[:24])
def test_every_answer_waits_before_a_list_can_show_it(
    here: Site, monkeypatch: pytest.MonkeyPatch, question: dict[str, Any], answers: int
) -> None:
    assert _recorded(here, monkeypatch, question) == list(range(answers))


def test_a_ledger_that_does_not_wait_is_noticed(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        PublicTimesLedger, "record", lambda self, *how, **more: self._ledger.record(*how, **more)
    )
    assert _recorded(here, monkeypatch, QUESTIONS[3][0]) == []
    monkeypatch.setattr(Release, "at_any_time", True)
    assert _recorded(here, monkeypatch, QUESTION) == []


def test_a_board_waits_too(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    here.started.register_board("held")
    waited: list[float] = []
    monkeypatch.setattr(Release, "wait_to_record", lambda self: waited.append(self.quantum))
    body = {"predictions": [0] * 5_000}
    assert here.call("POST", "/leaderboards/held/submissions", body).status_code == 200
    assert len(waited) == 1


def test_a_large_body_is_not_read_for_strangers_nor_beyond_the_rows(
    here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.started.register_board("rows")
    read: list[int] = []
    parse = api._read
    monkeypatch.setattr(api, "_read", lambda text, model: (read.append(len(text)), parse(text, model))[1])
    long = json.dumps({"predictions": [1.25] * 400_000}) + " " * 20_000_000
    path, form = "/v1/leaderboards/rows/submissions", {"Content-Type": "application/json"}
    stranger = here.client.post(path, content=long, headers=form | {"Authorization": "Bearer nobody"})
    assert stranger.status_code == 401
    known = form | {"Authorization": f"Bearer {here.started.analyst}"}
    assert here.client.post(path, content=long, headers=known).json()["code"] == "too-large"
    assert read == []
    assert here.client.post(path, content=b'{"predictions": [1]}', headers=known).json()["code"] == "invalid"
    assert len(read) == 1
    for said in (
        ["x"] * 5_000 + [],
        [1.0] * 4_999 + ["x"],
        [None] * 5_000,
        [1e400] * 5_000,
        ["y" * 201] * 5_000,
    ):
        reply = here.client.post(path, content=json.dumps({"predictions": said}), headers=known)
        assert 400 <= reply.status_code < 500, said[:1]
    for body in (
        b"[]",
        b"{",
        b'{"predictions": 1}',
        b'{"predictions": [0], "more": 1}',
        b"\xff",
        b"[" * 100_000,
    ):
        assert here.client.post(path, content=body, headers=known).json()["code"] == "invalid"
    assert (
        here.client.post(path, content=b"{}", headers=known | {"Content-Type": "text/csv"}).status_code == 415
    )


def test_replies_are_kept_within_bounds(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "REPLIES_KEPT", 20)
    monkeypatch.setattr(catalog, "_TIDY_EVERY", 5)
    monkeypatch.setattr(catalog, "LARGEST_REPLY", 2_000)
    first = here.ask(QUESTION, key="key 0")
    for number in range(60):
        assert here.ask(QUESTION, key=f"key {number}").status_code == 200
    replies = here.started.gateway.catalog._replies
    assert 15 <= replies.rows("SELECT count(*) FROM replies")[0][0] <= 26
    again = here.ask(QUESTION, key="key 0")  # forgotten, and answered from the ledger
    assert again.json()["answers"] == first.json()["answers"]
    assert here.totals().entries == 1
    vector = {"kind": "histogram", "column": "age", "edges": list(range(100)), "rho": 1e-5}
    long = here.ask(vector, key="long")
    assert len(long.text) > 2_000
    assert here.ask(vector, key="long").json()["answers"] == long.json()["answers"]
    assert here.ask(QUESTION, key="long").json()["code"] == "idempotency"
    assert replies.rows("SELECT max(length(body)) FROM replies")[0][0] <= 2_000


def test_a_share_that_was_raised_and_lowered_holds_in_every_worker(here: Site) -> None:
    """Each worker keeps its sessions; the ledger's account has to follow the owner at once."""
    from holdfast.service.gateway import Gateway

    first, gateway = here.started.person(here.started.analyst), here.started.gateway
    owner, low, high = here.started.person(here.started.owner), {"rho": 1e-3}, {"rho": 1.0}
    gateway.admit(owner, "people", first.id, low)
    gateway.tables.session("people", first)  # this worker has it at the low share
    other = Gateway(here.started.settings)
    other.admit(owner, "people", first.id, high)
    other.tables.session("people", first)
    other.admit(owner, "people", first.id, low)
    other.close()
    choice = {"kind": "select", "candidates": ["age > 3"], "rho": 4e-4, "confirm": True}
    codes = [here.ask(choice | {"candidates": [f"age > {i}"]}).status_code for i in range(5)]
    assert codes == [200, 200, 402, 402, 402]


def test_an_analyst_uses_up_no_more_than_their_share_of_answers() -> None:
    with prepared(declared={"queries": 10}) as started, TestClient(started.app) as client:
        made = Site(started, client)
        bob = started.somebody("bob", SHARE | {"queries": 3})
        codes = [made.ask(QUESTION | {"where": f"age > {i}"}, token=bob).status_code for i in range(5)]
        assert codes == [200, 200, 200, 402, 402]
        assert made.ask(QUESTION | {"where": "age > 0"}, token=bob).status_code == 200  # asked before
        weights = {"kind": "multiplicative-weights", "columns": ["smoker"], "queries": 10**15, "rho": 0.1}
        assert made.ask(weights, token=bob).status_code == 422
        assert made.ask(QUESTION | {"where": "age > 50"}).status_code == 200


def test_one_person_does_not_take_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_work, "QUICK", 0)  # every read has a thread
    with prepared(answering_threads=4) as started, TestClient(started.app) as client:
        made = Site(started, client)
        bob = started.somebody("bob")
        go, source = threading.Event(), started.gateway.tables.table("people")._source
        totals, under_way = type(source).totals, threading.Semaphore(0)

        def slow(self: Any, measurement: Any) -> np.ndarray[Any, Any]:
            under_way.release()
            go.wait(60)
            return totals(self, measurement)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(source), "totals", slow)
            many = [
                threading.Thread(
                    target=made.ask, args=({"kind": "count", "where": f"age > {i}", "rho": 1e-5},)
                )
                for i in range(8)
            ]
            for thread in many:
                thread.start()
            assert all(under_way.acquire(timeout=60) for _ in range(2))
            # Two of the four threads are taken; a vote needs no totals.
            assert made.ask({"kind": "sample", "where": "age > 3"}, token=bob).status_code == 200
            assert not under_way.acquire(timeout=0.2)
            go.set()
            for thread in many:
                thread.join()


def test_tables_by_address_are_for_gateways_that_allow_them(here: Site) -> None:
    body = {
        "id": "far", "path": "postgresql://nobody@localhost/none", "relation": "t", "budget": {"rho": 1.0},
        "schema": {"columns": [{"name": "a", "type": "boolean"}]},
    }  # fmt: skip
    reply = here.call("POST", "/datasets", body, token=here.started.owner)
    assert reply.status_code == 422
    assert "--postgres-tables" in reply.json()["detail"]


def test_a_table_of_a_postgres_server_is_asked_through_a_gateway_that_allows_it() -> None:
    postgres().execute(
        "CREATE TABLE far_people AS SELECT i % 100 AS age FROM generate_series(1, 5000) AS s(i)"
    )
    schema = {"columns": [{"name": "age", "type": "integer", "lo": 0, "hi": 99}]}
    body = {"id": "far", "path": postgres().url, "relation": "far_people", "budget": BUDGET, "schema": schema}
    with site({}, postgres_tables=True) as made:
        reply = made.call("POST", "/datasets", body, token=made.started.owner)
        assert reply.status_code == 201, reply.text
        assert reply.json()["rows"] == 5_000
        assert "path" not in reply.json()
        bob = made.started.somebody("bob")
        answer = made.ask(QUESTION | {"rho": 0.01}, table="far", token=bob).json()["answers"][0]
        assert answer["low"] <= 0.59 <= answer["high"]
