"""Where the ledgers of the tests live: each can be opened again, tampered with, backed up and put back."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import psycopg
from services import postgres

from holdfast.ledger import ChainedLedger, PostgresLedger, SqliteLedger
from holdfast.ledger.sql_schema import FACTS

TABLES = (*FACTS, "tip")


class Home(Protocol):
    """The place of one ledger."""

    address: str
    Ledger: type[ChainedLedger]

    def open(self) -> ChainedLedger: ...

    def execute(self, sql: str, *values: object, guarded: bool = False) -> list[Any]:
        """Run a statement behind the ledger's back; `guarded` leaves the append-only triggers on."""

    def backup(self) -> Callable[[], None]:
        """Copy everything; the function returned puts it back. Requires: the ledger is closed."""


class SqliteHome:
    Ledger: type[ChainedLedger] = SqliteLedger

    def __init__(self, folder: Path) -> None:
        self.path, self.anchors = folder / "ledger.sqlite", folder / "anchors"
        self.address = str(self.path)

    def open(self) -> ChainedLedger:
        return self.Ledger(self.path, self.anchors)  # type: ignore[arg-type, call-arg]

    def execute(self, sql: str, *values: object, guarded: bool = False) -> list[Any]:
        with closing(sqlite3.connect(self.path, isolation_level=None, timeout=60)) as connection:
            triggers = [] if guarded else connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall()  # fmt: skip
            connection.execute("BEGIN IMMEDIATE")
            for name, _ in triggers:
                connection.execute(f"DROP TRIGGER {name}")
            found = connection.execute(sql, values).fetchall()
            for _, made in triggers:
                connection.execute(made)
            connection.execute("COMMIT")
            return found

    def backup(self) -> Callable[[], None]:
        kept = self.path.with_suffix(".backup")
        shutil.copy(self.path, kept)
        return lambda: (shutil.copy(kept, self.path), None)[1]


class PostgresHome:
    Ledger: type[ChainedLedger] = PostgresLedger

    def __init__(self, folder: Path) -> None:
        self.url, self.name, self.anchors = postgres().url, str(folder), folder / "anchors"
        self.address = f"{self.url}#{self.name}"

    def open(self) -> ChainedLedger:
        return self.Ledger(self.url, self.name, self.anchors)  # type: ignore[arg-type, call-arg]

    def execute(self, sql: str, *values: object, guarded: bool = False) -> list[Any]:
        with psycopg.connect(self.url) as connection:
            space = connection.execute(
                "SELECT space FROM holdfast.ledgers WHERE name = %s", (self.name,)
            ).fetchone()
            assert space is not None
            connection.execute(f'SET search_path TO "{space[0]}"')
            if not guarded:
                connection.execute("SET session_replication_role = replica")
            cursor = connection.execute(sql.replace("?", "%s"), values or None)
            return cursor.fetchall() if cursor.description else []

    def backup(self) -> Callable[[], None]:
        kept = {table: self.execute(f"SELECT * FROM {table}") for table in TABLES}

        def restore() -> None:
            for table, rows in kept.items():
                self.execute(f"DELETE FROM {table}")
                for row in rows:
                    self.execute(f"INSERT INTO {table} VALUES ({', '.join('?' for _ in row)})", *row)

        return restore


HOMES: dict[str, Callable[[Path], Home]] = {"postgres": PostgresHome, "sqlite": SqliteHome}
