"""A ledger of format 1 opens with all its charges, chained in their order."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from holdfast.errors import BudgetError, LedgerError
from holdfast.ledger import Account, Charge, SqliteLedger, Totals, export, sqlite, verify

VERSION_1 = """
CREATE TABLE limits (id INTEGER PRIMARY KEY, name TEXT, currency TEXT, units INTEGER);
CREATE TABLE accounts (
  id INTEGER PRIMARY KEY, name TEXT, currency TEXT, units INTEGER, terms TEXT NOT NULL);
CREATE INDEX accounts_by_name ON accounts (name, id);
CREATE TABLE entries (
  id INTEGER PRIMARY KEY, session TEXT NOT NULL, key TEXT NOT NULL, plan TEXT NOT NULL, event TEXT NOT NULL,
  session_units INTEGER NOT NULL CHECK (session_units >= 0), table_units INTEGER NOT NULL CHECK (table_units >= 0),
  queries INTEGER NOT NULL CHECK (queries >= 0),
  session_entries INTEGER NOT NULL, session_answers INTEGER NOT NULL, session_total INTEGER NOT NULL,
  table_entries INTEGER NOT NULL, table_answers INTEGER NOT NULL, table_total INTEGER NOT NULL,
  UNIQUE (session, key), UNIQUE (session, session_entries), UNIQUE (table_entries));
CREATE TABLE answers (entry INTEGER PRIMARY KEY REFERENCES entries, answer TEXT NOT NULL);
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER entries_last BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER answers_stay BEFORE UPDATE ON answers BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER answers_last BEFORE DELETE ON answers BEGIN SELECT RAISE(ABORT, 'append-only'); END;
INSERT INTO limits VALUES (1, 'the table', 'zcdp', 20), (2, 'the table', 'zcdp', 50);
INSERT INTO accounts VALUES (1, 'a', 'zcdp', 10, ''), (2, 'b', 'pure', 30, 'promised'), (3, 'a', 'zcdp', 20, '');
INSERT INTO entries VALUES
  (1, 'a', 'k1', '{"recipe": 1}', '{}', 10, 12, 1, 1, 1, 10, 1, 1, 12),
  (2, 'b', 'k1', '{"question": "sparse vector"}', '{}', 3, 4, 0, 1, 0, 3, 2, 1, 16),
  (3, 'a', 'k2', '{"recipe": 2}', '{}', 9, 20, 1, 2, 2, 19, 3, 2, 36);
INSERT INTO answers VALUES (1, '{"value": 0.5}'), (2, '{"noisy threshold": 17}');
PRAGMA user_version=1;
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(VERSION_1)
    connection.close()
    return path


def test_nothing_is_lost_and_the_chain_holds(old: Path) -> None:
    ledger = SqliteLedger(old)
    assert ledger.totals() == Totals(3, 2, 36)
    assert ledger.totals("a") == Totals(2, 2, 19)
    assert ledger.limit() == Account("the table", "zcdp", 50)
    assert set(ledger.accounts()) == {Account("a", "zcdp", 20), Account("b", "pure", 30, "promised")}
    assert [(e.session, e.key, e.answer, e.secret) for e in ledger.entries()] == [
        ("a", "k1", '{"value": 0.5}', False),
        ("b", "k1", '{"noisy threshold": 17}', True),
        ("a", "k2", None, False),
    ]
    assert verify(ledger).place == 10
    assert "threshold" not in "".join(export(ledger))
    with pytest.raises(BudgetError):
        ledger.reserve("a", "k3", "{}", "{}", Charge(2, 1))
    pending = ledger.find("a", "k2")
    assert pending is not None
    ledger.record(pending.id, "late")
    ledger.close()
    again = SqliteLedger(old)
    assert verify(again).place == 11
    again.close()


def test_a_migration_is_whole_or_not_at_all(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = sqlite.from_version_1

    def interrupted(*arguments: object) -> None:
        real(*arguments)  # type: ignore[arg-type]
        raise LedgerError("the power went")

    monkeypatch.setattr(sqlite, "from_version_1", interrupted)
    with pytest.raises(LedgerError, match="power"):
        SqliteLedger(old)
    monkeypatch.undo()
    connection = sqlite3.connect(old)
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    assert connection.execute("SELECT count(*) FROM entries").fetchone() == (3,)
    connection.close()
    ledger = SqliteLedger(old)
    assert verify(ledger).totals == Totals(3, 2, 36)
    ledger.close()
