"""`holdfast serve` as an operator meets it: real processes, real signals, real databases."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from gateway import people
from services import postgres

import holdfast as hf
from holdfast.ledger import open_ledger, verify

CAP = {"rho": 1.0}


class Server:
    """A `holdfast serve` process over a folder."""

    def __init__(self, folder: Path, *flags: str, **environment: str) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "holdfast", "serve", "--folder", str(folder), "--port", "0", *flags]
        settings = {
            "HOLDFAST_QUANTUM": "0",
            "HOLDFAST_REQUESTS_PER_SECOND": "0",
        }
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=os.environ | settings | environment | {"PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", self.said)
        self.port = 0 if found is None else int(found.group(1))
        if self.port:
            self._wait()

    def _wait(self) -> None:
        """Come back when it answers."""
        while True:
            try:
                self.call("GET", "/v1/health")
                return
            except OSError:
                assert self.process.poll() is None, "it ended instead of answering"
                time.sleep(0.02)

    def call(
        self, method: str, path: str, body: Any = None, token: str = "", **headers: str
    ) -> tuple[int, Any]:
        """(status, JSON) of a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(
            method, path, None if body is None else json.dumps(body),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"} | headers,
        )  # fmt: skip
        reply = connection.getresponse()
        text = reply.read()
        connection.close()
        return reply.status, json.loads(text) if text else None

    def stop(self, how: signal.Signals = signal.SIGTERM) -> str:
        """Ask it to stop, and wait; the rest of what it said."""
        if self.process.stdout is None or self.process.stdout.closed:
            return ""
        if self.process.poll() is None:
            self.process.send_signal(how)
        said = self.process.stdout.read()
        self.process.wait()
        self.process.stdout.close()
        return said


def refused(folder: Path, *flags: str, **environment: str) -> str:
    """What it says when it does not start."""
    server = Server(folder, *flags, **environment)
    assert server.process.stdout is not None
    said = server.said + server.process.stdout.read()
    assert server.process.wait() == 1, said
    server.process.stdout.close()
    return said


@contextmanager
def served(folder: Path, *flags: str, **environment: str) -> Iterator[Server]:
    server = Server(folder, *flags, **environment)
    try:
        yield server
    finally:
        server.stop()


def token_of(server: Server) -> str:
    """The owner's token, which the first start prints."""
    assert server.process.stdout is not None
    server.process.stdout.readline()
    return server.process.stdout.readline().strip()


def table_in(folder: Path, rows: int = 20_000) -> Path:
    (folder / "data").mkdir(parents=True)
    people(rows).save(folder / "data/people.hf")
    return folder / "data/people.hf"


def register(server: Server, owner: str) -> str:
    """The table `people` under a cap, with an analyst who may spend half of it; her token."""
    table = {"id": "people", "path": "people.hf", "budget": CAP, "target": "table"}
    assert server.call("POST", "/v1/datasets", table, owner)[0] == 201
    _, ann = server.call("POST", "/v1/people", {"name": "ann"}, owner)
    share = {"rho": CAP["rho"] / 2}
    assert server.call("PUT", f"/v1/datasets/people/analysts/{ann['id']}", share, owner)[0] == 204
    return str(server.call("POST", f"/v1/people/{ann['id']}/tokens", {}, owner)[1]["token"])


def ask(server: Server, token: str, where: str, **how: Any) -> tuple[int, Any]:
    body = {"kind": "fraction", "where": where, "rho": 1e-4} | how
    return server.call("POST", "/v1/datasets/people/ask", body, token)


