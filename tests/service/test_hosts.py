"""Two gateways over one PostgreSQL behind a proxy of Debian's: one budget, one set of tokens, keys and boards; and one
of them is killed under load."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gateway import labels

from holdfast.ledger import open_ledger, verify
from service.namespaces import hosts_apart
from service.process import Server, database_of, register, served, table_in, token_of
from service.proxy import proxied

ROWS, QUANTUM = 2_000, 0.05


@dataclass
class Hosts:
    """Two gateways, the proxy before them, and who may ask."""

    one: Server
    two: Server
    door: int
    owner: str
    ann: str
    database: str

    def answers(self) -> list[str | None]:
        """What the one ledger of the table holds, after its chain was walked."""
        ledger = open_ledger(f"{self.database}#people")
        with closing(ledger):
            verify(ledger)
            return [entry.answer for entry in ledger.entries()]


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    """Each host has its own network, folder and anchors; the tables are where both see them, and of labels each has a
    copy."""
    database, places = database_of("postgres"), [tmp_path / name for name in ("one", "two")]
    data = table_in(tmp_path / "shared", ROWS).parent
    np.save(data / "board.npy", labels("board"))
    with ExitStack() as stack:
        started: list[Server] = []
        for place, host in zip(places, stack.enter_context(hosts_apart(2)), strict=True):
            settings = {"HOLDFAST_DATA": str(data), "HOLDFAST_ANCHORS": str(place / "anchors")} | database
            settings["HOLDFAST_QUANTUM"] = str(QUANTUM)
            started.append(stack.enter_context(served(place, host=host, **settings)))
            if len(started) == 1:
                owner = token_of(started[0])
                ann = register(started[0], owner)
                board = {"id": "board", "labels": "board.npy", "queries": 100, "within": 0.2}
                assert started[0].call("POST", "/v1/leaderboards", board, owner)[0] == 201
                shutil.copytree(places[0] / "boards", places[1] / "boards")
        door = stack.enter_context(proxied(tmp_path, [(server.address, server.port) for server in started]))
        yield Hosts(*started, door, owner, ann, database["HOLDFAST_DATABASE"])


def put(
    door: Server | int, token: str, body: Any, key: str, path: str = "/v1/datasets/people/ask"
) -> tuple[int, str]:
    """(status, body as sent) of a charged call, to a host or to the proxy's port."""
    place = ("127.0.0.1", door) if isinstance(door, int) else (door.address, door.port)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Idempotency-Key": key}
    with closing(http.client.HTTPConnection(*place, timeout=60)) as line:
        line.request("POST", path, json.dumps(body), headers)
        with line.getresponse() as reply:
            return reply.status, reply.read().decode()


def sample(number: int) -> dict[str, Any]:
    """A question which every call but a repeated one pays for."""
    return {"kind": "sample", "where": f"age > {number % 90}"}


def mixed(key: str) -> dict[str, Any]:
    """A sample, or a fraction that nobody else asks for."""
    thread, number = map(int, key.split())
    if number % 2 == 0:
        return sample(number)
    return {"kind": "fraction", "where": f"age > {number} AND income > {thread}", "rho": 1e-6}


