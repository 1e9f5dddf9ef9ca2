"""Strangers at the socket of a real gateway: heads without end, requests that never end, connections without number."""

from __future__ import annotations

import asyncio
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest
from gateway import prepared, serving

from holdfast.errors import InputError
from holdfast.service import admission
from holdfast.service.admission import Connection
from holdfast.service.settings import Settings, from_environment
from service.process import Server, served, token_of

PATIENCE = 60.0
"""Seconds after which what must come has not come; a slow machine is no failure."""
LIMITS = {"most_header_bytes": 8_192, "most_connections": 12, "arrival_seconds": 1.0}
HEAD = b"GET /v1/health HTTP/1.1\r\nHost: here\r\n"
FORM = (
    b"POST /sign-in HTTP/1.1\r\nHost: here\r\nOrigin: http://here\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n"
)
HALF_SENT = {
    "nothing": (b"", 0),
    "half a line": (b"GET /v1/he", 408),
    "half a head": (HEAD + b"X: y", 408),
    "half a body": (FORM + b"Content-Length: 99\r\n\r\ntoken=", 408),
    "half a second request": (HEAD + b"\r\n" + HEAD, 200),
}
"""What strangers send, and the status of the first reply; 0 if there is none."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`holdfast serve` with narrow limits."""
    folder = tmp_path_factory.mktemp("server")
    narrow = {f"HOLDFAST_{name.upper()}": str(value) for name, value in LIMITS.items()}
    with served(folder / "server", HOLDFAST_ANCHORS=str(folder / "anchors"), **narrow) as started:
        token_of(started)
        yield started


