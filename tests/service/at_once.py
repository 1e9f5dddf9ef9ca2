"""Many real requests at the same time, to two gateways over one folder and one database."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from gateway import Running, running, serving

import holdfast as hf
from holdfast.service import create_app
from service.process import database_of

DATABASES = ("sqlite", "postgres")


@dataclass(frozen=True)
class Request:
    """A POST to /v1, under an idempotency key if one is given."""

    path: str
    body: object
    token: str
    key: str | None = None


@dataclass(frozen=True)
class Pair:
    """Two gateways that share all that they remember; `started` is the first."""

    started: Running
    urls: tuple[str, str]

    def at_once(self, requests: Sequence[Request]) -> list[tuple[int, bytes]]:
        """(status, body) of each. All connections are open before the first request is sent, to each gateway half."""
        start, replies = threading.Barrier(len(requests)), [(0, b"")] * len(requests)

        def send(number: int, request: Request) -> None:
            replies[number] = _sent(self.urls[number % 2], request, start)

        threads = [threading.Thread(target=send, args=sent) for sent in enumerate(requests)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return replies

    def to_each(self, request: Request) -> list[tuple[int, bytes]]:
        """The same request to one gateway after the other: what is made at the first request of a kind is made then."""
        return [_sent(url, request, threading.Barrier(1)) for url in self.urls]


def _sent(url: str, request: Request, start: threading.Barrier) -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {request.token}", "Content-Type": "application/json"}
    named = {} if request.key is None else {"Idempotency-Key": request.key}
    with closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)) as connection:
        connection.connect()
        start.wait()
        connection.request("POST", f"/v1{request.path}", json.dumps(request.body), headers | named)
        reply = connection.getresponse()
        return reply.status, reply.read()


def code_of(reply: tuple[int, bytes]) -> str:
    """What was wrong with a request, or its status."""
    body: Any = json.loads(reply[1])
    return str(body["code"] if "code" in body else reply[0])


@contextmanager
def two_gateways(kind: str, tables: Mapping[str, hf.Table] | None = None, **how: Any) -> Iterator[Pair]:
    """Two gateways on SQLite or on PostgreSQL, both served."""
    database = database_of(kind).get("HOLDFAST_DATABASE")
    with running(tables, database=database, **how) as first, serving(create_app(first.settings)) as second:
        yield Pair(first, (first.url, second))
