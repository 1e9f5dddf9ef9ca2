"""What holds at the door: sizes, shapes, rates, keys; every refusal is one of a closed list of codes."""

from __future__ import annotations

import ast
import gc
import json
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from gateway import prepared, running
from starlette.requests import Request

import holdfast.service
from holdfast.errors import HoldfastError, InputError
from holdfast.service import envelope
from holdfast.service.envelope import CHARGED
from holdfast.service.gateway import Gateway
from holdfast.service.limits import Rate
from holdfast.service.problem import CODES, Problem
from holdfast.service.tables import Tables
from service.site import Reply, Site, site

QUESTION = {"kind": "fraction", "where": "age > 40", "rho": 1e-4}
GOOD = json.dumps(QUESTION).encode()


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    with site() as made:
        made.started.register_board("digits")
        yield made


def send(
    here: Site, body: bytes, headers: dict[str, str] | None = None, path: str = "/datasets/people/ask"
) -> Reply:
    """Bytes as they are."""
    sent = {"Authorization": f"Bearer {here.started.analyst}", "Content-Type": "application/json"}
    return here.client.post(f"/v1{path}", content=body, headers=sent | (headers or {}))


BODIES = {
    "nothing": b"",
    "null": b"null",
    "a list": b"[]",
    "a number": b"7",
    "half": GOOD[:-1],
    "twice": GOOD + GOOD,
    "deep lists": b"[" * 30_000,
    "deep objects": b'{"kind":' * 6_000,
    "a deep value": b'{"kind":"fraction","where":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    "not UTF-8": b'{"kind":"fraction","where":"\xff\xfe"}',
    "a lone surrogate": b'{"kind":"fraction","where":"\\ud800"}',
    "a surrogate as a name": b'{"kind":"fraction","where":"age > 1","\\ud800":1}',
    "a NUL": b'{"kind":"fraction","where":"age > 1\\u0000"}',
    "a huge integer": b'{"kind":"fraction","where":"age > 1","rows":' + b"9" * 4_000 + b"}",
    "an integer too long to read": b'{"kind":"fraction","where":"age > 1","rows":' + b"9" * 20_000 + b"}",
    "a huge exponent": b'{"kind":"fraction","where":"age > 1","rho":1e99999999}',
    "NaN": b'{"kind":"fraction","where":"age > 1","rho":NaN}',
    "no kind": b'{"where":"age > 1"}',
    "an unknown kind": b'{"kind":"median"}',
    "a kind that is a list": b'{"kind":["fraction"]}',
    "more than is declared": b'{"kind":"fraction","where":"age > 1","rho":0.1,"owner":true}',
    "a text for a number": b'{"kind":"fraction","where":"age > 1","rho":"0.1"}',
    "a truth for a number": b'{"kind":"fraction","where":"age > 1","rho":true}',
    "a long text": b'{"kind":"fraction","where":"' + b"a" * 10_001 + b'"}',
    "two accuracies": b'{"kind":"fraction","where":"age > 1","rho":0.1,"within":0.1}',
    "an unknown mechanism": b'{"kind":"fraction","where":"age > 1","rho":0.1,"mechanism":"magic"}',
}


@pytest.mark.parametrize("name", sorted(BODIES))
def test_a_body_that_is_none_is_refused_and_reserves_nothing(here: Site, name: str) -> None:
    before = here.totals()
    for end in ("ask", "estimate"):
        reply = send(here, BODIES[name], path=f"/datasets/people/{end}")
        assert (reply.status_code, reply.headers["content-type"]) == (422, "application/problem+json"), (
            reply.text
        )
        assert set(reply.json()) <= {"type", "title", "status", "code", "detail", "position"}
        assert len(reply.content) < 2_000, "what was sent is not sent back"
    assert here.totals() == before


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/xml", "multipart/form-data", "application/x-pickle", ""]
)
def test_another_kind_of_body_is_refused(here: Site, kind: str) -> None:
    before = here.totals()
    assert send(here, GOOD, {"Content-Type": kind}).status_code in (415, 422)
    assert here.totals() == before


def test_a_plain_body_passes_the_same_door(here: Site) -> None:
    """The control of all refusals above."""
    before = here.totals()
    assert send(here, GOOD.replace(b"40", b"41")).status_code == 200
    assert here.totals() != before


