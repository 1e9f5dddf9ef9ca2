"""Reading the tables of a ledger."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from holdfast.errors import LedgerError
from holdfast.ledger.entry import Account, Charge, Entry, Moment, Totals
from holdfast.ledger.fact import FIELDS, NOTES, Fact, Value, canonical, digest, genesis, is_hex

Rows = Callable[..., list[Any]]
"""Runs a statement with `?` for each value that follows it, and returns all rows."""

Stream = Callable[[str], Iterator[Any]]
"""Runs a statement and returns its rows one after the other."""

Note = tuple[str, dict[str, Value]]
"""The kind and the fields of a note."""

_LEAST = "(SELECT key FROM entries WHERE session = ? AND key >= ? AND key < ? ORDER BY key LIMIT 1)"

_AT_A_TIME = 1000

_FIELDS = (
    "e.place, e.session, e.key, e.plan, e.event, e.session_units, e.table_units, e.queries, e.information,"
    " a.answer, a.secret"
)
_ENTRY = f"SELECT {_FIELDS} FROM entries e LEFT JOIN answers a ON a.entry = e.place "
_ANSWERED = (
    f"SELECT a.place, {_FIELDS} FROM answers a JOIN entries e ON a.entry = e.place"
    f" WHERE a.place > ? ORDER BY a.place LIMIT {_AT_A_TIME}"
)

_HEAD = " UNION ALL ".join(
    f"SELECT head FROM {table} WHERE place = ?"
    for table in ("limits", "accounts", "entries", "answers", "notes")
)

_MOMENT = """SELECT s.session_entries, s.session_answers, s.session_total, t.table_entries, t.table_answers,
t.table_total, t.table_information, l.name, l.currency, l.units FROM tip
LEFT JOIN (SELECT * FROM entries WHERE session = ? ORDER BY session_entries DESC LIMIT 1) s ON TRUE
LEFT JOIN (SELECT * FROM entries ORDER BY table_entries DESC LIMIT 1) t ON TRUE
LEFT JOIN (SELECT * FROM limits ORDER BY place DESC LIMIT 1) l ON TRUE"""


class Reader:
    """What stands in the tables, as one connection sees them."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def tip(self) -> tuple[str, int, str]:
        """The ledger's id, its last place, and the head there."""
        ledger, place, head = self._rows("SELECT ledger, place, head FROM tip")[0]
        return ledger, place, head

    def head(self, ledger: str, place: int) -> str | None:
        """The head at a place; None if there is no fact."""
        if not place:
            return genesis(ledger)
        rows = self._rows(_HEAD, place, place, place, place, place)
        return str(rows[0][0]) if rows else None

    def limit(self) -> Account | None:
        rows = self._rows("SELECT name, currency, units FROM limits ORDER BY place DESC LIMIT 1")
        return Account(*rows[0]) if rows else None

    def account(self, name: str) -> Account | None:
        rows = self._rows(
            "SELECT name, currency, units, terms FROM accounts WHERE name = ? ORDER BY place DESC LIMIT 1",
            name,
        )
        return Account(*rows[0]) if rows else None

    def accounts(self) -> Iterator[Account]:
        rows = self._rows(
            "SELECT name, currency, units, terms FROM accounts"
            " WHERE place IN (SELECT max(place) FROM accounts GROUP BY name) ORDER BY place"
        )
        return (Account(*row) for row in rows)

    def find(self, session: str, key: str) -> Entry | None:
        rows = self._rows(_ENTRY + "WHERE e.session = ? AND e.key = ?", session, key)
        return _entry(rows[0]) if rows else None

    def firsts(self, session: str, beginnings: Sequence[str]) -> list[Entry]:
        # Keys that begin so go on with a hexadecimal digit; "g" comes after all of them.
        ranges = [end for beginning in beginnings for end in (session, beginning + "0", beginning + "g")]
        keys = ", ".join([_LEAST] * len(beginnings))
        rows = self._rows(f"{_ENTRY}WHERE e.session = ? AND e.key IN ({keys})", session, *ranges)
        return [_entry(row) for row in rows]

    def answer(self, entry: int) -> str | None:
        """The answer that stands for a reservation; LedgerError if there is no such reservation."""
        rows = self._rows(
            "SELECT a.answer FROM entries e LEFT JOIN answers a ON a.entry = e.place WHERE e.place = ?", entry
        )
        if not rows:
            raise LedgerError(
                f"expected a reservation, got {entry}, which is none; reserve before the answer"
            )
        return None if rows[0][0] is None else str(rows[0][0])

    def totals(self, session: str | None = None) -> Totals:
        if session is None:
            rows = self._rows(
                "SELECT table_entries, table_answers, table_total, table_information FROM entries"
                " ORDER BY table_entries DESC LIMIT 1"
            )
        else:
            rows = self._rows(
                "SELECT session_entries, session_answers, session_total FROM entries WHERE session = ?"
                " ORDER BY session_entries DESC LIMIT 1",
                session,
            )
        return Totals(*rows[0]) if rows else Totals()

    def moment(self, session: str) -> Moment:
        row = self._rows(_MOMENT, session)[0]
        mine, all_, cap = row[0:3], row[3:7], row[7:10]
        return Moment(
            Totals() if mine[0] is None else Totals(*mine),
            Totals() if all_[0] is None else Totals(*all_),
            None if cap[0] is None else Account(*cap),
        )

    def entries(self, session: str | None = None, *, last: int | None = None) -> Iterator[Entry]:
        # Reservations are numbered without a gap, for a session and for the table.
        read = 0 if last is None else max(0, self.totals(session).entries - last)
        where, number, values = (
            ("", "e.table_entries", ())
            if session is None
            else ("e.session = ? AND ", "e.session_entries", (session,))
        )
        sql = f"{_ENTRY}WHERE {where}{number} > ? ORDER BY {number} LIMIT {_AT_A_TIME}"
        while rows := self._rows(sql, *values, read):
            yield from map(_entry, rows)
            read += len(rows)

    def answered(self, after: int = 0) -> Iterator[tuple[int, Entry]]:
        while rows := self._rows(_ANSWERED, after):
            for after, *entry in rows:
                yield after, _entry(entry)

    def course(self, session: str, every: int) -> list[tuple[int, int]]:
        rows = self._rows(
            "SELECT session_entries, session_total FROM entries"
            " WHERE session = ? AND session_entries / ? * ? = session_entries ORDER BY session_entries",
            session,
            every,
            every,
        )
        return [(place, units) for place, units in rows]

    def note(self) -> Note | None:
        """The kind and the fields of the last note, if there is one."""
        rows = self._rows("SELECT kind, body FROM notes ORDER BY place DESC LIMIT 1")
        return (rows[0][0], json.loads(rows[0][1])) if rows else None


