"""Making the tables of a ledger, and bringing those of format 1 up to date."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from holdfast.ledger.entry import Account, Charge
from holdfast.ledger.fact import genesis
from holdfast.ledger.reader import Rows
from holdfast.ledger.writer import Writer

_OLD = ("limits", "accounts", "entries", "answers")


def start(rows: Rows, tables: Iterable[str]) -> Writer:
    """Make the tables of a new ledger, with a random id."""
    for statement in tables:
        rows(statement)
    ledger = uuid.uuid4().hex
    rows("INSERT INTO tip (ledger, place, head) VALUES (?, 0, ?)", ledger, genesis(ledger))
    return Writer(rows)


def from_version_1(rows: Rows, tables: Iterable[str]) -> None:
    """Chain what a ledger of format 1 holds: limits and accounts, then each entry with its answer.

    Format 1 did not say which answers are secret: all are but those that were shown to the user as they stand.
    """
    for name in ("entries_stay", "entries_last", "answers_stay", "answers_last"):
        rows(f"DROP TRIGGER IF EXISTS {name}")
    rows("DROP INDEX IF EXISTS accounts_by_name")
    for table in _OLD:
        rows(f"ALTER TABLE {table} RENAME TO old_{table}")
    writer = start(rows, tables)
    for name, currency, units in rows("SELECT name, currency, units FROM old_limits ORDER BY id"):
        writer.set_limit(Account(name, currency, units))
    for name, currency, units, terms in rows(
        "SELECT name, currency, units, terms FROM old_accounts ORDER BY id"
    ):
        writer.open(Account(name, currency, units, terms))
    for session, key, plan, event, mine, all_, queries, answer in rows(
        "SELECT e.session, e.key, e.plan, e.event, e.session_units, e.table_units, e.queries, a.answer"
        " FROM old_entries e LEFT JOIN old_answers a ON a.entry = e.id ORDER BY e.id"
    ):
        entry = writer.charge(session, key, plan, event, Charge(mine, all_, queries))
        if answer is not None:
            writer.record(entry.id, answer, secret='"recipe"' not in plan)
    writer.sign()
    for table in reversed(_OLD):
        rows(f"DROP TABLE old_{table}")
