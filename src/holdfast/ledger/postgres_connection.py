"""Connections to PostgreSQL that wait for nobody without an end."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.abc import PQGen

Result = TypeVar("Result")
_INTERVAL = 0.1
_NETWORK: dict[str, Any] = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}


def connect(url: str, *, connecting: int, silent: float, settings: str = "") -> Connection[Any]:
    """A connection that commits each statement by itself, after running `settings`.

    Guarantee: it is there after about `connecting` seconds, and a statement ends after about `silent`, with its result
    or with psycopg.OperationalError; then the connection is closed, and says `fell_silent`. The server's own time-outs
    are not enough: one that was stopped, or is cut off, ends nothing.
    """
    connection = _kind().connect(url, autocommit=True, connect_timeout=connecting, **_NETWORK)
    try:
        connection.silent = silent  # type: ignore[attr-defined]
        if settings:
            connection.execute(settings)
    except BaseException:
        connection.close()
        raise
    return connection


@cache
def _kind() -> type[Connection[Any]]:
    """psycopg's connection, with an end to every wait; psycopg is looked for when it is needed."""
    import psycopg

    class Timed(psycopg.Connection[Any]):
        silent, fell_silent = 60.0, False

        def wait(
            self, gen: PQGen[Result], interval: float = _INTERVAL, timeout: float | None = None
        ) -> Result:
            try:
                return super().wait(gen, interval, self.silent if timeout is None else timeout)
            except psycopg.OperationalError:
                if self.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                    self.fell_silent = True
                    self.pgconn.finish()  # what it would say now belongs to a question that is over
                raise

    return Timed
