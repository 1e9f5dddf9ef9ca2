"""How a gateway is set up: flags of `holdfast serve`, or environment variables named HOLDFAST_*."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

from holdfast.check import between, one_of, positive
from holdfast.errors import InputError

PREFIX = "HOLDFAST_"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything an operator may choose. All of it is public but `database`, which may hold a password."""

    folder: Path = Path("holdfast-server")
    """Where the gateway keeps its own files: people and tokens, ledgers of tables that have none, boards."""
    database: str | None = None
    """postgresql://… keeps people, tokens and ledgers in PostgreSQL; None keeps them in SQLite files."""
    data: tuple[Path, ...] = ()
    """Folders from which owners may register tables and labels; empty means the folder `data` in `folder`."""
    postgres_tables: bool = False
    """Whether owners may register tables of PostgreSQL servers by address: it is reached as the gateway's user."""
    anchors: Path | None = None
    """Where the anchors of ledgers lie; put it on another disk than the backups. None: the user's state folder."""
    quantum: float = 0.1
    """Replies to charged calls leave at whole multiples of so many seconds after they came; 0 turns it off."""
    confirm: float = 0.25
    """A question that costs more than this part of what an analyst has left must be confirmed."""
    requests_per_second: float = 50.0
    burst: int = 100
    """Each token may make so many requests a second, after a burst; 0 requests a second is no limit."""
    strangers_per_second: float = 10.0
    strangers_burst: int = 100
    """Each address may make so many requests a second without a valid token, after a burst; 0 a second is no limit."""
    proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies, separated by commas: what they say in X-Forwarded-For and -Proto counts."""
    identity: str = "email"
    """What a provider or a proxy calls people by: `email`, or `subject`, the provider's own name for somebody."""
    identity_header: str | None = None
    """The header in which declared proxies say who somebody is; None looks at none."""
    oidc_issuer: str | None = None
    oidc_client: str | None = None
    oidc_secret: str | None = None
    """A provider of OpenID Connect by which people sign in to the page, and what the gateway is called there."""
    public_url: str | None = None
    """https://…, where browsers reach the page; a provider sends them back there."""
    join: tuple[str, ...] = ()
    """Domains whose people become analysts by signing in, with no table to ask; else an owner adds everybody."""
    most_bytes: int = 65_536
    """The largest body of a request; submissions of predictions may be larger."""
    most_prediction_bytes: int = 67_108_864
    most_header_bytes: int = 32_768
    """The longest head of a request: its line and its headers."""
    arrival_seconds: float = 20.0
    """A request that has begun must be there after so many seconds, or later by its length; see `Connection`."""
    most_connections: int = 500
    """Connections in each process. Beyond that, whoever has been silent or unfinished for longest makes room."""
    most_entries: int = 1_000_000
    """How many entries an analyst may have in a table's ledger: about a kilobyte each, however little they cost."""
    secure_cookies: bool = False
    """Set when the page is reached by https only."""
    telemetry: bool = False
    """Whether each request is a span of OpenTelemetry, as the process is set up for it; without bodies and paths."""
    workers: int = 1
    answering_threads: int = 32

    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders that tables may come from."""
        return tuple(path.resolve() for path in self.data or (self.folder / "data",))


_READERS: dict[str, Any] = {
    "Path": Path,
    "Path | None": Path,
    "str": str,
    "str | None": str,
    "float": float,
    "int": int,
    "bool": lambda text: {"1": True, "true": True, "0": False, "false": False}[text.lower()],
    "tuple[str, ...]": lambda text: tuple(part.strip() for part in text.split(",") if part.strip()),
    "tuple[Path, ...]": lambda text: tuple(Path(part) for part in text.split(os.pathsep) if part),
}


def from_environment(environment: Mapping[str, str] = os.environ, **flags: Any) -> Settings:
    """The defaults, then HOLDFAST_… variables, then flags that are not None."""
    found: dict[str, Any] = {}
    for item in fields(Settings):
        text = environment.get(PREFIX + item.name.upper())
        if text is None:
            continue
        try:
            found[item.name] = _READERS[str(item.type)](text)
        except (ValueError, KeyError):
            raise InputError(
                f"expected {PREFIX}{item.name.upper()} as {item.type}, got something else; set it again"
            ) from None
    given = {name: value for name, value in flags.items() if value is not None}
    return checked(replace(Settings(), **found | given))


def checked(settings: Settings) -> Settings:
    """The settings, if they make sense together."""
    between("quantum", settings.quantum, 0.0)
    for name in (
        "workers",
        "answering_threads",
        "burst",
        "strangers_burst",
        "most_header_bytes",
        "most_connections",
        "most_entries",
    ):
        between(name, getattr(settings, name), 1.0)
    networks(settings.proxies)
    _check_sign_on(settings)
    positive("arrival_seconds", settings.arrival_seconds)
    between("confirm", positive("confirm", settings.confirm), 0.0, 1.0)
    if settings.database is not None and not settings.database.startswith(("postgresql://", "postgres://")):
        raise InputError("expected a database address postgresql://…, got another kind")
    return settings


def _check_sign_on(settings: Settings) -> None:
    """Single sign-on is declared whole, and over https."""
    one_of("identity", settings.identity, ("email", "subject"))
    parts = (settings.oidc_issuer, settings.oidc_client, settings.public_url)
    if settings.oidc_issuer is not None and None in parts:
        raise InputError("expected oidc_client and public_url beside oidc_issuer, got none; set them too")
    for url in (settings.oidc_issuer, settings.public_url):
        if url is not None and not _SAFE.match(url):
            raise InputError("expected an address https://… (or http:// on this machine), got another kind")
    header = settings.identity_header
    if header is not None and not (settings.proxies and _HEADER.fullmatch(header)):
        raise InputError("expected identity_header as a header's name, beside proxies, got less; set both")
    if settings.join and settings.identity != "email":
        raise InputError("expected join where identity is email, got it elsewhere; add people by hand")


_SAFE = re.compile(
    r"https://[^/\s?#]+[^\s?#]*\Z|http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/[^\s?#]*)?\Z"
)
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")


def networks(texts: Sequence[str]) -> tuple[IPv4Network | IPv6Network, ...]:
    """Addresses and networks that were declared as proxies."""
    try:
        return tuple(ip_network(text) for text in texts)
    except ValueError:
        raise InputError("expected proxies as addresses or networks, as in 10.0.0.0/8, got another") from None


def refuse_seeds(environment: Mapping[str, str] = os.environ) -> None:
    """Noise from a seed is no noise: a gateway does not start where somebody has set one."""
    if environment.get(PREFIX + "SEED") is not None:
        raise InputError(
            f"expected no {PREFIX}SEED, got one; a gateway never draws noise from a seed: unset it"
        )
