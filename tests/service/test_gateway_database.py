"""What the gateway remembers in PostgreSQL: a server that was away is noticed by nobody who asks after it is back."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from services import postgres

from holdfast.errors import LedgerError
from holdfast.service.gateway_database import PostgresDatabase
from service.process import database_of
from service.site import Site, site


def _restart(_: PostgresDatabase) -> None:
    postgres().stop()
    postgres().start()


def _terminate(database: PostgresDatabase) -> None:
    """As an administrator or a proxy does it: the server stays, the connection ends."""
    backend = database._connection.info.backend_pid
    postgres().execute(f"SELECT pg_terminate_backend({backend}, 60000)")


LOSSES = {"restart": _restart, "terminate": _terminate}


@pytest.fixture(params=sorted(LOSSES))
def lose(request: pytest.FixtureRequest) -> Callable[[PostgresDatabase], None]:
    return LOSSES[request.param]


@pytest.fixture
def name() -> str:
    return f"kept_{uuid.uuid4().hex}"


@pytest.fixture
def database(name: str) -> Iterator[PostgresDatabase]:
    """With a table of one row."""
    yield from _opened(PostgresDatabase, name)


def _opened(kind: type[PostgresDatabase], name: str) -> Iterator[Any]:
    made = kind(postgres().url)
    with made.write():
        made.rows(f"CREATE TABLE {name} (number BIGINT)")
        made.rows(f"INSERT INTO {name} VALUES (?)", 1)
    yield made
    made.close()


def _numbers(name: str) -> list[int]:
    """What is there, read over a connection of its own."""
    with psycopg.connect(postgres().url) as connection:
        found = connection.execute(f"SELECT number FROM holdfast.{name} ORDER BY number").fetchall()  # type: ignore[arg-type]
    return [number for (number,) in found]


def test_after_the_connection_was_lost_the_next_read_and_the_next_block_succeed(
    database: PostgresDatabase, name: str, lose: Callable[[PostgresDatabase], None]
) -> None:
    lose(database)
    assert database.rows(f"SELECT number FROM {name}") == [(1,)]
    lose(database)
    with database.write():
        database.rows(f"INSERT INTO {name} VALUES (?)", 2)
    assert _numbers(name) == [1, 2]


class NeverAgain(PostgresDatabase):
    """The broken twin: it asks whether a connection is lost only after it has made a new one."""

    def _execute(self, text: str, values: tuple[object, ...] = ()) -> Any:
        try:
            return self._open().execute(text, values)
        except self._errors:
            if self._depth or not self._open().closed:
                raise
            return self._open().execute(text, values)


def test_one_that_never_asks_again_is_noticed(name: str, lose: Callable[[PostgresDatabase], None]) -> None:
    (broken,) = _opened(NeverAgain, name)
    assert broken.rows(f"SELECT number FROM {name}") == [(1,)]
    lose(broken)
    with pytest.raises(LedgerError):
        broken.rows(f"SELECT number FROM {name}")
    broken.close()


def test_what_may_have_been_done_is_not_done_again(
    database: PostgresDatabase, name: str, lose: Callable[[PostgresDatabase], None]
) -> None:
    """A statement on its own, and a block that had begun: both fail, and the block leaves nothing behind."""
    lose(database)
    with pytest.raises(LedgerError):
        database.rows(f"INSERT INTO {name} VALUES (?)", 2)
    with pytest.raises(LedgerError), database.write():
        database.rows(f"INSERT INTO {name} VALUES (?)", 3)
        lose(database)
        with pytest.raises(LedgerError):
            database.rows(f"INSERT INTO {name} VALUES (?)", 4)
        database.rows(f"INSERT INTO {name} VALUES (?)", 5)
    assert _numbers(name) == [1]
    with database.write():
        database.rows(f"INSERT INTO {name} VALUES (?)", 6)
    assert _numbers(name) == [1, 6]


def test_a_connection_that_cannot_be_prepared_is_not_kept(database: PostgresDatabase, name: str) -> None:
    """Otherwise the next statement would run outside the gateway's schema."""
    database.close()
    good, database._url = database._url, f"{database._url}&options=-c%20default_transaction_read_only%3Don"
    for _ in range(2):
        with pytest.raises(LedgerError, match="ReadOnlySqlTransaction"):
            database.rows(f"SELECT number FROM {name}")
    database._url = good
    assert database.rows(f"SELECT number FROM {name}") == [(1,)]


def _after_a_restart(here: Site) -> list[int]:
    """The first request of each kind after the server was away: who, an estimate, an answer, its repetition."""
    question = {"kind": "fraction", "where": "age > 40", "rho": 1e-4}
    assert here.ask(question, key="first").status_code == 200
    postgres().stop()
    postgres().start()
    replies = [here.call("GET", "/me"), here.estimate(question | {"where": "age > 50"})]
    replies += [here.ask(question | {"where": "age > 50"}, key="second"), here.ask(question, key="first")]
    return [reply.status_code for reply in replies]


def test_nobody_notices_that_the_server_was_restarted() -> None:
    url = database_of("postgres")["HOLDFAST_DATABASE"]
    with site(database=url) as here:
        assert _after_a_restart(here) == [200, 200, 200, 200]
        assert here.totals().entries == 2


def test_a_gateway_that_never_asks_again_tells_somebody_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresDatabase, "_execute", NeverAgain._execute)
    with site(database=database_of("postgres")["HOLDFAST_DATABASE"]) as here:
        assert 503 in _after_a_restart(here)
