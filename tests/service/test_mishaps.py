"""What befalls a host: a disk that fills in the middle of a commit, a clock that is set back. Nothing is lost, nothing
is charged twice, and what has ended stays ended."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.ledger import open_ledger, verify
from holdfast.service.catalog import Catalog
from service.process import ask, register, served, table_in, token_of
from service.site import Site, site

DAY = 86_400.0


def _room(process: int, size: int) -> None:
    """No file that the process writes grows beyond so many bytes: to it the disk is full."""
    resource.prlimit(process, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_a_disk_that_fills_in_the_middle_of_a_commit_loses_nothing(tmp_path: Path) -> None:
    """The system refuses a write of the ledger's file half way, for real; with room again all is answered, once."""
    folder = tmp_path / "server"
    store = table_in(folder, 2_000)
    with served(folder, HOLDFAST_ANCHORS=str(tmp_path / "anchors")) as server:
        ann = register(server, token_of(server))
        assert ask(server, ann, "age > 0", rho=1e-6)[0] == 200
        files = [*store.rglob("*.sqlite*"), *folder.rglob("*.sqlite*")]
        largest = max(file.stat().st_size for file in files)
        _room(server.process.pid, largest + 6_000)  # the middle of a page of the log, some commits from here
        first = {number: ask(server, ann, f"age > {number}", rho=1e-6) for number in range(1, 31)}
        refused = [number for number, (status, _) in first.items() if status != 200]
        assert refused, "the disk was full"
        assert {first[number][0] for number in refused} == {503}
        assert {first[number][1]["code"] for number in refused} == {"unavailable"}
        assert server.call("GET", "/v1/health")[0] == 200
        _room(server.process.pid, resource.RLIM_INFINITY)
        for number, (status, told) in first.items():
            again = ask(server, ann, f"age > {number}", rho=1e-6)
            assert again[0] == 200
            if status == 200:
                assert again[1]["answers"] == told["answers"], "what was told stands"
    ledger = open_ledger(store)
    verify(ledger)
    entries = list(ledger.entries())
    assert len(entries) == 31 and all(entry.answer is not None for entry in entries), "one charge each"
    assert ledger.totals().units == 31 * entries[0].charge.table
    stored = [json.loads(entry.answer or "") for entry in entries]
    told = [reply["answers"][0] for status, reply in first.values() if status == 200]
    assert all(answer in stored for answer in told), "none was told unpaid"
    ledger.close()


def _revived(here: Site, later: Callable[[float], None]) -> list[int]:
    """The status of a token after its end, and after the clock was set back to before it."""
    person = here.started.person(here.started.analyst).id
    body, owner = {"days": 1}, here.started.owner
    token = here.call("POST", f"/people/{person}/tokens", body, token=owner).json()["token"]
    statuses = [here.call("GET", "/me", token=token).status_code]
    for seconds in (2 * DAY, 0.0):
        later(seconds)
        statuses.append(here.call("GET", "/me", token=token).status_code)
    return statuses


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Set the clock so many seconds ahead of the right time."""
    right = time.time
    return lambda seconds: monkeypatch.setattr(time, "time", lambda: right() + seconds)


def test_a_clock_that_goes_back_revives_no_token(later: Callable[[float], None]) -> None:
    with site() as here:
        assert _revived(here, later) == [200, 401, 401]
        question = {"kind": "fraction", "where": "age > 3", "rho": 1e-4}
        assert here.ask(question).json()["answers"] == here.ask(question).json()["answers"], "others go on"
        assert here.totals().entries == 1
        verify(here.ledger())


def test_a_gateway_that_believes_its_clock_is_caught(
    later: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin."""
    monkeypatch.setattr(Catalog, "now", lambda self: time.time())
    with site() as here:
        assert _revived(here, later) == [200, 401, 200]
