"""`holdfast serve`: start a gateway, from one folder or on PostgreSQL."""

from __future__ import annotations

import os
import signal
import socket
from dataclasses import fields
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click

from holdfast.errors import InputError

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_GRACE_SECONDS = 30
WALKED_FIRST = 20_000
"""Chains of so many entries are walked before the start, in about a second. Others are walked while it answers."""
_GIVES_WAY = 10


@click.command()
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="where the gateway keeps its own files [default: ./holdfast-server]",
)
@click.option(
    "--data",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    help="a folder in which tables may lie; may be repeated",
)
@click.option("--database", help="postgresql://… for people, tokens and ledgers, instead of SQLite files")
@click.option(
    "--postgres-tables", is_flag=True, default=None, help="owners may register postgresql:// tables"
)
@click.option(
    "--anchors",
    type=click.Path(path_type=Path),
    help="where the anchors of ledgers are kept; best on another disk",
)
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8765, show_default=True, help="0 takes any free port")
@click.option(
    "--proxy", "proxies", multiple=True, help="an address or network whose X-Forwarded-For header is trusted"
)
@click.option("--workers", type=int, help="how many processes answer [default: 1]")
@click.option(
    "--quantum", type=float, help="replies leave at whole multiples of this many seconds [default: 0.1]"
)
@click.option(
    "--secure-cookies", is_flag=True, default=None, help="for a page that is reached over https only"
)
@click.option("--demo", is_flag=True, help="register a synthetic table and a leaderboard to play with")
@click.option("--new-token", is_flag=True, help="print a new token for the owner, if the first one is lost")
@click.option(
    "--restored-catalog", is_flag=True, help="accept an older copy of people and tokens; all tokens end"
)
@click.option(
    "--log", type=click.Path(path_type=Path), help="append the log to a file instead of printing it"
)
def serve(
    host: str, port: int, demo: bool, new_token: bool, restored_catalog: bool, log: Path | None, **flags: Any
) -> None:
    """Start a gateway: people with tokens ask registered tables, and every answer is charged to a ledger.

    The first start prints a token for the owner, once. Settings may also come from HOLDFAST_… variables.
    """
    try:
        import uvicorn
    except ImportError:
        raise click.ClickException("the gateway needs `pip install 'holdfast[server]'`") from None
    from holdfast.service.settings import from_environment, refuse_seeds

    refuse_seeds()
    settings = from_environment(**flags | {name: flags[name] or None for name in ("data", "proxies")})
    os.umask(0o077)
    token, long = _prepare(settings, demo, new_token, restored_catalog)
    listeners = _listeners(host, port, settings.workers)
    url = f"http://{f'[{host}]' if ':' in host else host}:{listeners[0].getsockname()[1]}"
    click.echo(f"Holdfast gateway at {url}  (its files are in {settings.folder}; Ctrl-C stops it)")
    if token is not None:
        click.echo(f"The owner's token, told only now:\n  {token}")
    if host not in _LOOPBACK:
        click.echo("Tokens must not cross a network in the clear: put a proxy with TLS before it.")
    _hand_down(settings)
    if long:
        click.echo(
            f"Meanwhile the chains of {', '.join(long)} are walked; if one was changed, the gateway stops."
        )
        get_context("spawn").Process(target=_walk, args=(settings, os.getpid()), daemon=True).start()
    config = uvicorn.Config(
        "holdfast.service.app:create_app", factory=True, workers=settings.workers, access_log=False,
        log_config=_logging(log), timeout_graceful_shutdown=_GRACE_SECONDS, server_header=False,
        http="holdfast.service.admission:Connection", ws="none", proxy_headers=False,
    )  # fmt: skip
    if settings.workers == 1:
        uvicorn.Server(config).run(listeners)
    else:
        from holdfast.service.workers import Workers

        Workers(config, listeners).run()


def _walk(settings: Any, started_by: int) -> None:
    """In a process of its own, which gives way to others: end the gateway if a ledger was changed."""
    from holdfast.errors import LedgerError
    from holdfast.service.gateway import Gateway

    os.nice(_GIVES_WAY)
    try:
        Gateway(settings).tables.walk()
    except LedgerError as error:
        click.echo(f"Error: {error}", err=True)
        if os.getppid() == started_by:  # it may have ended before
            os.kill(started_by, signal.SIGTERM)


def _prepare(
    settings: Any, demo: bool, new_token: bool, restored_catalog: bool = False
) -> tuple[str | None, list[str]]:
    """Refuse what must not start, make the first owner, and register the example; the owner's token if new, and the
    tables whose chains are yet to be walked."""
    from holdfast.service import auth
    from holdfast.service.gateway import Gateway
    from holdfast.service.metrics import Metrics

    gateway = Gateway(settings)
    try:
        if restored_catalog:
            gateway.catalog.restored()
        long = gateway.check(WALKED_FIRST)
        Metrics(settings.folder / "metrics").clear()
        token = gateway.first_owner()
        if (new_token or restored_catalog) and token is None:
            disabled = gateway.catalog.disabled()
            owners = (person for person in gateway.catalog.people() if person.scope == "owner")
            owner = next(person for person in owners if person.id not in disabled)
            token = auth.issue(gateway.catalog, owner.id, label="told at a start")
        if demo:
            from holdfast.service.example import register_example

            register_example(gateway)
    finally:
        gateway.close()
    return token, long


def _listeners(host: str, port: int, workers: int) -> list[socket.socket]:
    """What the workers listen at."""
    from holdfast.service.workers import listening

    try:
        return listening(host, port, workers)
    except OSError as error:
        raise InputError(
            f"cannot take port {port} on {host}: {error.strerror}; choose another with --port, or 0"
        ) from None


def _hand_down(settings: Any) -> None:
    """Workers read the settings from their environment."""
    for item in fields(settings):
        value = getattr(settings, item.name)
        name = f"HOLDFAST_{item.name.upper()}"
        if value is None:
            os.environ.pop(name, None)
        elif item.name in ("proxies", "join"):
            os.environ[name] = ",".join(value)
        elif isinstance(value, tuple):
            os.environ[name] = os.pathsep.join(str(Path(part).resolve()) for part in value)
        else:
            os.environ[name] = str(value.resolve() if isinstance(value, Path) else value)


def _logging(path: Path | None) -> dict[str, Any]:
    """A line of JSON for each request, and uvicorn's own words. For the owner; nothing from the rows is in it."""
    where: dict[str, Any] = {"class": "logging.StreamHandler", "stream": "ext://sys.stderr"}
    if path is not None:
        # Opened anew where logrotate has moved it away.
        where = {"class": "logging.handlers.WatchedFileHandler", "filename": str(path)}
    level = "INFO" if path is not None else "WARNING"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": "holdfast.service.logs.JsonLines"}},
        "handlers": {"out": where | {"formatter": "line"}},
        "loggers": {
            "holdfast.gateway": {"handlers": ["out"], "level": level, "propagate": False},
            "uvicorn": {"handlers": ["out"], "level": "WARNING", "propagate": False},
        },
    }
