"""What only a server can do: go away, lose a commit's answer, hold many ledgers."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest
from services import postgres

from holdfast.errors import LedgerError
from holdfast.ledger import Account, Charge, PostgresLedger, Totals, open_ledger, verify
from holdfast.ledger.postgres import PostgresDatabase
from ledger.crashing import ask, session


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    made = PostgresLedger(postgres().url, str(tmp_path), tmp_path)
    made.open(Account("s", "zcdp", 100))
    yield made
    made.close()


def test_a_restarted_server_is_found_again(ledger: PostgresLedger) -> None:
    ledger.reserve("s", "before", "{}", "{}", Charge(1, 1))
    postgres().stop()
    try:
        for action in (ledger.totals, lambda: ledger.reserve("s", "lost", "{}", "{}", Charge(1, 1))):
            with pytest.raises(LedgerError, match="ask again"):
                action()  # type: ignore[operator]
    finally:
        postgres().start()
    ledger.reserve("s", "after", "{}", "{}", Charge(1, 1))
    assert [entry.key for entry in ledger.entries()] == ["before", "after"]
    postgres().stop()
    postgres().start()
    assert ledger.totals() == Totals(2, 2, 2)
    assert verify(ledger).totals == Totals(2, 2, 2)


class LosesTheAnswer(PostgresDatabase):
    """The connection breaks during the next COMMIT, before or after the server has done it."""

    breaks, committed = False, False

    def commit(self) -> None:
        if not self.breaks:
            super().commit()
            return
        type(self).breaks = False
        if self.committed:
            super().commit()
        self._connections["writer"].close()
        self._write("COMMIT")


class CallsItDone(LosesTheAnswer):
    """The broken twin: no news of the commit is taken for good news."""

    def commit(self) -> None:
        with contextlib.suppress(LedgerError):
            super().commit()


def told_only_what_is_committed(
    ledger: PostgresLedger, broken: type[LosesTheAnswer], committed: bool
) -> bool:
    """Ask while the commit of the reservation breaks, then once more: one charge, one answer."""
    asking = session(ledger)
    ledger._database.__class__ = broken
    broken.breaks, broken.committed = True, committed
    try:
        ask(asking, "x > 5")
        return ledger.totals().entries == 1  # it was told that it was charged
    except LedgerError as error:
        if "ask again" not in str(error):
            return False
    first = ask(asking, "x > 5")
    assert json.loads(ask(asking, "x > 5"))["value"] == json.loads(first)["value"]
    return ledger.totals().entries == 1 and verify(ledger).answered == 1


@pytest.mark.parametrize("committed", [True, False])
def test_a_connection_lost_during_commit_is_never_called_a_success(committed: bool, tmp_path: Path) -> None:
    def check(broken: type[LosesTheAnswer]) -> bool:
        ledger = PostgresLedger(postgres().url, f"{tmp_path} {broken.__name__}", tmp_path)
        try:
            return told_only_what_is_committed(ledger, broken, committed)
        except LedgerError:
            return False
        finally:
            ledger.close()

    assert check(LosesTheAnswer)
    if not committed:
        assert not check(CallsItDone)


def test_many_ledgers_share_a_database_and_nothing_else(tmp_path: Path) -> None:
    url, names = postgres().url, [f"{tmp_path} {n}" for n in ("a", "b'; DROP SCHEMA holdfast; --")]
    ledgers = [PostgresLedger(url, name, tmp_path) for name in names]
    for number, ledger in enumerate(ledgers):
        ledger.open(Account("s", "zcdp", 100))
        for key in range(number + 1):
            ledger.reserve("s", str(key), "{}", "{}", Charge(10, 10))
    assert [ledger.totals().units for ledger in ledgers] == [10, 20]
    assert len({ledger.id for ledger in ledgers}) == 2
    for name, ledger in zip(names, ledgers, strict=True):
        again = open_ledger(url, name=name, anchors=tmp_path, create=False)
        assert again.id == ledger.id
        again.close()
        ledger.close()


def test_whoever_comes_second_finds_the_first_ones_ledger(tmp_path: Path) -> None:
    ids = []

    def make() -> None:
        made = PostgresLedger(postgres().url, str(tmp_path), tmp_path)
        ids.append(made.id)
        made.close()

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 6
    assert len(set(ids)) == 1


def test_what_the_server_says_stays_there(ledger: PostgresLedger) -> None:
    with psycopg.connect(postgres().url) as connection:
        connection.execute("DROP ROLE IF EXISTS stranger")
        connection.execute("CREATE ROLE stranger LOGIN PASSWORD 'hunter2'")
    url = postgres().url.replace("postgres@", "stranger:hunter2@")
    with pytest.raises(LedgerError, match="GRANT") as refused:
        PostgresLedger(url, "the stranger's own")
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None and refused.value.__context__ is None


def test_without_psycopg_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match=r"holdfast\[server\]"):
        open_ledger("postgresql://host/db#name")
