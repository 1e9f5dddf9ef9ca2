"""HAProxy, of the Debian package `haproxy`, before gateways."""

from __future__ import annotations

import http.client
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

_SETTINGS = """
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    option redispatch
    retries 2
frontend door
    bind 127.0.0.1:{port}
    option forwardfor
    http-request set-header X-Forwarded-Proto http
    default_backend gateways
backend gateways
    balance roundrobin
    option httpchk GET /v1/ready
    default-server check inter 200ms fall 1 rise 1
{servers}
"""


def _program() -> str:
    found = shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    if found is None:
        raise RuntimeError("expected haproxy, got none; run apt-get install haproxy")
    return found


@contextmanager
def proxied(folder: Path, places: Sequence[tuple[str, int]]) -> Iterator[int]:
    """A proxy that hands requests to these addresses and ports in turn, while they are ready; its own port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    servers = "\n".join(
        f"    server host{number} {address}:{one}" for number, (address, one) in enumerate(places)
    )
    settings = folder / "haproxy.cfg"
    settings.write_text(_SETTINGS.format(port=port, servers=servers))
    process = subprocess.Popen(
        [_program(), "-db", "-q", "-f", str(settings)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while not _answers(port):
            assert process.poll() is None, "haproxy ended instead of answering"
            time.sleep(0.02)
        yield port
    finally:
        process.terminate()
        process.wait()


def _answers(port: int) -> bool:
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as line:
            line.request("GET", "/v1/health")
            return line.getresponse().status == 200
    except OSError:
        return False
