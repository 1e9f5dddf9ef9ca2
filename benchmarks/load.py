"""A load for the gateway: many connections in a process of its own, each asking as soon as it is answered.

python -m benchmarks.load PORT TOKEN VERB CONNECTIONS SECONDS MOST FIRST     prints the times of all replies as JSON
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(
    port: int, token: str, verb: str, *, connections: int, seconds: float, most: int = 10**9, first: int = 0
) -> tuple[float, list[float]]:
    """(seconds, time of each reply) of a load of so many seconds or questions; raises if one was refused."""
    said = subprocess.run(
        [sys.executable, "-m", "benchmarks.load", *map(str, (port, token, verb, connections, seconds, most, first))],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    whole, times = json.loads(said.stdout)
    return whole, times


async def _connection(
    port: int, token: str, verb: str, numbers: list[int], until: float, most: int
) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    times = []
    while time.perf_counter() < until and numbers[0] < most:
        numbers[0] += 1
        number = numbers[0]
        # No two are the same question, so that each is charged.
        where = f"age > {number % 97} AND income <= {number}"
        body = json.dumps({"kind": "fraction", "where": where, "rho": 1e-7}).encode()
        start = time.perf_counter()
        writer.write(
            f"POST /v1/datasets/people/{verb} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        text = await reader.readexactly(length)
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(text.decode())
        times.append(time.perf_counter() - start)
    writer.close()
    return times


async def _all(
    port: int, token: str, verb: str, connections: int, seconds: float, most: int, first: int
) -> tuple[float, list[float]]:
    start, numbers = time.perf_counter(), [first]
    work = (
        _connection(port, token, verb, numbers, start + seconds, first + most) for _ in range(connections)
    )
    times = [moment for part in await asyncio.gather(*work) for moment in part]
    return time.perf_counter() - start, times


if __name__ == "__main__":
    port, token, verb, connections, seconds, most, first = sys.argv[1:]
    print(
        json.dumps(
            asyncio.run(_all(int(port), token, verb, int(connections), float(seconds), int(most), int(first)))
        )
    )
