"""What a day's load asks of a gateway: mostly new questions, and some of everything else that people do."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import Any

ANALYSTS = 24
CONNECTIONS = 192
RENEWED = 500
"""A connection is closed after so many requests, and another is opened."""
TOKEN_DAYS = 1 / 24
_AGAIN = 101 * ANALYSTS
"""So many questions ago the same analyst asked something new."""
_STRANGER = "hf_" + 12 * "0" + "_" + 64 * "0"


@dataclass(frozen=True)
class Wanted:
    """A request, what it is, and which status it should get."""

    kind: str
    method: str
    path: str
    body: dict[str, Any] | None = None
    key: str = ""
    status: int = 200
    token: str = ""


@dataclass
class Seen:
    """What came of requests: the seconds of each that was as it should be, and how many were of which kind."""

    seconds: list[float] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)


def wanted(number: int) -> Wanted:
    """The request of this number; of a hundred, 93 are new questions that are charged."""
    path, place = "/v1/datasets/people", number % 100
    if place < 2:
        return Wanted("estimate", "POST", f"{path}/estimate", _question(number))
    if place < 5 and number > _AGAIN:
        return Wanted("asked again", "POST", f"{path}/ask", _question(number - _AGAIN))
    if place == 5:
        return Wanted("new", "POST", f"{path}/ask", _question(number), key=f"key {number}")
    if place == 6:
        unknown = {"kind": "fraction", "where": "height > 3"}
        return Wanted("unknown column", "POST", f"{path}/ask", unknown, status=422)
    if place == 7:
        return Wanted("unknown token", "GET", "/v1/me", status=401, token=_STRANGER)
    if place == 8:
        return Wanted("budget", "GET", f"{path}/budget")
    return Wanted("new", "POST", f"{path}/ask", _question(number))


def _question(number: int) -> dict[str, Any]:
    """A question that no other number asks."""
    return {"kind": "fraction", "where": f"age > {number % 97} AND income <= {number}", "rho": 1e-7}


class Line:
    """A connection that is opened when it is needed."""

    def __init__(self, port: int) -> None:
        self._port, self._left = port, 0
        self._reader: Any = None
        self._writer: Any = None

    async def call(self, want: Wanted, token: str) -> tuple[int, dict[str, Any]]:
        """(status, JSON) of a request."""
        if self._left == 0:
            await self.close()
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
            self._left = RENEWED
        self._left -= 1
        body = b"" if want.body is None else json.dumps(want.body).encode()
        key = f"Idempotency-Key: {want.key}\r\n" if want.key else ""
        self._writer.write(
            f"{want.method} {want.path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{key}"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        text = await self._reader.readexactly(length)
        return int(head[9:12]), json.loads(text) if text else {}

    async def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._left = 0


class Load:
    """So many connections. Latency counts from the moment at which a request was due, so that a gateway that stalls is
    not spared the requests that it keeps from being sent."""

    def __init__(
        self, port: int, owner: str, people: list[str], first: int = 0, connections: int = CONNECTIONS
    ) -> None:
        self._port, self._owner, self._people, self._connections = port, owner, people, connections
        self._tokens, self._locks = [""] * len(people), [asyncio.Lock() for _ in people]
        self._numbers, self._unasked, self.seen = count(first), list[int](), Seen()

    def taken(self) -> Seen:
        """What was seen since the last time."""
        seen, self.seen = self.seen, Seen()
        return seen

    async def ready(self) -> None:
        """Everybody has a token, and the gateway has answered."""
        line = Line(self._port)
        for who, token in enumerate(self._tokens):
            await self._renew(line, who, token)
        await line.close()

    async def run(self, until: float, rate: float | None = None) -> None:
        """Ask until a moment of `time.perf_counter`, so many requests a second; without a rate, as fast as may be."""
        start, first, self._unasked = time.perf_counter(), self.next_number(), []
        await asyncio.gather(*(self._one(until, start, first, rate) for _ in range(self._connections)))
        self._numbers = count(min(self._unasked, default=self.next_number()))

    def next_number(self) -> int:
        """The number of the next request."""
        number = next(self._numbers)
        self._numbers = count(number)
        return number

    async def _one(self, until: float, start: float, first: int, rate: float | None) -> None:
        line = Line(self._port)
        while rate is not None or time.perf_counter() < until:
            number = next(self._numbers)
            due = time.perf_counter() if rate is None else start + (number - first) / rate
            if due >= until and rate is not None:
                self._unasked.append(number)
                break
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            try:
                await self._ask(line, number, due)
            except (OSError, asyncio.IncompleteReadError) as error:
                self.seen.wrong[type(error).__name__] += 1
                await line.close()
        await line.close()

    async def _ask(self, line: Line, number: int, due: float) -> None:
        want, who = wanted(number), number % len(self._people)
        while True:
            token = want.token or self._tokens[who]
            status, told = await line.call(want, token)
            if status == 401 and not want.token:
                await self._renew(line, who, token)
                continue
            break
        if status == want.status:
            self.seen.seconds.append(time.perf_counter() - due)
            self.seen.kinds[want.kind] += 1
        else:
            self.seen.wrong[f"{want.kind}: {status} {told.get('code', '')}"] += 1

    async def _renew(self, line: Line, who: int, ended: str) -> None:
        """Another token for somebody whose token has ended, unless another connection got it meanwhile."""
        async with self._locks[who]:
            if self._tokens[who] != ended:
                return
            # The first ones end one after another, or else all would come as strangers at the same moment.
            days = TOKEN_DAYS if ended else TOKEN_DAYS * (who + 1) / len(self._people)
            path, body = f"/v1/people/{self._people[who]}/tokens", {"days": days}
            status, told = await line.call(Wanted("token", "POST", path, body), self._owner)
            assert status == 201, told
            # Known from here on: many first requests at once would be too many strangers of one address.
            await line.call(Wanted("me", "GET", "/v1/me"), told["token"])
            self._tokens[who] = told["token"]
            self.seen.kinds["token ended"] += bool(ended)
