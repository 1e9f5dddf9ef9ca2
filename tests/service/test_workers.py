"""Workers with a listener each: connections are dealt out, and nobody else has the address."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.supervisors import multiprocess

from holdfast.service import workers
from holdfast.service.workers import Workers, listening

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all workers share one listener")
HERE = "127.0.0.1"


@contextmanager
def _listeners(many: int, port: int = 0) -> Iterator[list[socket.socket]]:
    taken = listening(HERE, port, many)
    try:
        yield taken
    finally:
        for listener in taken:
            listener.close()


def _dealt(listeners: list[socket.socket], many: int) -> list[int]:
    """How many of so many connections wait at each listener; the workers are busy meanwhile."""
    address = listeners[0].getsockname()
    sent = [socket.create_connection(address) for _ in range(many)]
    counts = []
    for listener in listeners:
        listener.setblocking(False)
        accepted = []
        try:
            while True:
                accepted.append(listener.accept()[0])
        except BlockingIOError:
            counts.append(len(accepted))
        for one in accepted:
            one.close()
    for one in sent:
        one.close()
    return counts


def test_connections_that_come_at_once_are_dealt_out() -> None:
    """A worker would have fewer than eight of 64 once in 1e10 times."""
    with _listeners(2) as taken:
        counts = _dealt(taken, 64)
    assert sum(counts) == 64
    assert min(counts) >= 8


def test_one_worker_has_the_address_to_itself() -> None:
    with _listeners(1) as taken:
        assert len(taken) == 1
        assert not taken[0].getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT)


@pytest.mark.parametrize("many", [1, 2])
def test_the_address_of_another_gateway_is_refused(many: int) -> None:
    with _listeners(2) as taken, pytest.raises(OSError, match="in use"), _listeners(many, _port(taken)):
        pass


def test_a_gateway_that_shares_before_it_has_the_address_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin would take half of another gateway's connections."""
    made = socket.socket

    def shared(*how: Any) -> socket.socket:
        one = made(*how)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        return one

    monkeypatch.setattr(workers.socket, "socket", shared)
    with _listeners(2) as taken, _listeners(2, _port(taken)) as others:
        assert _port(taken) == _port(others)


def _port(taken: list[socket.socket]) -> int:
    return int(taken[0].getsockname()[1])


class _Process:
    """A worker that does nothing, and ends when it is told."""

    pid = exitcode = None

    def __init__(self, config: Config, sockets: list[Any]) -> None:
        self.sockets, self.lives, self.process = sockets, True, self

    def start(self) -> None:
        pass

    def is_alive(self, timeout: float = 5) -> bool:
        return self.lives

    def wait_until_ready(self, *how: Any) -> bool:
        return True

    def kill(self) -> None:
        self.lives = False

    def join(self) -> None:
        self.lives = False

    terminate = kill


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch) -> Workers:
    monkeypatch.setattr(multiprocess, "Process", _Process)
    monkeypatch.setattr(multiprocess.signal, "signal", lambda *how: None)
    listeners: list[Any] = ["first", "second", "third"]
    made = Workers(Config("nothing:at_all", workers=3), listeners)
    made.init_processes()
    return made


def _places(supervisor: Workers) -> list[Any]:
    return [place for one in supervisor.processes for place in one.sockets]  # type: ignore[attr-defined]


def test_each_worker_has_a_listener_of_its_own(supervisor: Workers) -> None:
    assert _places(supervisor) == ["first", "second", "third"]


def test_whoever_takes_the_place_of_a_worker_has_its_listener(supervisor: Workers) -> None:
    dead, lives, also = supervisor.processes
    dead.kill(), also.kill()
    supervisor.keep_subprocess_alive()
    assert _places(supervisor) == ["first", "second", "third"]
    assert supervisor.processes[1] is lives
    assert dead not in supervisor.processes and also not in supervisor.processes


def test_after_all_were_replaced_each_listener_has_a_worker(supervisor: Workers) -> None:
    before = supervisor.processes
    supervisor.restart_all()
    assert _places(supervisor) == ["first", "second", "third"]
    assert not set(before) & set(supervisor.processes)
    supervisor.handle_ttin()  # there is no listener for a fourth
    supervisor.handle_ttou()  # nor may one be left alone
    assert _places(supervisor) == ["first", "second", "third"]


def test_a_supervisor_with_one_listener_for_all_is_noticed(
    supervisor: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin: uvicorn's own, at which whoever wakes first takes all."""
    usual = multiprocess.Multiprocess(Config("nothing:at_all", workers=3), ["first"])  # type: ignore[list-item]
    usual.init_processes()
    assert _places(usual) == ["first"] * 3  # type: ignore[arg-type]
