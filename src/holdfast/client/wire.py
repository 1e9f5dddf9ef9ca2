"""Calls to a gateway: connections that are kept alive, and calls that may be repeated because they count once."""

from __future__ import annotations

import json
import os
import secrets
import ssl
import time
import uuid
import weakref
from collections import deque
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from itertools import count
from typing import Any

from holdfast import __version__
from holdfast.client.address import Address
from holdfast.client.json_values import to_json
from holdfast.client.problem_errors import refusal
from holdfast.errors import GatewayError

_AGAIN = (429, 502, 503, 504)
"""Replies after which the same call may succeed later."""
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 10.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    wait: float
    """For how many seconds the gateway asks to be left alone."""
    body: bytes


class Wire:
    """Sends calls and reads their replies. Threads may share it.

    Guarantee: a charged call has one Idempotency-Key for all its tries, so that it is charged once, however many
    replies are lost on the way. The token goes to this address only: redirects are not followed.
    """

    def __init__(self, place: Address, token: str, *, timeout: float, retries: int) -> None:
        self.place, self._timeout, self._retries = place, timeout, retries
        self._headers = {"Authorization": f"Bearer {token}", "User-Agent": f"holdfast/{__version__}"}
        self._context = ssl.create_default_context() if place.secure else None
        self._idle: deque[HTTPConnection] = deque()
        self._process = os.getpid()
        weakref.finalize(self, _close, self._idle)

    def get(self, path: str) -> Any:
        """What stands at a path."""
        return self._call("GET", path, None, None)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """The reply to a call that costs nothing."""
        return self._call("POST", path, to_json(body), None)

    def delete(self, path: str) -> Any:
        """The reply to a call that ends something; a second one changes nothing."""
        return self._call("DELETE", path, None, None)

    def charge(self, path: str, body: dict[str, Any], key: str | None = None) -> Any:
        """The reply to a call that is charged; once, if it repeats a `key`."""
        return self._call("POST", path, to_json(body), key or uuid.uuid4().hex)

    def close(self) -> None:
        """Let go of the connections. Another call opens a new one."""
        _close(self._idle)

    def _call(self, method: str, path: str, body: bytes | None, key: str | None) -> Any:
        """The reply as JSON, or the error that it is."""
        reply = self._repeated(method, path, body, key)
        if reply.status >= 300:
            raise refusal(reply.status, reply.body)
        try:
            return json.loads(reply.body)
        except ValueError:
            raise GatewayError(
                "expected JSON from the gateway, got something else; is the address right?",
                code="unknown",
                status=reply.status,
            ) from None

    def _repeated(self, method: str, path: str, body: bytes | None, key: str | None) -> Reply:
        """The reply to the first try that got one worth telling, or to the last."""
        for tries in count(1):
            last = tries > self._retries
            try:
                reply = self._try(method, path, body, key)
            except ssl.SSLCertVerificationError as error:
                raise GatewayError(
                    f"the gateway's certificate is not to be trusted: {error.verify_message}; name its authority"
                ) from None
            except (OSError, HTTPException) as error:
                if last:
                    raise GatewayError(_unreachable(self.place, tries, error)) from error
                wait = 0.0
            else:
                wait = reply.wait
                if reply.status not in _AGAIN or last or wait > self._timeout:
                    return reply
            time.sleep(max(wait, pause(tries)))
        raise AssertionError("count() does not end")

    def _try(self, method: str, path: str, body: bytes | None, key: str | None) -> Reply:
        """One try. A kept connection that the other side has closed meanwhile is replaced at once."""
        headers = self._headers | ({} if key is None else {"Idempotency-Key": key})
        headers |= {} if body is None else {"Content-Type": "application/json"}
        connection = self._connection()
        kept = connection.sock is not None
        try:
            reply = _exchange(connection, method, self.place.path + path, body, headers)
        except ConnectionError:
            if not kept:
                raise
            reply = _exchange(connection, method, self.place.path + path, body, headers)
        self._idle.append(connection)
        return reply

    def _connection(self) -> HTTPConnection:
        """An idle connection, or a new one. Those of a parent process are not ours to speak on."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self.close()
        try:
            return self._idle.pop()
        except IndexError:
            host, port = self.place.host, self.place.port
            if self._context is None:
                return HTTPConnection(host, port, timeout=self._timeout)
            return HTTPSConnection(host, port, timeout=self._timeout, context=self._context)


def pause(tries: int) -> float:
    """Seconds before the next try: twice as long each time, and anything from half to all of it, so that many
    clients do not come back together."""
    longest = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** (tries - 1))
    return longest * (1 + secrets.randbelow(1001) / 1000) / 2


def _exchange(
    connection: HTTPConnection, method: str, path: str, body: bytes | None, headers: dict[str, str]
) -> Reply:
    """Send, and read to the end. After anything else the connection is closed: no reply is taken for another's."""
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        content = response.read()
    except BaseException:
        connection.close()
        raise
    wait = response.headers.get("Retry-After", "")
    return Reply(response.status, float(wait) if wait.isdigit() else 0.0, content)


def _close(connections: deque[HTTPConnection]) -> None:
    while connections:
        connections.pop().close()


def _unreachable(place: Address, tries: int, error: Exception) -> str:
    return (
        f"no reply from {place.host} in {tries} {'try' if tries == 1 else 'tries'} ({type(error).__name__}); look at "
        "the address and the network, and ask again: what was charged stands, and a question asked again gets its "
        "one answer"
    )
