"""What the gateway remembers in PostgreSQL: a server that was away is noticed by nobody who asks after it is back."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from services import postgres

from holdfast.errors import LedgerError
from holdfast.ledger import postgres as postgres_ledger
from holdfast.service import gateway_database
from holdfast.service.gateway_database import (
    NotRemembered,
    PostgresDatabase,
    Remembered,
    SqliteDatabase,
    at_once,
)
from service.process import database_of
from service.site import Site, site


def _restart(_: PostgresDatabase) -> None:
    postgres().stop()
    postgres().start()


def _terminate(database: PostgresDatabase) -> None:
    """As an administrator or a proxy does it: the server stays, the connection ends."""
    for connection in database._idle:
        postgres().execute(f"SELECT pg_terminate_backend({connection.info.backend_pid}, 60000)")
    mine = getattr(database._block, "connection", None)
    if mine is not None:
        postgres().execute(f"SELECT pg_terminate_backend({mine.info.backend_pid}, 60000)")


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

    def _execute(self, borrowed: list[Any], text: str, values: tuple[object, ...] = ()) -> Any:
        try:
            return borrowed[0].execute(text, values)
        except self._errors:
            borrowed[0] = self._open()
            if not borrowed[0].closed:
                raise
            return borrowed[0].execute(text, values)


def test_one_that_never_asks_again_is_noticed(name: str, lose: Callable[[PostgresDatabase], None]) -> None:
    opened = _opened(NeverAgain, name)
    broken = next(opened)
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
    database._drop_idle()
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


@contextmanager
def frozen() -> Iterator[None]:
    """The server is there and says nothing, as when its machine hangs."""
    postgres().freeze()
    try:
        yield
    finally:
        postgres().thaw()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_database, "WAIT_SECONDS", 0.5)
    monkeypatch.setattr(postgres_ledger, "SILENT", 1.0)
    monkeypatch.setattr(postgres_ledger, "CONNECTING", 2)


def test_a_server_that_says_nothing_is_not_waited_for_without_end(impatient: None, name: str) -> None:
    opened = _opened(PostgresDatabase, name)
    database = next(opened)
    with frozen():
        with pytest.raises(LedgerError, match="cannot be used"):
            database.rows(f"SELECT number FROM {name}")
        with pytest.raises(LedgerError), database.write():
            database.rows(f"INSERT INTO {name} VALUES (2)")
    assert database.rows(f"SELECT number FROM {name}") == [(1,)]
    next(opened, None)


def test_many_wait_for_few_connections(impatient: None, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = _opened(PostgresDatabase, name)
    database, found = next(opened), list[Any]()
    threads = [
        threading.Thread(target=lambda: found.append(database.rows(f"SELECT number FROM {name}")))
        for _ in range(50)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[(1,)]] * 50
    assert 1 <= len(database._idle) <= gateway_database._CONNECTIONS
    next(opened, None)


def test_a_stopped_server_delays_who_needs_it_and_nobody_else(impatient: None) -> None:
    question = {"kind": "fraction", "where": "age > 40", "rho": 1e-4}
    with site(database=database_of("postgres")["HOLDFAST_DATABASE"]) as here:
        assert here.ask(question, key="first").status_code == 200
        with frozen():
            codes: list[int] = []
            waiting = [
                threading.Thread(target=lambda: codes.append(here.call("GET", "/me").status_code))
                for _ in range(4)
            ]
            for thread in waiting:
                thread.start()
            assert here.client.get("/v1/health").status_code == 200
            assert codes == [], "health did not wait for them"
            for thread in waiting:
                thread.join()
            assert codes == [503] * 4
            assert here.ask(question | {"where": "age > 41"}, key="second").status_code == 503
        assert here.ask(question | {"where": "age > 41"}, key="second").status_code == 200
        assert here.ask(question, key="first").status_code == 200
        assert here.totals().entries == 2


@pytest.fixture
def records(tmp_path: Path) -> Iterator[tuple[Remembered, SqliteDatabase]]:
    """A file as one process remembers it, and as another changes it."""
    mine, other = SqliteDatabase(tmp_path / "g.sqlite"), SqliteDatabase(tmp_path / "g.sqlite")
    with mine.write():
        mine.rows("CREATE TABLE t (number BIGINT)")
    yield Remembered(mine), other
    mine.close()
    other.close()


def _told(records: tuple[Remembered, SqliteDatabase]) -> list[list[Any]]:
    """What is told before and after each change, by this process and by another one."""
    memory, other = records
    seen = [memory.rows("SELECT number FROM t")]
    for database in (memory, other, memory):
        with database.write():
            database.rows("INSERT INTO t VALUES (?)", len(seen))
        seen.append(memory.rows("SELECT number FROM t"))
    return seen


def test_what_is_remembered_is_what_stands(records: tuple[Remembered, SqliteDatabase]) -> None:
    assert [len(rows) for rows in _told(records)] == [0, 1, 2, 3]


def test_a_memory_that_never_looks_is_noticed(
    records: tuple[Remembered, SqliteDatabase], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteDatabase, "version", lambda self: 1)
    assert [len(rows) for rows in _told(records)] == [0, 0, 0, 0]


def _same_tick(monkeypatch: pytest.MonkeyPatch, later_ns: int) -> None:
    """As on a disk whose clock stands still: the log looks the same after every change, and was changed a while ago."""
    then = time.time_ns()
    log = SimpleNamespace(st_ino=1, st_size=1, st_mtime_ns=then)
    monkeypatch.setattr(gateway_database.os, "stat", lambda path: log)
    monkeypatch.setattr(gateway_database.time, "time_ns", lambda: then + later_ns)


def test_changes_between_two_ticks_of_a_clock_are_noticed(
    records: tuple[Remembered, SqliteDatabase], monkeypatch: pytest.MonkeyPatch
) -> None:
    _same_tick(monkeypatch, later_ns=2 * 10**9)
    assert [len(rows) for rows in _told(records)] == [0, 1, 2, 3]
    monkeypatch.setattr(
        gateway_database, "_SETTLED_NS", 0
    )  # the broken twin trusts what was changed just now
    assert [len(rows) for rows in _told(records)] != [4, 5, 6, 7]


def test_sqlite_is_asked_only_after_a_change(
    records: tuple[Remembered, SqliteDatabase], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, other = records
    now = time.time_ns()
    monkeypatch.setattr(gateway_database.time, "time_ns", lambda: now + 10**10)
    assert memory.rows("SELECT number FROM t") == []
    mine: Any = memory._database
    watcher, mine._watcher = mine._watcher, None
    assert memory.rows("SELECT number FROM t") == []
    with other.write():
        other.rows("INSERT INTO t VALUES (1)")
    with pytest.raises(AttributeError):
        memory.rows("SELECT number FROM t")
    mine._watcher = watcher
    assert memory.rows("SELECT number FROM t") == [(1,)]


def test_at_once_means_from_memory_or_not_at_all(records: tuple[Remembered, SqliteDatabase]) -> None:
    memory, other = records
    query = "SELECT number FROM t"
    with pytest.raises(NotRemembered):
        at_once(lambda: memory.rows(query))
    assert memory.rows(query) == at_once(lambda: memory.rows(query)) == []
    with other.write():
        other.rows("INSERT INTO t VALUES (1)")
        assert at_once(lambda: memory.rows(query)) == [], "nothing is committed yet, and nobody waits"
    with pytest.raises(NotRemembered):
        at_once(lambda: memory.rows(query))
    assert memory.rows(query) == [(1,)]


async def _in_turns(memory: Remembered, other: SqliteDatabase) -> list[list[Any]]:
    """What an event loop is told in one turn, and in the next: the database is changed after the first look."""
    query = "SELECT number FROM t"

    async def look() -> list[Any]:
        try:
            return at_once(lambda: memory.rows(query))
        except NotRemembered:
            return await asyncio.to_thread(memory.rows, query)

    async def change() -> None:
        with other.write():
            other.rows("INSERT INTO t VALUES (1)")

    first = await asyncio.gather(look(), change(), look())
    return [first[0], first[2], await look()]


def test_a_turn_of_the_event_loop_asks_once_and_the_next_asks_anew(
    records: tuple[Remembered, SqliteDatabase], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, other = records
    memory.rows("SELECT number FROM t")
    asked, version = [], SqliteDatabase.version
    monkeypatch.setattr(SqliteDatabase, "version", lambda self: asked.append(self) or version(self))
    assert asyncio.run(_in_turns(memory, other)) == [[], [], [(1,)]]
    assert len(asked) <= 3, "two looks in one turn, one in the next, and one beside the loop"
    monkeypatch.setattr(Remembered, "_end_turn", lambda self: None)
    assert memory.rows("SELECT number FROM t") == [(1,)]
    told = asyncio.run(_in_turns(memory, other))
    assert told[2] == [(1,)], "a turn that never ends hides what came after it"
