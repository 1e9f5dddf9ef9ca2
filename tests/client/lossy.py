"""A network that loses things: a proxy before a gateway, which is told what is to become of each call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class Lossy(ThreadingHTTPServer):
    """Forwards every call to a gateway. `fates` are of the next POSTs, in their order; afterwards all goes well.

    "refused": closed before it is forwarded. "dropped": closed after the gateway has answered. "half": half of the
    answer arrives. "502": a proxy's page arrives instead of the answer. "429": sent back before it is forwarded.
    "late": forwarded only when the next call has been answered.
    """

    daemon_threads = True

    def __init__(self, gateway: str) -> None:
        self.gateway = urlsplit(gateway)
        self.fates: list[str] = []
        self.keys: list[str | None] = []
        """The Idempotency-Key of each POST that came."""
        self.connections = 0
        self.answered = threading.Event()
        super().__init__(("127.0.0.1", 0), _Forwarder)

    @property
    def url(self) -> str:
        """Where the proxy is."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Forwarder(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Lossy

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_GET(self) -> None:
        self._reply(*self._forward(b""))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.keys.append(self.headers["Idempotency-Key"])
        fate = self.server.fates.pop(0) if self.server.fates else "well"
        if fate == "refused":
            self._hang_up()
            return
        if fate == "429":
            self._reply(429, b'{"code": "rate", "title": "wait"}')
            return
        if fate == "late":
            self.server.answered.wait(30)
        status, reply = self._forward(body)
        self.server.answered.set()
        if fate in ("dropped", "late"):
            self._hang_up()
        elif fate == "half":
            self._reply(status, reply, sent=len(reply) // 2)
            self._hang_up()
        elif fate == "502":
            self._reply(502, b"<html>bad gateway</html>")
        else:
            self._reply(status, reply)

    def _forward(self, body: bytes) -> tuple[int, bytes]:
        assert self.server.gateway.hostname is not None
        connection = HTTPConnection(self.server.gateway.hostname, self.server.gateway.port)
        try:
            names = ("Authorization", "Content-Type", "Idempotency-Key")
            headers = {name: self.headers[name] for name in names if self.headers[name] is not None}
            connection.request(self.command, self.path, body or None, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _reply(self, status: int, body: bytes, *, sent: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if status == 429:
            self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(body[:sent])

    def _hang_up(self) -> None:
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def lossy(gateway: str) -> Iterator[Lossy]:
    """A proxy that runs in a thread."""
    with Lossy(gateway) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
