"""Whether an operator is told: what fails, what hangs, and by which token."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from gateway import people

from holdfast.ledger import ChainedLedger
from holdfast.service import gateway_database, readiness
from holdfast.service.readiness import Readiness
from service.process import database_of
from service.site import Site, site
from service.test_gateway_database import frozen

QUESTION = {"kind": "fraction", "where": "age > 40", "rho": 1e-5}


def _ready(here: Site) -> tuple[int, set[str]]:
    """The status, and the checks that fail."""
    reply = here.client.get("/v1/ready")
    checks = reply.json()["checks"]
    assert reply.json()["ready"] == all(checks.values())
    return reply.status_code, {name for name, passes in checks.items() if not passes}


def test_a_sound_gateway_is_ready() -> None:
    with site({"people": people(1_000)}) as here:
        assert _ready(here) == (200, set())
        assert here.ask(QUESTION).status_code == 200
        assert _ready(here) == (200, set())


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with site({"people": people(1_000)}) as here:
        full = SimpleNamespace(f_bavail=10, f_frsize=4096)
        monkeypatch.setattr(readiness.os, "statvfs", lambda place: full)
        assert _ready(here) == (503, {"disk"})
        assert here.client.get("/v1/health").status_code == 200, "it is there all the same"
    assert os.statvfs is not None


def test_a_clock_that_was_set_back_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with site({"people": people(1_000)}) as here:
        real = time.time
        monkeypatch.setattr(readiness.time, "time", lambda: real() - 60.0)
        assert _ready(here) == (503, {"clock"})
        monkeypatch.setattr(readiness.time, "time", lambda: real() - 1.0)
        assert _ready(here) == (200, set())


def test_a_clock_behind_what_was_written_before_a_restart_is_told() -> None:
    with site({"people": people(1_000)}) as here:
        catalog = here.started.gateway.catalog
        with catalog._db.write():
            catalog._db.rows("UPDATE tokens SET created = ?", time.time() + 3600.0)
        assert _ready(here) == (503, {"clock"})


def test_a_writer_that_no_longer_commits_is_told_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its lock is lost, say: nothing is committed, and no error says so."""
    with site({"people": people(1_000)}) as here:
        assert here.ask(QUESTION).status_code == 200
        here.ledger()
        go, entered = threading.Event(), threading.Event()
        real = ChainedLedger._transaction

        def stuck(self: ChainedLedger, tickets: Any) -> bool:
            entered.set()
            go.wait(60)
            return real(self, tickets)

        monkeypatch.setattr(ChainedLedger, "_transaction", stuck)
        asking = threading.Thread(target=here.ask, args=(QUESTION | {"where": "age > 1"},))
        asking.start()
        assert entered.wait(60)
        assert _ready(here) == (200, set()), "for a while that is nothing"
        monkeypatch.setattr(readiness, "STALLED_SECONDS", 0.0)
        assert _ready(here) == (503, {"ledgers"})
        assert (
            'holdfast_ready{check="ledgers"} 0' in here.call("GET", "/metrics", token=here.started.owner).text
        )
        with caplog.at_level(logging.ERROR, "holdfast.gateway"):
            _watched(here, caplog, "stalled")
        go.set()
        asking.join()
        assert _ready(here) == (200, set())


def _watched(here: Site, caplog: pytest.LogCaptureFixture, event: str) -> None:
    """The watchdog looks until it says so, and says it once."""

    async def look() -> None:
        watching = asyncio.create_task(Readiness(here.started.gateway).watch(0.001))
        while event not in caplog.messages:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
        watching.cancel()

    asyncio.run(look())
    assert caplog.messages.count(event) == 1


def test_a_stopped_database_is_told_and_the_check_does_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_database, "WAIT_SECONDS", 0.5)
    monkeypatch.setattr(readiness, "SECONDS", 0.3)
    with site({"people": people(1_000)}, database=database_of("postgres")["HOLDFAST_DATABASE"]) as here:
        assert _ready(here) == (200, set())
        with frozen():
            status, failing = _ready(here)
            assert status == 503 and "records" in failing
            assert _ready(here)[0] == 503, "a second check waits for the first, and does not begin another"
        while _ready(here)[0] != 200:
            time.sleep(0.05)


def test_metrics_have_a_scope_of_their_own() -> None:
    with site({"people": people(1_000)}) as here:
        machine = here.started.somebody("prometheus", {}, scope="metrics")
        assert here.ask(QUESTION).status_code == 200
        told = here.call("GET", "/metrics", token=machine)
        assert told.status_code == 200
        lines = dict(line.rsplit(" ", 1) for line in told.text.splitlines() if not line.startswith("#"))
        assert lines['holdfast_ledger_entries{dataset="people"}'] == "1"
        assert lines['holdfast_ledger_readable{dataset="people"}'] == "1"
        spent = float(lines['holdfast_budget_spent{dataset="people"}'])
        assert 0 < spent <= float(lines['holdfast_budget_limit{dataset="people"}'])
        assert here.call("GET", "/metrics").status_code == 403
        assert here.call("GET", "/metrics", token=here.started.auditor).status_code == 403
        for path in ("/datasets", "/datasets/people", "/datasets/people/budget", "/leaderboards", "/people"):
            assert here.call("GET", path, token=machine).json()["code"] == "forbidden", path
        assert here.ask(QUESTION, token=machine).json()["code"] == "forbidden"
        origin = {"Origin": "http://testserver"}
        here.client.post("/sign-in", data={"token": machine}, headers=origin)
        assert "sign-in" in str(here.client.get("/tables").url), "no page either"
        somebody = here.started.person(machine).id
        refused = here.call(
            "PUT", f"/datasets/people/analysts/{somebody}", {"rho": 0.1}, token=here.started.owner
        )
        assert refused.json()["code"] == "invalid"
