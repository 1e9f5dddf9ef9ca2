"""Row 12 of docs/threats.md: when a reply arrives says nothing about the rows. And row 5: who hangs up has paid.

The full attack, 2000 requests on a million rows of one person, is `evidence/gateway.py`.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import time
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi import Request, Response
from gateway import Running, running

from holdfast.service import api
from holdfast.service.clock import deadline
from holdfast.service.tables import Tables
from service.clockwatch import advantage, auc, two_tables, watch

OWNED = 100_000


def test_arrival_times_tell_nothing() -> None:
    """120 requests leave an AUC of 0.5 with a standard deviation of 0.053; with padding off it is nearly 1."""
    with two_tables(0.5, OWNED) as started:
        area, otherwise = advantage(watch(started, 120, lines=6))
    assert not otherwise
    assert area < 0.75


def test_a_gateway_that_replies_at_once_is_caught() -> None:
    """The broken twin: padding off. Apart from the bound above by a standard deviation, on a busy machine too."""
    with two_tables(0.0, 8 * OWNED) as started:
        area, _ = advantage(watch(started, 120), patience=5)
    assert area > 0.8


def test_the_area_is_what_it_says() -> None:
    assert auc([1, 2, 3], [4, 5, 6]) == 1.0
    assert auc([1, 3], [2, 2]) == 0.5
    assert auc([4, 5, 6], [1, 2, 3]) == 1.0


def test_deadlines_are_whole_quanta() -> None:
    for ready in (0.0, 0.001, 0.0499, 0.05):
        assert deadline(0.0, ready, 0.05) == 0.05
    assert deadline(7.0, 7.12, 0.05) == pytest.approx(7.15)
    assert deadline(7.0, 7.0, 0.05) != deadline(7.0, 7.06, 0.05), (
        "the control: what takes longer is told in quanta"
    )


QUESTION = {"kind": "fraction", "where": "age > 40", "rho": 1e-4}


def hang_up(started: Running) -> None:
    """Send a question under a key, and close the line before the reply."""
    place, body = urlsplit(started.url), json.dumps(QUESTION).encode()
    head = (
        "POST /v1/datasets/people/ask HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {started.analyst}\r\nIdempotency-Key: once\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((place.hostname or "", place.port or 0)) as line:
        line.sendall(head.encode() + body)


def ask(started: Running) -> tuple[int, bytes]:
    """The same question, and its reply."""
    place = urlsplit(started.url)
    line = http.client.HTTPConnection(place.hostname or "", place.port or 0, timeout=60)
    headers = {"Authorization": f"Bearer {started.analyst}", "Idempotency-Key": "once"}
    headers["Content-Type"] = "application/json"
    with closing(line):
        line.request("POST", "/v1/datasets/people/ask", json.dumps(QUESTION), headers)
        reply = line.getresponse()
        return reply.status, reply.read()


def charged_without_a_reply(started: Running) -> int:
    """How many charges stand some time after the analyst hung up."""
    ledger = started.gateway.tables.ledger("people")
    hang_up(started)
    until = time.monotonic() + 3.0
    while not ledger.totals().entries and time.monotonic() < until:
        time.sleep(0.01)
    return ledger.totals().entries


def test_who_hangs_up_has_paid_and_may_come_back() -> None:
    with running(quantum=0.3) as started:
        assert charged_without_a_reply(started) == 1
        before = started.gateway.tables.ledger("people").totals()
        first, second = ask(started), ask(started)
        assert first == second and first[0] == 200
        after = started.gateway.tables.ledger("people").totals()
        assert (after.entries, after.units) == (before.entries, before.units), "paid for once"


def test_a_gateway_that_lets_go_of_who_hangs_up_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: work is dropped with the line, so that whoever is quick enough pays nothing."""
    real = api.charged

    async def careless(request: Request, work: Any) -> Response:
        await asyncio.sleep(0.2)
        return Response() if await request.is_disconnected() else await real(request, work)

    monkeypatch.setattr(api, "charged", careless)
    monkeypatch.setattr(Tables, "ready", lambda *_: None)
    with running(quantum=0.3) as started:
        assert charged_without_a_reply(started) == 0
