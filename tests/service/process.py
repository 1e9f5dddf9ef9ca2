"""`holdfast serve` as a process, for tests that kill and restart it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from gateway import people
from services import postgres

from service.namespaces import HERE, Host

CAP = {"rho": 1.0}


class Server:
    """A `holdfast serve` process over a folder, on this machine or on another `host`."""

    def __init__(self, folder: Path, *flags: str, host: Host = HERE, **environment: str) -> None:
        self.folder, self.address = folder, host.address
        place = ["--folder", str(folder), "--host", host.address, "--port", "0"]
        command = [*host.command, sys.executable, "-m", "holdfast", "serve", *place, *flags]
        settings = {
            "HOLDFAST_QUANTUM": "0",
            "HOLDFAST_REQUESTS_PER_SECOND": "0",
            "HOLDFAST_STRANGERS_PER_SECOND": "0",
        }
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=os.environ | settings | environment | {"PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()
        found = re.search(rf"http://{re.escape(host.address)}:(\d+)", self.said)
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

    def fetch(
        self, method: str, path: str, body: str | None, headers: dict[str, str]
    ) -> tuple[int, dict[str, str], str]:
        """(status, headers, text) of a request as it is."""
        with closing(http.client.HTTPConnection(self.address, self.port, timeout=60)) as connection:
            connection.request(method, path, body, headers)
            with connection.getresponse() as reply:
                known = {name.lower(): value for name, value in reply.getheaders()}
                return reply.status, known, reply.read().decode()

    def call(
        self, method: str, path: str, body: Any = None, token: str = "", **headers: str
    ) -> tuple[int, Any]:
        """(status, JSON) of a request."""
        known = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"} | headers
        status, _, text = self.fetch(method, path, None if body is None else json.dumps(body), known)
        return status, json.loads(text) if text else None

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
def served(folder: Path, *flags: str, host: Host = HERE, **environment: str) -> Iterator[Server]:
    server = Server(folder, *flags, host=host, **environment)
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


def database_of(kind: str) -> dict[str, str]:
    """The one setting that chooses where people, tokens and ledgers are kept: "sqlite" or "postgres"."""
    if kind == "sqlite":
        return {}
    name, url = f"serve_{uuid.uuid4().hex}", postgres().url
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return {"HOLDFAST_DATABASE": url.replace("/postgres?", f"/{name}?")}