def history(stream: Stream) -> Iterator[Fact]:
    """Every fact in order, from one snapshot of the tables."""
    ledger, place, head = next(iter(stream("SELECT ledger, place, head FROM tip")))
    yield Fact(0, "ledger", {"ledger": ledger}, genesis(ledger))
    yield from heapq.merge(
        _plain(stream, "limits", "limit"),
        _plain(stream, "accounts", "account"),
        _plain(stream, "entries", "reserved"),
        map(_answered, stream("SELECT place, entry, answer, salt, secret, head FROM answers ORDER BY place")),
        map(_noted, stream("SELECT place, kind, body, head FROM notes ORDER BY place")),
        key=lambda fact: fact.place,
    )
    yield Fact(place, "tip", {}, head)


def _plain(stream: Stream, table: str, kind: str) -> Iterator[Fact]:
    names = FIELDS[kind]
    for row in stream(f"SELECT place, {', '.join(names)}, head FROM {table} ORDER BY place"):
        yield Fact(row[0], kind, dict(zip(names, row[1:-1], strict=True)), row[-1])


def _answered(row: Any) -> Fact:
    place, entry, answer, salt, secret, head = row
    known = digest(salt, answer) if is_hex(salt) and isinstance(answer, str) else ""
    return Fact(place, "answered", {"entry": entry, "secret": secret, "digest": known}, head, answer, salt)


def _noted(row: Any) -> Fact:
    place, kind, body, head = row
    try:
        fields = json.loads(body)
    except (ValueError, TypeError):  # tampered with
        fields = {}
    if not isinstance(fields, dict) or canonical(fields) != body:
        fields = {}
    return Fact(place, kind if kind in NOTES else "note", fields, head)


def _entry(row: Any) -> Entry:
    place, session, key, plan, event, session_units, table_units, queries, information, answer, secret = row
    charge = Charge(session_units, table_units, queries, information)
    return Entry(place, session, key, plan, event, charge, answer, bool(secret))
