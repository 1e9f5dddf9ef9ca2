"""Who waits for whom: turns, databases that are locked, and an event loop that waits for none."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from gateway import people

from holdfast.ledger import sqlite as ledger_sqlite
from holdfast.ledger.sqlite_readers import Readers
from holdfast.service import api, fast_route, gateway_database
from holdfast.service.gateway import Gateway
from holdfast.service.page import visits
from holdfast.service.work import Work
from service.site import Site, site

QUESTION = {"kind": "fraction", "where": "age > 40", "rho": 1e-5}
VECTOR = {"kind": "above", "threshold": 0.9, "hits": 1, "rho": 1e-4}


def _estimates_under_way(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many of one analyst's slow estimates run at once; another's is answered meanwhile if there is room."""
    with site({"people": people(2_000)}) as here:
        bob, go, under_way = here.started.somebody("bob"), threading.Event(), threading.Semaphore(0)
        quick = Gateway.estimate
        ann = here.started.person(here.started.analyst)

        def slow(self: Gateway, asker: Any, key: str, asked: Any) -> Any:
            if asker.id == ann.id:
                under_way.release()
                go.wait(60)
            return quick(self, asker, key, asked)

        monkeypatch.setattr(Gateway, "estimate", slow)
        many = [threading.Thread(target=here.estimate, args=(QUESTION,)) for _ in range(8)]
        for thread in many:
            thread.start()
        assert all(under_way.acquire(timeout=60) for _ in range(2))
        running = 2
        if under_way.acquire(timeout=0.3):  # the twin: it takes what it finds
            running += 1 + under_way.acquire(timeout=60)
        else:
            assert here.estimate(QUESTION, token=bob).status_code == 200
        go.set()
        for thread in many:
            thread.join()
        return running


def test_estimates_have_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _estimates_under_way(monkeypatch) == 2


def test_estimates_without_turns_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Work, "_turn", lambda *_: asyncio.Semaphore(1000))
    assert _estimates_under_way(monkeypatch) == 4


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Somebody else holds the lock of a file, as an open shell does, or VACUUM."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def _waiting(here: Site, many: list[Callable[[], Any]]) -> tuple[list[threading.Thread], list[int]]:
    codes: list[int] = []
    threads = [threading.Thread(target=lambda call=call: codes.append(call().status_code)) for call in many]
    for thread in threads:
        thread.start()
    return threads, codes


def test_a_locked_file_delays_who_needs_it_and_nobody_else() -> None:
    with site({"people": people(2_000), "others": people(1_000)}) as here:
        folder, data = here.started.settings.folder, here.started.settings.roots[0]
        assert here.ask(QUESTION, key="opened").status_code == 200
        assert here.ask(QUESTION, table="others", key="opened").status_code == 200
        waiters: dict[Path, Callable[[int], Any]] = {
            folder / "gateway.sqlite": lambda n: here.call(
                "POST", "/people", {"name": f"p{n}"}, token=here.started.owner
            ),
            folder / "replies.sqlite": lambda n: here.ask(QUESTION | {"where": f"age > {n}"}, key=f"k {n}"),
            data / "others.hf" / "ledger.sqlite": lambda n: here.ask(
                QUESTION | {"where": f"age > {n}"}, table="others"
            ),
        }
        for number, (path, wait) in enumerate(waiters.items()):
            with locked(path):
                threads, codes = _waiting(here, [lambda n=n, wait=wait: wait(n) for n in range(20)])
                assert here.client.get("/v1/health").status_code == 200
                for place in range(5):
                    other = QUESTION | {"where": f"income > {100 * number + place}"}
                    assert here.estimate(other).status_code == 200
                    assert here.ask(other).status_code == 200
                assert codes == [], f"nobody got through {path.name}"
            for thread in threads:
                thread.join()
            assert set(codes) <= {200, 201}, path.name


def test_a_lock_that_stays_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_database, "WAIT_SECONDS", 0.2)
    with site({"people": people(1_000)}) as here:
        with locked(here.started.settings.folder / "gateway.sqlite"):
            call = lambda: here.call("POST", "/people", {"name": "p"}, token=here.started.owner)  # noqa: E731
            threads, codes = _waiting(here, [call] * 4)
            for thread in threads:
                thread.join()
            assert codes == [503] * 4
        assert call().status_code == 201


