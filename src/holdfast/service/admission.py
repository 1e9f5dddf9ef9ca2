"""One connection to the gateway: how much, how slowly and how many may send before anybody knows who they are."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any, Literal

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from holdfast.service.settings import Settings, from_environment

Stage = Literal["head", "body"] | None
LEAST_BYTES_A_SECOND = 65_536
"""How slowly the body of a request may come, on top of the seconds that every request has."""
LINGER_SECONDS = 1.0
"""How long a refused sender may go on, unheard, so that the refusal reaches them before the connection ends."""


@cache
def limits() -> Settings:
    """The settings of this process."""
    return from_environment()


class Connection(HttpToolsProtocol):
    """uvicorn's connection, with limits on what arrives.

    Guarantee: of a head (request line and headers) about `most_header_bytes` are read, at most twice as many. A
    request arrives within `arrival_seconds`, and as many again as its length takes at LEAST_BYTES_A_SECOND, or
    the connection ends. A process has at most `most_connections`: a new one takes the place of that which has
    been silent or unfinished for longest, and is refused if all the others are being answered.
    """

    def __init__(self, *how: Any, **named: Any) -> None:
        super().__init__(*how, **named)
        self._limits = limits()
        self._in_head, self._head, self._length, self._deaf = True, 0, 0, False
        self._stage: Stage = None
        """What has begun to arrive and is not there yet; None if nothing is."""
        self._timer: asyncio.TimerHandle | None = None
        self._since = 0.0
        """Since when it has been at this stage, or when the last request was there."""

    @property
    def answering(self) -> bool:
        """Whether a reply is owed: its request has begun to be looked at."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def idle(self) -> bool:
        """Whether nothing would be lost but what has not arrived yet."""
        return self._stage == "body" or not self.answering

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._enter("head")
        if len(self.connections) > self._limits.most_connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        while data and not self._deaf and not self.transport.is_closing():
            piece = data[: self._limits.most_header_bytes - self._head] if self._in_head else data
            data = data[len(piece) :]
            self._head += len(piece) if self._in_head else 0
            super().data_received(piece)
            if self._in_head and self._head >= self._limits.most_header_bytes:
                self._refuse(431)
        if not self._deaf:
            self._enter("body" if not self._in_head else "head" if self._head else None)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._in_head, self._head = False, 0
        sent = dict(self.headers)
        length = sent.get(b"content-length", b"0")
        self._length = min(int(length), self._limits.most_prediction_bytes) if length.isdigit() else 0
        if b"transfer-encoding" in sent:  # refused by `Envelope`; what follows has no end, and is not read
            self._deaf, self.cycle.keep_alive = True, False

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head, self._head = True, 0

    def _enter(self, stage: Stage) -> None:
        """Note what is under way, and until when it must be there."""
        if stage != self._stage or stage is None:
            self._stop_timer()
            self._stage, self._since = stage, self.loop.time()
        if stage is not None and self._timer is None:
            more = self._length / LEAST_BYTES_A_SECOND if stage == "body" else 0.0
            self._timer = self.loop.call_later(self._limits.arrival_seconds + more, self._end_late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_late(self) -> None:
        """Time is up for what is under way. A reply to an earlier request is waited for."""
        self._timer = None
        if self._stage == "head" and self.answering:
            self._enter("head")
        elif (self._stage == "head" and self._head) or (self.answering and not self.cycle.response_started):
            self._refuse(408)
        else:  # nobody waits for a reply
            self.transport.close()

    def _make_room(self) -> None:
        """End the connection that has been idle for longest; refuse this one if there is none."""
        others = [one for one in self.connections if isinstance(one, Connection) and one.idle]
        if (longest := min(others, key=lambda one: (one._since, one is self))) is self:
            self._refuse(503)
        else:
            self.connections.discard(longest)
            longest.transport.abort()

    def _refuse(self, status: int) -> None:
        """Tell whoever sends that it is over, and hear no more of it."""
        self._deaf = True
        self._stop_timer()
        if self.answering and self._stage != "body":  # an earlier request's reply would come after ours
            self.transport.abort()
            return
        if self.answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        head = b"content-length: 0\r\nconnection: close\r\nretry-after: 1\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._timer = self.loop.call_later(LINGER_SECONDS, self.transport.abort)