def test_large_bodies_are_refused_by_their_length(here: Site) -> None:
    most = here.started.settings.most_bytes
    for length in (str(most + 1), "9" * 30, "9" * 5_000, "-1", "x", "1e3"):
        reply = send(here, GOOD, {"Content-Length": length})
        assert (reply.status_code, reply.json()["code"]) == (413, "too-large")
    assert send(here, GOOD + b" " * (most - len(GOOD))).status_code == 200, "the control: just small enough"
    assert send(here, GOOD + b" " * (most - len(GOOD) + 1)).status_code == 413


def test_a_body_without_a_length_is_refused(here: Site) -> None:
    def chunks() -> Iterator[bytes]:
        yield GOOD

    sent = {"Authorization": f"Bearer {here.started.analyst}", "Content-Type": "application/json"}
    reply = here.client.post("/v1/datasets/people/ask", content=chunks(), headers=sent)
    assert (reply.status_code, reply.json()["code"]) == (413, "too-large")


def test_predictions_may_be_larger_but_not_without_end() -> None:
    with site(most_bytes=2_000, most_prediction_bytes=20_000) as here:
        here.started.register_board("digits")
        path = "/leaderboards/digits/submissions"
        good = json.dumps({"predictions": [0] * 5_000}).encode()
        assert 2_000 < len(good) < 20_000
        assert send(here, good, path=path).status_code == 200
        assert send(here, good + b" " * 20_000, path=path).status_code == 413


KEYS = ["", "x" * 201]


@pytest.mark.parametrize("key", KEYS, ids=["empty", "long"])
def test_a_key_that_is_none_is_refused(here: Site, key: str) -> None:
    before = here.totals()
    assert send(here, GOOD, {"Idempotency-Key": key}).status_code == 422
    assert here.totals() == before


def said(address: str, request: bytes) -> bytes:
    """What a server says to raw bytes."""
    place = urlsplit(address)
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=30) as line:
        line.sendall(request)
        parts = []
        while part := line.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def test_headers_cannot_be_forged_through_a_real_server() -> None:
    """Line breaks, NUL and other bytes in a header end in a refusal or in a key like any other; nothing is echoed."""
    with running() as started:

        def ask(key: bytes, more: bytes = b"", length: int = len(GOOD)) -> bytes:
            head = (
                b"POST /v1/datasets/people/ask HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                b"Content-Type: application/json\r\nAuthorization: Bearer " + started.analyst.encode()
                + b"\r\nContent-Length: " + str(length).encode() + b"\r\nIdempotency-Key: " + key + b"\r\n" + more
            )  # fmt: skip
            return said(started.url, head + b"\r\n" + GOOD)

        assert ask(b"plain").startswith(b"HTTP/1.1 200"), "the control"
        for key in (b"a\r\nX-Injected: yes", b"\xff\xfe\xe9", b"a\tb", b"%0d%0aX-Injected: yes"):
            reply = ask(key)
            assert b" 500 " not in reply[:20] and b"x-injected" not in reply.lower(), reply[:100]
        for key in (b"a\x00b", b"a\nb", b"a\rb"):
            assert b" 200 " not in ask(key)[:20]
        both = ask(b"both", b"Transfer-Encoding: chunked\r\n")
        assert b" 200 " not in both[:20], "a request of two lengths is smuggling"
        assert b" 200 " not in ask(b"short", b"Content-Length: 5\r\n")[:20]
        assert (
            said(started.url, b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 200_000 + b"\r\n\r\n")[:12]
            != b"HTTP/1.1 500"
        )
        ledger = started.gateway.tables.ledger("people")
        assert ledger.totals().entries == 1, "one question, one charge, however it came"


def test_somebody_who_asks_too_fast_waits_and_nobody_else() -> None:
    with site(requests_per_second=0.001, burst=5) as here:
        other = here.started.somebody("bob")
        codes = [here.call("GET", "/me").status_code for _ in range(9)]
        assert codes == [200] * 5 + [429] * 4
        reply = here.call("GET", "/me")
        assert reply.json()["code"] == "rate" and int(reply.headers["retry-after"]) > 0
        before = here.totals()
        assert here.ask(QUESTION).status_code == 429
        assert here.totals() == before
        assert here.call("GET", "/me", token=other).status_code == 200


