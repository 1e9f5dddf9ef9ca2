"""The tables of a ledger in a database: the same in SQLite and in PostgreSQL."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterable

from holdfast.ledger.fact import genesis, sealed
from holdfast.ledger.memory import SECRET_BYTES
from holdfast.ledger.reader import Rows

TABLES = (
    "CREATE TABLE tip (ledger TEXT PRIMARY KEY, place BIGINT NOT NULL, head TEXT NOT NULL,"
    " secret TEXT NOT NULL)",
    "CREATE TABLE limits (place BIGINT PRIMARY KEY, name TEXT NOT NULL, currency TEXT NOT NULL,"
    " units BIGINT NOT NULL CHECK (units >= 0), delta BIGINT NOT NULL CHECK (delta >= 0), head TEXT NOT NULL)",
    "CREATE TABLE accounts (place BIGINT PRIMARY KEY, name TEXT NOT NULL, currency TEXT NOT NULL,"
    " units BIGINT NOT NULL CHECK (units >= 0), terms TEXT NOT NULL,"
    " information BIGINT NOT NULL CHECK (information >= 0),"
    " table_information BIGINT NOT NULL CHECK (table_information >= 0),"
    " delta BIGINT NOT NULL CHECK (delta >= 0), head TEXT NOT NULL)",
    "CREATE INDEX accounts_by_name ON accounts (name, place)",
    "CREATE TABLE entries (place BIGINT PRIMARY KEY, session TEXT NOT NULL, key TEXT NOT NULL,"
    " plan TEXT NOT NULL, event TEXT NOT NULL,"
    " session_units BIGINT NOT NULL CHECK (session_units >= 0),"
    " table_units BIGINT NOT NULL CHECK (table_units >= 0), queries BIGINT NOT NULL CHECK (queries >= 0),"
    " information BIGINT NOT NULL CHECK (information >= 0), delta BIGINT NOT NULL CHECK (delta >= 0),"
    " session_entries BIGINT NOT NULL, session_answers BIGINT NOT NULL, session_total BIGINT NOT NULL,"
    " session_information BIGINT NOT NULL, session_delta BIGINT NOT NULL,"
    " table_entries BIGINT NOT NULL, table_answers BIGINT NOT NULL, table_total BIGINT NOT NULL,"
    " table_information BIGINT NOT NULL, table_delta BIGINT NOT NULL,"
    " head TEXT NOT NULL, UNIQUE (session, key), UNIQUE (session, session_entries), UNIQUE (table_entries))",
    "CREATE TABLE answers (place BIGINT PRIMARY KEY, entry BIGINT NOT NULL UNIQUE REFERENCES entries (place),"
    " answer TEXT NOT NULL, salt TEXT NOT NULL, secret BIGINT NOT NULL,"
    " spared BIGINT NOT NULL CHECK (spared >= 0), head TEXT NOT NULL)",
    "CREATE TABLE notes (place BIGINT PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL, head TEXT NOT NULL)",
)

FACTS = ("limits", "accounts", "entries", "answers", "notes")
"""The tables whose rows are facts; they are append-only. Each fact stands in one, at its place."""


def make_ledger(rows: Rows, tables: Iterable[str]) -> None:
    """Make the tables of a new ledger, with a random id."""
    for statement in tables:
        rows(statement)
    ledger = uuid.uuid4().hex
    rows(
        "INSERT INTO tip (ledger, place, head, secret) VALUES (?, 0, ?, ?)",
        ledger,
        genesis(ledger),
        sealed(secrets.token_bytes(SECRET_BYTES)),
    )