@pytest.fixture(autouse=True)
def _around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Anchors that all processes of a test share; a client that is turned away at a stop is no error."""
    monkeypatch.setenv("HOLDFAST_ANCHORS", str(tmp_path / "anchors"))
    monkeypatch.setattr(threading, "excepthook", lambda _: None)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> dict[str, str]:
    """The one setting that chooses where people, tokens and ledgers are kept."""
    if request.param == "sqlite":
        return {}
    name, url = f"serve_{uuid.uuid4().hex}", postgres().url
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return {"HOLDFAST_DATABASE": url.replace("/postgres?", f"/{name}?")}


def test_one_budget_for_server_notebook_and_restart(tmp_path: Path, database: dict[str, str]) -> None:
    folder = tmp_path / "server"
    store = table_in(folder)
    before = hf.open(store).session(rho=0.1, name="notebook", target="table")
    earlier = before.fraction("age > 50", rho=1e-4)
    with served(folder, "--workers", "2", **database) as server:
        owner = token_of(server)
        ann = register(server, owner)
        status, first = ask(server, ann, "age > 40")
        assert status == 200
        address = database.get("HOLDFAST_DATABASE")
        beside = hf.open(store, ledger=None if address is None else f"{address}#people")
        assert beside.ledger.totals().entries == 2
        beside.session(rho=0.1, name="notebook", target="table").fraction("age > 60", rho=1e-4)
        _, budget = server.call("GET", "/v1/datasets/people/budget", token=ann)
        assert budget["table"]["answers"] == 3
        assert budget["answers"] == 1
        beside.close()
        for _ in range(8):  # both workers give the stored answer
            assert ask(server, ann, "age > 40")[1]["answers"] == first["answers"]
    with served(folder, **database) as server:
        assert ask(server, ann, "age > 40")[1]["answers"] == first["answers"]
        assert "told only now" not in server.stop()
    ledger = open_ledger(address + "#people" if address else store)
    assert verify(ledger).totals.entries == 3
    ledger.close()
    assert earlier.value == pytest.approx(0.5, abs=0.1)


def test_a_store_whose_ledger_moved_refuses_charges_of_its_own(
    tmp_path: Path, database: dict[str, str]
) -> None:
    folder = tmp_path / "server"
    store = table_in(folder)
    with served(folder, **database) as server:
        register(server, token_of(server))
    table = hf.open(store)
    if not database:
        table.session(rho=0.1, name="notebook", target="table").fraction("age > 60", rho=1e-4)
        return
    with pytest.raises(hf.LedgerError, match="moved"):
        table.session(rho=0.1, name="notebook", target="table").fraction("age > 60", rho=1e-4)
    assert "password" not in str(table.ledger)


def test_what_was_charged_is_answered_before_it_stops(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    table_in(folder, 3_000_000)
    with served(folder) as server:
        ann = register(server, token_of(server))
        assert ask(server, ann, "age > 1")[0] == 200  # the rows are open now
        replies: list[tuple[int, Any]] = []
        threads = [
            threading.Thread(
                target=lambda k=k: replies.append(ask(server, ann, f"age > {k} AND income > {k}"))
            )
            for k in range(2, 18)
        ]
        for thread in threads:
            thread.start()
        ledger = open_ledger(folder / "data/people.hf")
        while ledger.totals().entries < 4:
            time.sleep(0.001)
        server.stop()
        for thread in threads:
            thread.join()
    entries = list(ledger.entries())
    assert len(entries) >= 4
    assert all(entry.answer is not None for entry in entries)
    assert sum(status == 200 for status, _ in replies) >= len(entries) - 1
    ledger.close()


def test_a_restored_ledger_starts_only_when_it_is_acknowledged(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    store = table_in(folder)
    with served(folder) as server:
        ann = register(server, token_of(server))
        assert ask(server, ann, "age > 40")[0] == 200
    shutil.copytree(store, tmp_path / "yesterday")
    with served(folder) as server:
        assert ask(server, ann, "age > 41")[0] == 200
    shutil.rmtree(store)
    shutil.copytree(tmp_path / "yesterday", store)
    assert "older copy" in refused(folder)
    said = subprocess.run(
        [sys.executable, "-m", "holdfast", "ledger", "acknowledge", str(store), "--i-know-answers-were-lost"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    with served(folder) as server:
        _, budget = server.call("GET", "/v1/datasets/people/budget", token=ann)
        assert budget["table"]["spent"]["rho"] >= 2e-4  # what the lost answer cost is not forgotten


def test_another_ledger_in_its_place_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    store = table_in(folder)
    with served(folder) as server:
        register(server, token_of(server))
    for file in store.glob("ledger.sqlite*"):
        file.unlink()
    assert "not the one that was registered" in refused(folder)


def test_it_refuses_seeds_taken_ports_and_bad_settings(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for flags, environment, words in (
            ((), {"HOLDFAST_SEED": "1"}, "seed"),
            (("--port", port), {}, "--port"),
            ((), {"HOLDFAST_WORKERS": "many"}, "HOLDFAST_WORKERS"),
            (("--database", "mysql://x"), {}, "postgresql://"),
        ):
            said = refused(tmp_path / "server", *flags, **environment)
            assert words in said
            assert "Traceback" not in said


def test_the_example_can_be_asked_at_once(tmp_path: Path) -> None:
    with served(tmp_path / "server", "--demo") as server:
        owner = token_of(server)
        status, answer = ask(server, owner, "age > 40 AND smoker = 'yes'")
        assert status == 200
        assert 0 < answer["answers"][0]["value"] < 1
        _, board = server.call("GET", "/v1/leaderboards/digits", token=owner)
        assert board["rows"] == 20_000


def test_the_files_of_a_gateway_are_for_its_user_only(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    with served(folder) as server:
        token = token_of(server)
        secret = token.rsplit("_", 1)[1]
        kept = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert secret.encode() not in kept
    assert folder.stat().st_mode & 0o077 == 0
