"""Where a gateway is, and whether a token may be sent there."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from holdfast.errors import GatewayError, InputError

TOKEN = "HOLDFAST_TOKEN"
"""The environment variable that holds the token where none is given."""


@dataclass(frozen=True, slots=True)
class Address:
    """A gateway's scheme, host and port, and the path before `/v1` where it stands behind a proxy."""

    secure: bool
    host: str
    port: int | None
    path: str

    @property
    def is_this_machine(self) -> bool:
        """Whether what is sent there never leaves this machine."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def address(url: str) -> Address:
    """An address from its text: http(s)://host[:port][/path]."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except (ValueError, AttributeError, TypeError):
        raise InputError(
            "expected an address such as https://holdfast.example.org, got something else"
        ) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"expected an address such as https://holdfast.example.org, got {url!r}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InputError(
            "expected an address such as https://holdfast.example.org, got one with a name, a password "
            "or a question in it; give the token as token="
        )
    return Address(parts.scheme == "https", parts.hostname, port, parts.path.rstrip("/"))


def token_for(place: Address, token: str | None, *, insecure: bool) -> str:
    """The token, from the environment if none is given, if it may be sent there. It is in no message."""
    chosen = os.environ.get(TOKEN, "") if token is None else token
    if not isinstance(chosen, str) or not chosen.strip():
        raise InputError(f"expected a token, got none; give token= or set {TOKEN}")
    chosen = chosen.strip()
    if not (chosen.isascii() and chosen.isprintable()) or " " in chosen:
        raise InputError(
            "expected a token as the gateway's owner gave it, got other characters; copy it again"
        )
    if not (place.secure or place.is_this_machine or insecure):
        raise GatewayError(
            "a token is a password, and http:// shows it to everybody on the way; use https://, or give "
            "insecure=True if the way is safe",
            code="insecure",
        )
    return chosen
