"""The processes that answer: each has a listener of its own, so that the system deals connections out among them."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from typing import Any

from uvicorn.config import Config
from uvicorn.supervisors import Multiprocess

_BACKLOG = 2048
_DEALS_OUT = sys.platform == "linux"
"""Whether connections to one address are dealt out among its listeners (SO_REUSEPORT is another thing elsewhere)."""


def listening(host: str, port: int, workers: int) -> list[socket.socket]:
    """A listener for each worker at one address, taken before anything is promised on the terminal; or one for all
    where the system does not deal connections out.

    Guarantee: OSError if somebody else listens there, be it another gateway: the first listener takes the address for
    itself, and only then shares it with the others, which are its user's.
    """
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken: list[socket.socket] = []
    try:
        for _ in range(workers if _DEALS_OUT else 1):
            listener = socket.socket(kind)
            taken.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if len(taken) > 1:
                _share(listener)
            listener.bind(taken[0].getsockname() if len(taken) > 1 else (host, port))
            if workers > 1 and _DEALS_OUT:
                _share(listener)
            listener.set_inheritable(True)
        for listener in taken:
            listener.listen(_BACKLOG)  # who comes before the workers are up waits, and is not turned away
    except BaseException:
        for listener in taken:
            listener.close()
        raise
    return taken


def _share(listener: socket.socket) -> None:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


class Workers(Multiprocess):
    """uvicorn's supervisor, with a listener for each worker.

    At one listener for all, the worker that wakes first takes all connections that come at once, and the others have
    nothing to do. Guarantee: a worker that takes the place of another has its listener, and with it the connections
    that wait there.
    """

    def __init__(self, config: Config, listeners: list[socket.socket]) -> None:
        super().__init__(config, listeners)
        self._listeners, self.processes_num = listeners, 1

    def init_processes(self) -> None:
        self._one_by_one(super().init_processes)

    def keep_subprocess_alive(self) -> None:
        self._one_by_one(super().keep_subprocess_alive)

    def restart_all(self) -> None:
        self._one_by_one(super().restart_all)

    def handle_ttin(self) -> Any:
        """There is no listener for another worker."""

    def _one_by_one(self, step: Callable[[], None]) -> None:
        """Take a step of the supervisor for one worker after the other, as if each were the only one."""
        workers, self.processes = self.processes, []
        kept = []
        for place, listener in enumerate(self._listeners):
            self.processes, self.sockets = workers[place : place + 1], [listener]
            step()
            kept += self.processes
        self.processes = kept