def test_a_bucket_refills_and_forgets_nobody_too_early() -> None:
    rate = Rate(2.0, 3)
    assert [rate.wait("a", 0.0) for _ in range(3)] == [0.0] * 3
    assert rate.wait("a", 0.0) == pytest.approx(0.5)
    assert rate.wait("b", 0.0) == 0.0
    assert rate.wait("a", 0.5) == 0.0 and rate.wait("a", 0.5) > 0
    unlimited = Rate(0.0, 1)
    assert {unlimited.wait("a", 0.0) for _ in range(100)} == {0.0}, "the control: 0 is no limit"


def raised_codes() -> set[str]:
    """The codes with which the service raises a Problem, read off its sources."""
    found = set()
    for path in sorted(Path(holdfast.service.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            called = (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Problem"
            )
            if isinstance(node, ast.Call) and called and isinstance(node.args[0], ast.Constant):
                found.add(str(node.args[0].value))
    return found


def test_codes_are_a_closed_list(here: Site) -> None:
    assert raised_codes() <= set(CODES)
    with pytest.raises(KeyError):
        assert Problem("made up").status, "the control: no code is made up on the way"
    document = here.client.get("/openapi.json").json()
    assert set(document["components"]["schemas"]["ProblemBody"]["properties"]["code"]["enum"]) == set(CODES)


def test_refusals_of_the_router_are_problems_as_well(here: Site) -> None:
    for method, path in (
        ("GET", "/nowhere"),
        ("PATCH", "/me"),
        ("PATCH", "/datasets/people"),
        ("GET", "/datasets/%00"),
    ):
        reply = here.call(method, path)
        assert reply.status_code in (404, 405, 422) and reply.json()["code"] in CODES, path
        assert reply.headers["content-type"] == "application/problem+json"


def test_a_mistake_of_ours_tells_nothing(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise RuntimeError("a row says: secret")

    assert here.ask(QUESTION).status_code == 200  # opens the session: the next goes by the event loop
    for way in ("asking", "ask"):
        monkeypatch.setattr(Gateway, way, broken)
        if way == "ask":
            monkeypatch.setattr(Tables, "ready", lambda *_: None)
        reply = here.ask(QUESTION)
        assert (reply.status_code, reply.json()["code"]) == (500, "internal")
        assert "secret" not in reply.text and "Traceback" not in reply.text


def test_every_charged_route_leaves_at_a_public_time(here: Site) -> None:
    """Whatever calls the gateway's charged methods lies below a path that is held back."""
    document = here.client.get("/openapi.json").json()
    charged = {path for path, way in document["paths"].items() if "Idempotency-Key" in json.dumps(way)}
    assert len(charged) == 3
    assert all(path.endswith(CHARGED) for path in charged)
    assert not "/v1/datasets/x/estimate".endswith(CHARGED), "the control"


def test_headers_keep_the_browser_honest(here: Site) -> None:
    for path in ("/v1/health", "/v1/me", "/nowhere", "/openapi.json"):
        headers = here.client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff" and "content-security-policy" in headers
        assert headers["cache-control"] == "no-store"


def test_a_gateway_does_not_start_with_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SEED", "7")
    with pytest.raises(InputError, match="seed"), prepared():
        pass
    monkeypatch.delenv("HOLDFAST_SEED")
    with prepared() as started:
        assert started.owner, "the control"


REFUSED = {
    "a column that is not there": {"kind": "fraction", "where": "height > 3", "rho": 1e-6},
    "half a question": {"kind": "fraction", "where": "age >", "rho": 1e-6},
    "more than there is": {"kind": "fraction", "where": "age > 3", "rho": 1e6, "confirm": True},
}


def left(question: object) -> Counter[str]:
    """How many requests and errors the collector finds after so many refusals."""
    with site() as here:
        assert here.ask(question).status_code in (402, 422)
        gc.collect()
        gc.disable()
        try:
            for _ in range(10):
                here.ask(question)
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            found = (
                kind.__name__
                for one in gc.garbage
                for kind in (Request, HoldfastError)
                if isinstance(one, kind)
            )
            return Counter(found)
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()


@pytest.mark.parametrize("question", REFUSED.values(), ids=REFUSED)
def test_a_refusal_leaves_nothing_to_the_collector(question: object) -> None:
    assert not left(question)


def test_an_error_that_keeps_its_frames_keeps_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin."""
    monkeypatch.setattr(envelope, "let_go", lambda error: None)
    assert left(REFUSED["a column that is not there"])["Request"] >= 10