@pytest.fixture
def in_the_loop(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whatever reads or writes a database in a thread that runs an event loop."""
    found: list[str] = []

    def watch(kind: type[Any], name: str) -> None:
        real = getattr(kind, name)

        def watched(self: Any, *how: Any) -> Any:
            if asyncio._get_running_loop() is not None:
                found.append(f"{kind.__module__}.{name} {how[:1]}")
            return real(self, *how)

        monkeypatch.setattr(kind, name, watched)

    for kind, name in (
        (Readers, "rows"), (gateway_database.SqliteDatabase, "rows"), (gateway_database.SqliteDatabase, "write"),
        (ledger_sqlite.SqliteDatabase, "read"), (ledger_sqlite.SqliteDatabase, "_write"),
    ):  # fmt: skip
        watch(kind, name)
    return found


def _journey(here: Site) -> None:
    """What people do, by the API and on the page."""
    here.started.register_board("board")
    owner = here.started.owner
    for question in (QUESTION, QUESTION | {"where": "age > 41"}, VECTOR | {"where": "age > 50"}):
        for key in (None, "k", "k"):
            here.ask(question, key=None if key is None else f"{key} {question['where']}")
        assert here.estimate(question).status_code == 200
    for path in (
        "/me",
        "/datasets",
        "/datasets/people/budget",
        "/datasets/people/answers",
        "/leaderboards/board",
    ):
        assert here.call("GET", path).status_code == 200
    assert (
        here.call("POST", "/leaderboards/board/submissions", {"predictions": [0] * 5_000}).status_code == 200
    )
    assert here.call("POST", "/people", {"name": "eve"}, token=owner).status_code == 201
    origin = {"Origin": "http://testserver"}
    page = here.client
    assert (
        page.post("/sign-in", data={"token": owner}, headers=origin, follow_redirects=False).status_code
        == 303
    )
    secret = page.cookies["holdfast"]
    form = {"form_token": visits.Visitor(here.started.person(owner), secret, here.started.gateway).form_token}
    for path in ("/tables", "/tables/people", "/people", "/nowhere", "/demo", "/tables/people/analysts"):
        page.get(path, headers={"Accept": "text/html"})
    for path, more in {
        "/people": {"name": "dan", "scope": "analyst"}, "/people/none/tokens": {}, "/boards": {}, "/register": {},
        "/tables/people/estimate": {"kind": "fraction", "where": "age > 3", "exact": "rho", "amount": "1e-5"},
        "/tables/people/ask": {"kind": "fraction", "where": "age > 3", "exact": "rho", "amount": "1e-5"},
        "/tables/people/analysts": {"person": "nobody"}, "/tables/people/verify": {}, "/sign-out": {},
    }.items():  # fmt: skip
        page.post(path, data=form | more, headers=origin, follow_redirects=False)


def test_no_database_is_asked_in_the_event_loop(in_the_loop: list[str]) -> None:
    with site({"people": people(2_000)}) as here:
        _journey(here)
    assert in_the_loop == []


def test_one_look_in_the_event_loop_is_noticed(
    in_the_loop: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def here_and_now(look: Callable[[], Any]) -> Any:
        return look()

    for module in (fast_route, visits, api):
        monkeypatch.setattr(module, "looked_up", here_and_now)
    with site({"people": people(2_000)}) as here:
        _journey(here)
    assert in_the_loop


def test_a_ledger_is_not_filled_for_nothing() -> None:
    with site({"people": people(2_000)}, most_entries=3) as here:
        assert here.ask(VECTOR | {"where": "age > 98"}).status_code == 200  # its opening, and one comparison
        assert here.ask(QUESTION).status_code == 200
        full = here.totals()
        for question in (
            QUESTION | {"where": "age > 1"},
            VECTOR | {"where": "age > 97"},
            {"kind": "sample", "where": "age > 2"},
        ):
            reply = here.ask(question)
            assert (reply.status_code, reply.json()["code"]) == (402, "budget"), question
        assert here.ask(QUESTION).status_code == 200, "what was told is told again"
        assert here.totals() == full
