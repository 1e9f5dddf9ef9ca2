"""A connection to a gateway."""

from __future__ import annotations

from typing import Any, Self, overload
from urllib.parse import quote

from holdfast.check import integer, positive
from holdfast.client.address import address, token_for
from holdfast.client.remote_boards import RemoteHoldout, RemoteLeaderboard
from holdfast.client.session import RemoteSession
from holdfast.client.table import RemoteTable, table_of
from holdfast.client.wire import Wire
from holdfast.errors import InputError


class Connection:
    """A gateway, seen with one token. Threads may share it."""

    def __init__(self, wire: Wire, *, confirm: bool) -> None:
        self._wire, self._confirm = wire, confirm
        self.me: dict[str, str] = wire.get("/v1/me")
        """Who the token belongs to: id, name, scope and team."""

    @property
    def tables(self) -> list[RemoteTable]:
        """The tables that you may see."""
        return [self._table(parts) for parts in self._wire.get("/v1/datasets")]

    def table(self, name: str) -> RemoteTable:
        """A table by its id."""
        return self._table(self._wire.get(f"/v1/datasets/{quote(name, safe='')}"))

    def session(self, table: str | None = None, *, confirm: bool | None = None) -> RemoteSession:
        """Your session on a table; it need not be named if you may see only one."""
        if table is not None:
            return self.table(table).session(confirm=confirm)
        tables = self.tables
        if len(tables) != 1:
            names = ", ".join(each.id for each in tables) or "none"
            raise InputError(f"expected the name of a table, got none; you may see: {names}")
        return tables[0].session(confirm=confirm)

    @property
    def leaderboards(self) -> list[str]:
        """The ids of all leaderboards."""
        return [board["id"] for board in self._wire.get("/v1/leaderboards")]

    def leaderboard(self, name: str) -> RemoteLeaderboard:
        """A leaderboard by its id."""
        return RemoteLeaderboard(self._wire, name)

    @property
    def holdouts(self) -> list[str]:
        """The ids of all holdouts."""
        return [board["id"] for board in self._wire.get("/v1/holdouts")]

    def holdout(self, name: str) -> RemoteHoldout:
        """A holdout by its id."""
        return RemoteHoldout(self._wire, name)

    def close(self) -> None:
        """Let go of the network. Another call opens it again."""
        self._wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<holdfast gateway at {self._wire.place.host} as {self.me['name']!r}>"

    def _table(self, parts: dict[str, Any]) -> RemoteTable:
        return table_of(parts, self._wire, confirm=self._confirm)


@overload
def connect(
    url: str,
    token: str | None = ...,
    *,
    table: None = ...,
    timeout: float = ...,
    retries: int = ...,
    confirm: bool = ...,
    insecure: bool = ...,
) -> Connection: ...
@overload
def connect(
    url: str,
    token: str | None = ...,
    *,
    table: str,
    timeout: float = ...,
    retries: int = ...,
    confirm: bool = ...,
    insecure: bool = ...,
) -> RemoteSession: ...


def connect(
    url: str,
    token: str | None = None,
    *,
    table: str | None = None,
    timeout: float = 60,
    retries: int = 5,
    confirm: bool = False,
    insecure: bool = False,
) -> Connection | RemoteSession:
    """Connect to a gateway; with `table`, open your session on that table at once.

    The token comes from the environment variable HOLDFAST_TOKEN if it is not given. A call that gets no reply in
    `timeout` seconds, or is told to come back, is repeated up to `retries` times, and is charged once. `confirm`
    agrees beforehand to questions that cost much of what is left. `insecure` lets the token travel unencrypted.
    """
    place = address(url)
    wire = Wire(
        place,
        token_for(place, token, insecure=insecure),
        timeout=positive("timeout", timeout),
        retries=integer("retries", retries, 0),
    )
    connection = Connection(wire, confirm=confirm)
    return connection if table is None else connection.session(table)
