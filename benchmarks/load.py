"""A load for the gateway: many connections in a process of its own, each asking as soon as it is answered.

It takes part of the same processor, so it is as little as can be: one thread, sockets and `select.epoll`, no parser.

python -m benchmarks.load PORT TOKEN VERB CONNECTIONS SECONDS MOST FIRST     prints the times of all replies as JSON
"""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_OK, _LENGTH, _END = b"HTTP/1.1 200", b"content-length: ", b"\r\n\r\n"


def run(
    port: int, token: str, verb: str, *, connections: int, seconds: float, most: int = 10**9, first: int = 0
) -> tuple[float, list[float]]:
    """(seconds, time of each reply) of a load of so many seconds or questions; raises if one was refused."""
    how = map(str, (port, token, verb, connections, seconds, most, first))
    said = subprocess.run(
        [sys.executable, "-S", "-m", "benchmarks.load", *how], cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    whole, times = json.loads(said.stdout)
    return whole, times


def asking(
    port: int, token: str, verb: str, connections: int, seconds: float, most: int, first: int
) -> tuple[float, list[float]]:
    """The load itself."""
    head = (
        f"POST /v1/datasets/people/{verb} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nContent-Length: "
    )
    opened = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
    sockets, since, heard = {one.fileno(): one for one in opened}, dict[int, float](), dict[int, bytes]()
    poll, times, number, start = select.epoll(), [], first, time.perf_counter()
    until, last = start + seconds, first + most
    waiting = list(sockets)
    for place, one in sockets.items():
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        poll.register(place, select.EPOLLIN)
    while True:
        now = time.perf_counter()
        for place in waiting if now < until else ():
            if number < last:
                number += 1
                # No two are the same question, so that each is charged.
                where = f"age > {number % 97} AND income <= {number}"
                body = f'{{"kind": "fraction", "where": "{where}", "rho": 1e-7}}'
                since[place] = time.perf_counter()
                sockets[place].sendall(f"{head}{len(body)}\r\n\r\n{body}".encode())
        waiting = []
        if not since:
            return time.perf_counter() - start, times
        for place, _ in poll.poll():
            reply = heard.pop(place, b"") + sockets[place].recv(65536)
            if not _whole(reply):
                heard[place] = reply
                continue
            if not reply.startswith(_OK):
                raise RuntimeError(reply.decode())
            times.append(time.perf_counter() - since.pop(place))
            waiting.append(place)


def _whole(reply: bytes) -> bool:
    """Whether all of a reply is there."""
    end = reply.find(_END)
    if end < 0:
        if not reply:
            raise RuntimeError("the gateway ended a connection")
        return False
    at = reply.lower().index(_LENGTH) + len(_LENGTH)
    return len(reply) >= end + len(_END) + int(reply[at : reply.index(b"\r", at)])


if __name__ == "__main__":
    port, token, verb, connections, seconds, most, first = sys.argv[1:]
    told = asking(int(port), token, verb, int(connections), float(seconds), int(most), int(first))
    print(json.dumps(told))
