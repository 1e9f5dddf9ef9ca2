"""What is written says its version; what has another version is refused, and stays as it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql
from service.process import database_of

from holdfast.data.save import StoreWriter
from holdfast.data.store import StoreSource
from holdfast.errors import HoldfastError
from holdfast.formats import FORMATS, check_format
from holdfast.holdout.labels import Labels
from holdfast.holdout.looks import open_looks
from holdfast.ledger import (
    Account,
    ChainedLedger,
    Charge,
    PostgresLedger,
    SqliteLedger,
    export,
    verify_export,
)
from holdfast.query.schema import Integer, Schema
from holdfast.service.catalog import Catalog
from holdfast.service.gateway_database import PostgresDatabase, SqliteDatabase

_ALL_TABLES = (
    "SELECT table_schema, table_name FROM information_schema.tables"
    " WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"
)


class Place:
    """A folder, and a database for those who want one: what is there can be compared with what was."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._url = folder, ""

    @property
    def url(self) -> str:
        self._url = self._url or database_of("postgres")["HOLDFAST_DATABASE"]
        return self._url

    def contents(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            str(path): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()
        }
        if self._url:
            with psycopg.connect(self._url) as connection:
                for table in connection.execute(_ALL_TABLES).fetchall():
                    query = sql.SQL("SELECT * FROM {}").format(sql.Identifier(*table))
                    found[".".join(table)] = connection.execute(query).fetchall()
        return found


def store(place: Place) -> None:
    target, schema = place.folder / "rows.hf", Schema(age=Integer(0, 9))
    if not target.exists():
        with StoreWriter(target, schema, fingerprint="0" * 32) as writer:
            writer.append({"age": np.arange(5, dtype=schema["age"].dtype)})
            writer.commit()
    StoreSource(target).close()


def charged(ledger: ChainedLedger) -> None:
    """With one charge, which is there already at the second opening."""
    try:
        ledger.open(Account("s", "zcdp", 10))
        if ledger.find("s", "k") is None:
            ledger.reserve("s", "k", "{}", "{}", Charge(1, 1))
    finally:
        ledger.close()


def sqlite_ledger(place: Place) -> None:
    charged(SqliteLedger(place.folder / "ledger.sqlite", place.folder))


def postgres_ledger(place: Place) -> None:
    charged(PostgresLedger(place.url, "l", place.folder))


def exported(place: Place) -> None:
    path = place.folder / "ledger.ndjson"
    if not path.exists():
        ledger = SqliteLedger(place.folder / "ledger.sqlite", place.folder)
        path.write_text("\n".join(export(ledger)))
        ledger.close()
    verify_export(path.read_text().splitlines())


def sqlite_catalog(place: Place) -> None:
    Catalog(
        SqliteDatabase(place.folder / "gateway.sqlite"),
        SqliteDatabase(place.folder / "replies.sqlite", relaxed=True),
    ).close()


def postgres_catalog(place: Place) -> None:
    Catalog(PostgresDatabase(place.url), PostgresDatabase(place.url, relaxed=True)).close()


def noted(place: Place) -> None:
    open_looks(Labels([0, 1, 1]), place.folder / "looks.sqlite", place.folder).close()


@dataclass(frozen=True)
class Case:
    """`opened` writes what is not there yet, and opens it."""

    kind: str
    opened: Callable[[Place], None]


CASES = {
    "store": Case("store", store),
    "ledger, SQLite": Case("ledger", sqlite_ledger),
    "ledger, PostgreSQL": Case("ledger", postgres_ledger),
    "export": Case("ledger's export", exported),
    "anchor": Case("ledger's anchor", sqlite_ledger),
    "catalog, SQLite": Case("gateway's catalog", sqlite_catalog),
    "catalog, PostgreSQL": Case("gateway's catalog", postgres_catalog),
    "replies, SQLite": Case("gateway's replies", sqlite_catalog),
    "replies, PostgreSQL": Case("gateway's replies", postgres_catalog),
    "note": Case("holdout's note", noted),
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, place: Place, monkeypatch: pytest.MonkeyPatch) -> Case:
    """One that was written by the Holdfast after this, whose version is 2."""
    made = CASES[request.param]
    with monkeypatch.context() as later:
        later.setitem(FORMATS, made.kind, 2)
        made.opened(place)
        made.opened(place)
    return made


def test_every_format_has_a_case_and_starts_at_1() -> None:
    assert {case.kind for case in CASES.values()} == FORMATS.keys()
    assert set(FORMATS.values()) == {1}


def test_another_version_is_refused_by_its_number_and_stays_as_it_is(case: Case, place: Place) -> None:
    before = place.contents()
    with pytest.raises(HoldfastError, match=f"expected a {case.kind} of version 1, got version 2 in "):
        case.opened(place)
    assert place.contents() == before


def test_a_version_that_nobody_checks_would_be_noticed(
    case: Case, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("holdfast.") and hasattr(module, "check_format"):
            monkeypatch.setattr(module, "check_format", lambda *what: None)
    case.opened(place)


@pytest.mark.parametrize("found", [None, "1", True, 1.0, 0, -1, 2])
def test_only_the_whole_number_itself_is_a_version(found: object) -> None:
    check_format("store", 1, "here")
    with pytest.raises(HoldfastError, match=f"got (none|version {found}) in here"):
        check_format("store", found, "here")
