"""Who is at the door before anybody knows them: the address that asks, as declared proxies tell it, and how often."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address
from threading import Lock

from starlette.types import Scope

from holdfast.service.limits import Rate
from holdfast.service.problem import Problem
from holdfast.service.settings import networks

_FOR, _PROTO = b"x-forwarded-for", b"x-forwarded-proto"
_SCHEMES = (b"http", b"https")
_OPEN = ("/v1/health", "/v1/ready")
"""Asked by load balancers; strangers who ask too much must not make them believe that nobody is here."""
_REMEMBERED = 10_000
WELCOME_SECONDS = 600.0
"""For so long a credential that let somebody in is known again without a look."""


class Proxies:
    """The proxies that were declared.

    Guarantee: what X-Forwarded-For and X-Forwarded-Proto say counts only if it was said by one of them. From
    everybody else they are as if they had not been sent. Of a chain the last address counts that is no declared
    proxy; those before it may be anybody's words. Other X-Forwarded headers are never read. The same holds of the
    header in which they say who somebody is (`Settings.identity_header`).
    """

    def __init__(self, declared: Sequence[str], identity_header: str | None = None) -> None:
        self._declared = networks(declared)
        self._identity = None if identity_header is None else identity_header.lower().encode()

    def among(self, address: str) -> bool:
        """Whether an address is a declared proxy's."""
        if not self._declared:
            return False
        try:
            place = ip_address(address)
        except ValueError:
            return False
        return any(place in one for one in self._declared)

    def look_through(self, scope: Scope) -> None:
        """Put whoever asks into the scope in the place of the proxy; Problem if a proxy of ours says what cannot be."""
        client = scope.get("client")
        if client is None or not self.among(client[0]):
            return
        self._look_who(scope)
        said = [value for name, value in scope["headers"] if name == _FOR]
        schemes = [value for name, value in scope["headers"] if name == _PROTO]
        if len(schemes) > 1 or any(scheme not in _SCHEMES for scheme in schemes):
            raise Problem("invalid", "header.X-Forwarded-Proto: expected http or https from the proxy, once")
        if schemes:
            scope["scheme"] = schemes[0].decode()
        if not said:
            return
        chain = [part.strip() for value in said for part in value.decode("latin-1").split(",")]
        for part in reversed(chain):
            try:
                address = str(ip_address(part))
            except ValueError:
                raise Problem(
                    "invalid", "header.X-Forwarded-For: expected addresses from the proxy, got something else"
                ) from None
            if not self.among(address):
                break
        scope["client"] = (address, 0)

    def _look_who(self, scope: Scope) -> None:
        said = [value for name, value in scope["headers"] if name == self._identity]
        if len(said) > 1:
            raise Problem("invalid", "the proxy said twice who asks; have it replace what others send")
        if said and said[0]:
            scope["state"]["identity"] = said[0].decode("utf-8", "replace")


class Strangers:
    """How often an address may come without a credential that was found to be good.

    Guarantee: an address has `burst` such requests, then `per_second`, in each process, whatever becomes of them; the
    next are refused before anything is looked up. Whoever was let in within WELCOME_SECONDS does not count, so that
    strangers behind the same address keep nobody out. An IPv6 address stands for its network of 64 bits. Cost: O(1).
    """

    def __init__(self, per_second: float, burst: int) -> None:
        self._rate, self._lock = Rate(per_second, burst), Lock()
        self._known: OrderedDict[bytes, float] = OrderedDict()

    def refuse_haste(self, scope: Scope) -> None:
        """Refuse a stranger who comes too often."""
        shown = _credential(scope)
        if scope["path"] in _OPEN or (shown is not None and self._known.get(shown, 0.0) > time.monotonic()):
            return
        wait = self._rate.wait(_origin(scope))
        if wait > 0:
            raise Problem("rate", f"wait {wait:.2f} seconds", retry_after=wait)

    def welcome(self, scope: Scope) -> None:
        """What the request shows let somebody in: it was no stranger's."""
        shown, now = _credential(scope), time.monotonic()
        if shown is None or self._known.get(shown, 0.0) > now:
            return
        with self._lock:
            self._known[shown] = now + WELCOME_SECONDS
            self._known.move_to_end(shown)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        self._rate.give_back(_origin(scope))

    def forget(self, scope: Scope) -> None:
        """What the request shows lets nobody in, or no longer."""
        shown = _credential(scope)
        if shown is not None and shown in self._known:
            with self._lock:
                self._known.pop(shown, None)


def _credential(scope: Scope) -> bytes | None:
    """A digest of the token that came along, or else of the cookies; None if there are none."""
    state = scope.setdefault("state", {})
    if "credential" not in state:
        sent = dict(scope["headers"])
        shown = sent.get(b"authorization") or sent.get(b"cookie")
        state["credential"] = hashlib.sha256(shown).digest() if shown else None
    found: bytes | None = state["credential"]
    return found


def _origin(scope: Scope) -> str:
    """Whose requests are counted together."""
    client = scope.get("client")
    if client is None:
        return ""
    try:
        address = ip_address(client[0])
    except ValueError:
        return str(client[0])
    return str(int(address) >> 64) if isinstance(address, IPv6Address) else str(address)
