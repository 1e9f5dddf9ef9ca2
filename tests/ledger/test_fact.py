"""Flip one byte anywhere: the row is named. Nothing can be changed or removed by ordinary means."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from holdfast.errors import LedgerError
from holdfast.ledger import UNCOVERED, Account, ChainedLedger, Charge, audit, verify, writer
from holdfast.ledger.fact import FIELDS, Value, link, link_values
from holdfast.ledger.sql_schema import FACTS
from ledger.homes import HOMES, TABLES, Home


@pytest.fixture(params=sorted(HOMES))
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    return HOMES[request.param](tmp_path)


@pytest.fixture
def ledger(home: Home) -> Iterator[ChainedLedger]:
    made = home.open()
    fill(made)
    yield made
    made.close()


def fill(ledger: ChainedLedger) -> None:
    """Two facts or more in every table."""
    ledger.set_limit(Account("the table", "zcdp", 1000))
    ledger.set_limit(Account("the table", "zcdp", 2000))
    for session in ("a", "b"):
        ledger.open(Account(session, "zcdp", 100, "promised"))
    for key in ("first", "second"):
        entry = ledger.reserve("a", key, '{"question": "x > 3"}', '{"type": "votes"}', Charge(3, 5, 1))
        ledger.record(entry.id, '{"value": 0.5}', secret=key == "second")
    ledger.reserve("b", "third", "{}", "{}", Charge(1, 1, 0))
    ledger.expect("0" * 32)
    ledger.adopt(lambda writer: writer.write_note("arrived", source="0" * 32, source_head="f" * 64))


def flips(home: Home) -> Iterator[tuple[str, int, str]]:
    """(where, place, statement) for one small change in every column of every row."""
    for table in TABLES:
        names = columns(home, table)
        for row in home.execute(f"SELECT {', '.join(names)} FROM {table} ORDER BY place"):
            place = row[names.index("place")]
            for name, value in zip(names, row, strict=True):
                yield (
                    f"{table}.{name}",
                    place,
                    f"UPDATE {table} SET {name} = {other(name, value)} WHERE place = {place}",
                )


def columns(home: Home, table: str) -> list[str]:
    if hasattr(home, "path"):
        return [row[1] for row in home.execute(f"PRAGMA table_info({table})")]
    return [
        row[0]
        for row in home.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = ?"
            " AND table_schema = current_schema() ORDER BY ordinal_position",
            table,
        )
    ]


def other(name: str, value: Any) -> str:
    """The value with one byte changed, as SQL. No two facts may share a place, so that moves far away."""
    if isinstance(value, int):
        return str(value - 64 if value == UNCOVERED else value + (1000 if name == "place" else 64))
    middle = len(value) // 2
    return "'" + value[:middle] + chr(ord(value[middle : middle + 1] or "a") ^ 1) + value[middle + 1 :] + "'"


def unnoticed(home: Home, ledger: ChainedLedger) -> list[str]:
    """Where a change of one byte is not noticed, or the wrong row is named."""
    missed = []
    before = {table: home.execute(f"SELECT * FROM {table}") for table in TABLES}
    for where, place, statement in list(flips(home)):
        home.execute(statement)
        try:
            verify(ledger)
            missed.append(where)
        except LedgerError as error:
            named = {f"place {place}", f"place {place + 1000}"} if not where.startswith("tip") else {"place"}
            if not any(name in str(error) for name in named):
                missed.append(f"{where}: {error}")
        table = where.partition(".")[0]
        home.execute(f"DELETE FROM {table}")
        for row in before[table]:
            home.execute(f"INSERT INTO {table} VALUES ({', '.join('?' for _ in row)})", *row)
    verify(ledger)  # everything was put back
    return missed


def test_one_byte_anywhere_is_noticed_and_the_row_is_named(home: Home, ledger: ChainedLedger) -> None:
    assert unnoticed(home, ledger) == []


@pytest.mark.parametrize("field", ["plan", "terms", "name"])
def test_a_chain_that_leaves_out_a_field_is_caught(
    field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(head: str, place: int, kind: str, fields: dict[str, Value]) -> str:
        return link(head, place, kind, {name: value for name, value in fields.items() if name != field})

    def forgetful_values(head: str, place: int, kind: str, values: tuple[Value, ...]) -> str:
        return forgetful(head, place, kind, dict(zip(FIELDS[kind], values, strict=True)))

    monkeypatch.setattr(writer, "link_values", forgetful_values)
    monkeypatch.setattr(audit, "link", forgetful)
    home = HOMES["sqlite"](tmp_path)
    ledger = home.open()
    fill(ledger)
    assert any(field in where for where in unnoticed(home, ledger))
    ledger.close()


def test_a_row_that_is_gone_is_missed(home: Home, ledger: ChainedLedger) -> None:
    for table in FACTS:
        for (place,) in home.execute(f"SELECT place FROM {table} ORDER BY place"):
            [row] = home.execute(f"SELECT * FROM {table} WHERE place = ?", place)
            home.execute(f"DELETE FROM {table} WHERE place = ?", place)
            with pytest.raises(LedgerError, match=f"place {place}"):
                verify(ledger)
            home.execute(f"INSERT INTO {table} VALUES ({', '.join('?' for _ in row)})", *row)


@pytest.mark.parametrize("table", [*FACTS, "tip"])
def test_nothing_can_be_changed_or_removed(table: str, home: Home, ledger: ChainedLedger) -> None:
    statements = [f"DELETE FROM {table}"]
    if table != "tip":
        statements.append(f"UPDATE {table} SET place = place + 1000")
    if hasattr(home, "url"):
        statements.append(f"TRUNCATE {table} CASCADE")
    for statement in statements:
        with pytest.raises((sqlite3.Error, psycopg.Error), match="append-only"):
            home.execute(statement, guarded=True)
    verify(ledger)


def test_bytes_flipped_in_the_file_itself_never_pass(tmp_path: Path) -> None:
    home = HOMES["sqlite"](tmp_path)
    ledger = home.open()
    fill(ledger)
    ledger.close()
    path = tmp_path / "ledger.sqlite"
    whole = path.read_bytes()
    places = [whole.find(text) for text in (b'"x > 3"', b"promised", b'"value"', b"arrived", b"the table")]
    assert -1 not in places
    for place in places:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        opened = home.open()
        with pytest.raises(LedgerError, match="place"):
            verify(opened)
        opened.close()
    path.write_bytes(whole)
    opened = home.open()
    assert verify(opened).place > 0
    opened.close()


@pytest.mark.parametrize("kind", FIELDS)
@pytest.mark.parametrize(
    "text", ["", "plain", '"', "\\", "%s %", "{0}", "é", "\N{ROCKET}", "\ud800", "\x00\n"]
)
def test_the_quick_way_to_a_head_is_the_same(kind: str, text: str) -> None:
    for values in [(text, -7), (2**63 - 1, text)]:
        fields = {name: values[place % 2] for place, name in enumerate(FIELDS[kind])}
        assert link_values("ab", 12, kind, tuple(fields.values())) == link("ab", 12, kind, fields)
        fields[FIELDS[kind][0]] = "other"
        assert link_values("ab", 12, kind, tuple(fields.values())) == link("ab", 12, kind, fields)


def test_the_page_names_every_kind_of_fact_and_every_field() -> None:
    page = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text()
    for kind, fields in FIELDS.items():
        assert f"`{kind}`" in page
        if kind in ("limit", "account", "answered"):
            assert all(f"`{name}`" in page for name in fields)