def test_what_one_host_did_the_other_knows(hosts: Hosts) -> None:
    one, two, owner = hosts.one, hosts.two, hosts.owner
    assert (one.address != two.address) == (one.address != "127.0.0.1"), (
        "each has its network, or all are here"
    )
    # Tokens: issued at one, good at the other; revoked there, ended here.
    _, bob = one.call("POST", "/v1/people", {"name": "bob"}, owner)
    token = two.call("POST", f"/v1/people/{bob['id']}/tokens", {}, owner)[1]["token"]
    assert one.call("GET", "/v1/me", token=token)[0] == 200
    assert one.call("DELETE", f"/v1/tokens/{token.split('_')[1]}", token=owner)[0] == 204
    assert two.call("GET", "/v1/me", token=token)[0] == 401
    # Keys: one answer and one charge, whoever is asked; another question by the same key is refused.
    assert put(one, hosts.ann, sample(1), "key") == put(two, hosts.ann, sample(1), "key")
    assert put(two, hosts.ann, sample(2), "key")[0] == 422
    assert len(hosts.answers()) == 1
    assert put(two, hosts.ann, sample(1), "another key")[0] == 200
    assert len(hosts.answers()) == 2, "the control: without its key the same call is another"
    # Quanta: no charged reply leaves before one is over, whichever host gives it, and no refusal of one.
    for door in (one, two, hosts.door):
        for body, key in ((sample(1), "key"), (sample(2), "key"), ({"kind": "sample"}, "unreadable")):
            begun = time.perf_counter()
            put(door, hosts.ann, body, key)
            assert time.perf_counter() - begun >= QUANTUM
    # Limits: of forty at once through the door as many are answered as the share has left.
    person = one.call("GET", "/v1/me", token=hosts.ann)[1]["id"]
    share, used = (
        {"rho": 0.5, "queries": 20},
        one.call("GET", "/v1/datasets/people/budget", token=hosts.ann)[1],
    )
    assert one.call("PUT", f"/v1/datasets/people/analysts/{person}", share, owner)[0] == 204
    questions = [{"kind": "fraction", "where": f"age > {number}", "rho": 1e-6} for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(put, hosts.door, hosts.ann, q, f"limit {n}") for n, q in enumerate(questions)]
        statuses = [call.result()[0] for call in calls]
    assert sorted(set(statuses)) == [200, 402] and statuses.count(200) == 20 - used["answers"]
    assert two.call("GET", "/v1/datasets/people/budget", token=hosts.ann)[1]["answers"] == 20
    assert len(hosts.answers()) == 2 + statuses.count(200)
    # Boards: both count the looks of one board.
    path, said = "/v1/leaderboards/board", {"predictions": labels("board").tolist()}
    left = [one.call("GET", path, token=hosts.ann)[1]["looks_left"]]
    for place, server in enumerate((one, two)):
        said["predictions"][place] ^= 1
        assert put(server, hosts.ann, said, f"look {place}", f"{path}/submissions")[0] == 200
        left.append((two, one)[place].call("GET", path, token=hosts.ann)[1]["looks_left"])
    assert left == [left[0], left[0] - 1, left[0] - 2]


def test_one_host_is_killed_under_load_and_nothing_is_lost_or_charged_twice(hosts: Hosts) -> None:
    """Whoever got no reply asks again with the same key, through the same door."""
    delivered: dict[str, str] = {}
    turned_away, killing = list[str](), threading.Event()

    def load(thread: int) -> None:
        for number in range(25):
            key = f"{thread} {number}"
            while key not in delivered:
                try:
                    status, text = put(hosts.door, hosts.ann, mixed(key), key)
                except (OSError, http.client.HTTPException):
                    status, text = 0, ""
                if status == 200:
                    delivered[key] = text
                else:  # the proxy knows no host, or the host went away before it replied
                    assert status in (0, 502, 503, 504), text
                    turned_away.append(key)
                    killing.wait(0.02)
            if len(delivered) > 20 and not killing.is_set():
                killing.set()
                hosts.one.process.send_signal(signal.SIGKILL)

    with ThreadPoolExecutor(6) as pool:
        for call in [pool.submit(load, thread) for thread in range(6)]:
            call.result()
    hosts.one.process.wait()
    assert killing.is_set() and len(delivered) == 150
    answers = hosts.answers()
    assert None not in answers
    assert len(answers) == len(delivered), "one charge a question"
    stored = [json.loads(answer) for answer in answers if answer is not None]
    told = [json.loads(text).get("answers", [])[:1] for text in delivered.values()]
    assert sum(map(len, told)) == 72, "twelve fractions of each thread"
    assert all(one in stored for (one,) in filter(None, told)), "each delivered answer was paid for"
    for key, text in delivered.items():  # the host that is left has every reply
        assert put(hosts.two, hosts.ann, mixed(key), key) == (200, text)
    assert len(hosts.answers()) == len(delivered)
    # The check would notice a retry without its key: it is charged again.
    assert put(hosts.two, hosts.ann, sample(0), "a new key")[0] == 200
    assert len(hosts.answers()) == len(delivered) + 1