def _dial(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def _rest(line: socket.socket) -> bytes:
    """All that comes until the other side ends the connection."""
    found = b""
    with suppress(ConnectionError):
        while piece := line.recv(65_536):
            found += piece
    return found


def _said(port: int, *pieces: bytes) -> bytes:
    """What is answered to a request that comes in pieces, until somebody answers; after that we are silent."""
    with _dial(port) as line:
        with suppress(ConnectionError):  # they may have heard enough
            for piece in pieces:
                if select.select([line], [], [], 0)[0]:
                    break
                line.sendall(piece)
        return _rest(line)


def _status(reply: bytes) -> int:
    return int(reply.split(b" ", 2)[1]) if reply else 0


def _with_header(length: int) -> bytes:
    """A whole request whose head has so many bytes."""
    rest = HEAD + b"Connection: close\r\nX: " + b"\r\n\r\n"
    return rest.replace(b"X: ", b"X: " + b"x" * (length - len(rest)))


def _pieces(text: bytes, size: int) -> list[bytes]:
    return [text[place : place + size] for place in range(0, len(text), size)]


@pytest.mark.parametrize("size", [10**9, 1_000], ids=["at once", "in pieces"])
def test_a_head_has_an_end(server: Server, size: int) -> None:
    most = LIMITS["most_header_bytes"]
    assert _status(_said(server.port, *_pieces(_with_header(int(most)), size))) == 200
    for length in (int(most) + 1, 200_000):
        assert _status(_said(server.port, *_pieces(_with_header(length), size))) == 431
    long = b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\n\r\n"
    assert _status(_said(server.port, long)) == 431
    assert _status(_said(server.port, b"\r\n" * 100_000)) in (400, 431)
    assert server.call("GET", "/v1/health")[0] == 200


def test_a_body_that_comes_with_its_head_is_not_counted_as_head(server: Server) -> None:
    """And neither is the next request on the same connection."""
    body = b"token=" + b"x" * 30_000
    whole = FORM + b"Content-Length: %d\r\n\r\n" % len(body) + body
    for size in (10**9, 500):
        with _dial(server.port) as line:
            for piece in _pieces(whole + whole + _with_header(8_000), size):
                line.sendall(piece)
            replies = _rest(line)
        assert replies.count(b"HTTP/1.1 401 ") == 2
        assert replies.count(b"HTTP/1.1 200 ") == 1


def test_chunks_are_refused_and_their_trailers_are_not_read(server: Server) -> None:
    chunked = HEAD.replace(b"GET", b"POST") + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: "
    assert _status(_said(server.port, chunked, *_pieces(b"x" * 2_000_000, 100_000))) in (0, 413)
    assert server.call("GET", "/v1/health")[0] == 200


@pytest.mark.parametrize("what", HALF_SENT)
def test_what_does_not_arrive_is_not_waited_for(server: Server, what: str) -> None:
    sent, status = HALF_SENT[what]
    assert _status(_said(server.port, sent)) == status


def test_a_request_that_trickles_in_is_not_waited_for(server: Server) -> None:
    """Each piece comes well before the time is up; the whole does not."""
    with _dial(server.port) as line:
        line.settimeout(0.2)
        line.sendall(HEAD)
        said = b""
        for _ in range(300):
            try:
                line.sendall(b"x")
                said = line.recv(65_536)
            except TimeoutError:
                continue
            except ConnectionError:
                pass
            break
        else:
            pytest.fail("it was waited for")
        assert _status(said) in (0, 408)


def test_many_that_send_nothing_do_not_keep_others_out(server: Server) -> None:
    """Ten times as many as there are places, and all the while somebody else is answered."""
    with ExitStack() as stack:
        lines = []
        for number in range(10 * int(LIMITS["most_connections"])):
            line = stack.enter_context(_dial(server.port))
            line.sendall(list(HALF_SENT.values())[number % 4][0])
            lines.append(line)
            if number % 10 == 0:
                assert server.call("GET", "/v1/health")[0] == 200
        assert server.call("GET", "/v1/health")[0] == 200
        assert _still_open(lines) <= LIMITS["most_connections"]


def _still_open(lines: list[socket.socket]) -> int:
    """How many of them the other side has not ended."""
    count = 0
    for line in lines:
        line.setblocking(False)
        try:
            while line.recv(65_536):
                pass
        except BlockingIOError:
            count += 1
        except ConnectionError:
            pass
    return count


# The same in this process, so that the protocol can be broken.


@contextmanager
def _protocol(kind: type | str, monkeypatch: pytest.MonkeyPatch, **limits: Any) -> Iterator[int]:
    """The port of a gateway whose connections are of this kind."""
    monkeypatch.setattr(admission, "limits", lambda: Settings(**LIMITS | limits))
    with prepared({}) as started, serving(started.app, http=kind) as url:
        yield int(url.rsplit(":", 1)[1])


class Counted(Connection):
    """It lets everybody in."""

    def _make_room(self) -> None:
        pass


class Patient(Connection):
    """It waits for ever."""

    def _end_late(self) -> None:
        pass


def _long_head_passes(port: int) -> bool:
    return _status(_said(port, _with_header(200_000))) == 200


def _half_sent_stays(port: int) -> bool:
    with _dial(port) as line:
        line.settimeout(2.0)
        line.sendall(HALF_SENT["half a head"][0])
        try:
            line.recv(1)
        except TimeoutError:
            return True
        return False


def _all_get_in(port: int) -> bool:
    with ExitStack() as stack:
        lines = [stack.enter_context(_dial(port)) for _ in range(40)]
        for line in lines:
            line.sendall(HEAD)
        return _still_open_after_a_call(port, lines) == 40


def _still_open_after_a_call(port: int, lines: list[socket.socket]) -> int:
    assert _status(_said(port, _with_header(200))) == 200  # all that came before was looked at
    return _still_open(lines)


@pytest.mark.parametrize(
    ("broken", "passes", "limits"),
    [
        ("httptools", _long_head_passes, {}),
        ("httptools", _half_sent_stays, {}),
        ("httptools", _all_get_in, {}),
        (Patient, _half_sent_stays, {}),
        (Counted, _all_get_in, {"arrival_seconds": 60.0}),
        (Connection, _long_head_passes, {"most_header_bytes": 1_000_000}),
    ],
)
def test_without_each_limit_what_it_stops_would_pass(
    monkeypatch: pytest.MonkeyPatch,
    broken: type | str,
    passes: Callable[[int], bool],
    limits: dict[str, float],
) -> None:
    """The broken twins, and the limits themselves as their control."""
    with _protocol(broken, monkeypatch, **limits) as port:
        assert passes(port)
    with _protocol(Connection, monkeypatch) as port:
        assert not passes(port)


def test_whoever_is_being_answered_keeps_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even half a request more makes them idle. When all are being answered, the next one is told to wait."""
    go, begun, places = threading.Event(), threading.Semaphore(0), 3
    monkeypatch.setattr(admission, "limits", lambda: Settings(**LIMITS | {"most_connections": places}))

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        begun.release()
        while not go.is_set():
            await asyncio.sleep(0.01)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    with ExitStack() as stack:
        url = stack.enter_context(serving(slow, lifespan="off"))  # type: ignore[arg-type]
        port = int(url.rsplit(":", 1)[1])
        busy = [stack.enter_context(_dial(port)) for _ in range(places)]
        for line in busy:
            line.sendall(HEAD + b"\r\n" + HEAD)
        assert all(begun.acquire(timeout=PATIENCE) for _ in busy)
        turned_away = _status(_said(port, _with_header(200)))
        go.set()
        assert [_status(line.recv(65_536)) for line in busy] == [200] * places
        assert turned_away == 503


def test_settings_that_would_let_nobody_in_are_refused() -> None:
    for name in LIMITS:
        for text in ("0", "-1", "nan" if name == "arrival_seconds" else "many"):
            with pytest.raises(InputError):
                from_environment({f"HOLDFAST_{name.upper()}": text})
