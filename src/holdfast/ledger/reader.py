"""Reading the tables of a ledger."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from holdfast.errors import LedgerError
from holdfast.ledger.entry import UNCOVERED, Account, Charge, Entry, Moment, Totals
from holdfast.ledger.fact import (
    CLOSED,
    FIELDS,
    NOTES,
    Fact,
    Value,
    canonical,
    digest,
    genesis,
    is_hex,
    unsealed,
)

Item = TypeVar("Item")
Rows = Callable[..., list[Any]]
"""Runs a statement with `?` for each value that follows it, and returns all rows."""

Stream = Callable[[str], Iterator[Any]]
"""Runs a statement and returns its rows one after the other."""

Note = tuple[str, dict[str, Value]]
"""The kind and the fields of a note."""

_ACCOUNT = "name, currency, units, terms, information, table_information, delta"

_LEAST = "(SELECT key FROM entries WHERE session = ? AND key >= ? AND key < ? ORDER BY key LIMIT 1)"

_AT_A_TIME = 1000

_FIELDS = (
    "e.place, e.session, e.key, e.plan, e.event, e.session_units, e.table_units, e.queries, e.information, e.delta,"
    " a.answer, a.secret, a.spared"
)
_ENTRY = f"SELECT {_FIELDS} FROM entries e LEFT JOIN answers a ON a.entry = e.place "
_ANSWERED = (
    f"SELECT a.place, {_FIELDS} FROM answers a JOIN entries e ON a.entry = e.place"
    f" WHERE a.place > ? ORDER BY a.place LIMIT {_AT_A_TIME}"
)

_RESERVATION = (
    "SELECT e.place, e.session, e.information, a.answer FROM entries e LEFT JOIN answers a"
    " ON a.entry = e.place"
)
_TAKEN = "SELECT e.session, e.key FROM asked CROSS JOIN entries e WHERE e.session = asked.session AND e.key = asked.key"
_ASKED = (
    "SELECT session, key FROM asked WHERE EXISTS (SELECT 1 FROM entries e WHERE e.session = asked.session"
    " AND e.key >= asked.key AND e.key < asked.key || 'z')"
)
_LENGTHS = (64, 8, 1)
"""How many values a statement takes: of few lengths, so that its text is known to the database."""

_HEAD = " UNION ALL ".join(
    f"SELECT head FROM {table} WHERE place = ?"
    for table in ("limits", "accounts", "entries", "answers", "notes")
)

_SPARED = (
    "(SELECT CAST(COALESCE(sum(a.spared), 0) AS BIGINT) FROM answers a WHERE a.place > e.place) AS spared"
)
"""What was told less than reserved by the answers since a reservation, whose running total does not know of it."""

_SUM = "SELECT CAST(COALESCE(sum(a.spared), 0) AS BIGINT) FROM"
_SPARED_OF_ITS_OWN = (
    "(CASE WHEN (SELECT place FROM tip) - e.place < e.session_entries"
    f" THEN ({_SUM} answers a CROSS JOIN entries o"
    " WHERE a.place > e.place AND o.place = a.entry AND o.session = e.session)"
    f" ELSE ({_SUM} entries o CROSS JOIN answers a"
    " WHERE o.session = e.session AND a.entry = o.place AND a.place > e.place) END) AS spared"
)
"""The same by its session's own answers, by looking at the facts since or at its own reservations, whichever are fewer:
SQLite takes the tables of a CROSS JOIN in the order in which they stand."""

_MOMENT = f"""SELECT s.session_entries, s.session_answers, s.session_total, s.session_information, s.session_delta,
s.spared, t.table_entries, t.table_answers, t.table_total, t.table_information, t.table_delta, t.spared,
l.name, l.currency, l.units, l.delta FROM tip
LEFT JOIN (SELECT e.*, {_SPARED_OF_ITS_OWN} FROM entries e WHERE session = ?
 ORDER BY session_entries DESC LIMIT 1) s ON TRUE
LEFT JOIN (SELECT e.*, {_SPARED} FROM entries e ORDER BY table_entries DESC LIMIT 1) t ON TRUE
LEFT JOIN (SELECT * FROM limits ORDER BY place DESC LIMIT 1) l ON TRUE"""


@dataclass(frozen=True, slots=True)
class Reservation:
    """Whose it is, how much it may tell of the rows, and its answer if it has one."""

    session: str
    information: int
    answer: str | None


class Reader:
    """What stands in the tables, as one connection sees them."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def tip(self) -> tuple[str, int, str]:
        """The ledger's id, its last place, and the head there."""
        ledger, place, head = self._rows("SELECT ledger, place, head FROM tip")[0]
        return ledger, place, head

    def secret(self) -> bytes:
        """What decides by chance, always in the same way, and is told to nobody."""
        return unsealed(str(self._rows("SELECT secret FROM tip")[0][0]))

    def head(self, ledger: str, place: int) -> str | None:
        """The head at a place; None if there is no fact."""
        if not place:
            return genesis(ledger)
        rows = self._rows(_HEAD, place, place, place, place, place)
        return str(rows[0][0]) if rows else None

    def limit(self) -> Account | None:
        rows = self._rows("SELECT name, currency, units, delta FROM limits ORDER BY place DESC LIMIT 1")
        return _cap(rows[0]) if rows else None

    def account(self, name: str) -> Account | None:
        rows = self._rows(
            f"SELECT {_ACCOUNT} FROM accounts WHERE name = ? ORDER BY place DESC LIMIT 1",
            name,
        )
        return Account(*rows[0]) if rows else None

    def accounts(self) -> Iterator[Account]:
        rows = self._rows(
            f"SELECT {_ACCOUNT} FROM accounts"
            " WHERE place IN (SELECT max(place) FROM accounts GROUP BY name) ORDER BY place"
        )
        return (Account(*row) for row in rows)

    def has_accounts(self) -> bool:
        """Whether any account was ever opened."""
        return bool(self._rows("SELECT 1 FROM accounts LIMIT 1"))

    def ended(self) -> frozenset[str]:
        """The names of the accounts that are closed."""
        rows = self._rows("SELECT body FROM notes WHERE kind = ?", CLOSED)
        try:
            return frozenset(str(json.loads(body)["session"]) for (body,) in rows)
        except (ValueError, TypeError, KeyError):
            raise LedgerError(
                "the ledger was changed: a note of a closed session names none; find the right copy"
            ) from None

    def shares(self) -> list[Account]:
        """The accounts that have a maximum of information, and can still be charged."""
        rows = self._rows(f"SELECT {_ACCOUNT} FROM accounts WHERE information < ? ORDER BY place", UNCOVERED)
        ended = self.ended() if rows else ()
        return list({row[0]: Account(*row) for row in rows if row[0] not in ended}.values())

    def find(self, session: str, key: str) -> Entry | None:
        rows = self._rows(_ENTRY + "WHERE e.session = ? AND e.key = ?", session, key)
        return _entry(rows[0]) if rows else None

    def firsts(self, session: str, beginnings: Sequence[str]) -> list[Entry]:
        # Keys that begin so go on with a hexadecimal digit; "g" comes after all of them.
        ranges = [end for beginning in beginnings for end in (session, beginning + "0", beginning + "g")]
        keys = ", ".join([_LEAST] * len(beginnings))
        rows = self._rows(f"{_ENTRY}WHERE e.session = ? AND e.key IN ({keys})", session, *ranges)
        return [_entry(row) for row in rows]

    def reservations(self, entries: Sequence[int]) -> dict[int, Reservation]:
        """What stands for some reservations, as far as they are there."""
        found: dict[int, Reservation] = {}
        for some in in_lists(entries):
            sql = f"{_RESERVATION} WHERE e.place IN ({', '.join('?' * len(some))})"
            found |= {place: Reservation(*rest) for place, *rest in self._rows(sql, *some)}
        return found

    def taken(self, keys: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Those of some sessions' keys under which something is reserved."""
        return self._among(keys, _TAKEN)

    def _among(self, pairs: Sequence[tuple[str, str]], which: str) -> set[tuple[str, str]]:
        """Pairs for which a statement finds something."""
        found: set[tuple[str, str]] = set()
        for some in in_lists(pairs):
            sql = f"WITH asked (session, key) AS (VALUES {', '.join(['(?, ?)'] * len(some))}) {which}"
            found.update(map(tuple, self._rows(sql, *(part for pair in some for part in pair))))
        return found

    def asked(self, questions: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Those of some sessions' questions with which keys of theirs begin."""
        return self._among(questions, _ASKED)

    def totals(self, session: str | None = None) -> Totals:
        if session is None:
            rows = self._rows(
                "SELECT table_entries, table_answers, table_total, table_information, table_delta,"
                f" {_SPARED} FROM entries e ORDER BY table_entries DESC LIMIT 1"
            )
            return _net_totals(rows[0]) if rows else Totals()
        rows = self._rows(
            "SELECT session_entries, session_answers, session_total, session_information, session_delta,"
            f" {_SPARED_OF_ITS_OWN} FROM entries e WHERE session = ? ORDER BY session_entries DESC LIMIT 1",
            session,
        )
        return _net_totals(rows[0]) if rows else Totals()

    def moment(self, session: str) -> Moment:
        row = self._rows(_MOMENT, session)[0]
        mine, all_, cap = row[0:6], row[6:12], row[12:16]
        return Moment(
            Totals() if mine[0] is None else _net_totals(mine),
            Totals() if all_[0] is None else _net_totals(all_),
            None if cap[0] is None else _cap(cap),
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
        """The kind and the fields of the last note about the ledger itself, if there is one."""
        rows = self._rows("SELECT kind, body FROM notes WHERE kind <> ? ORDER BY place DESC LIMIT 1", CLOSED)
        return (rows[0][0], json.loads(rows[0][1])) if rows else None


def in_lists(values: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """The values in lists of `_LENGTHS`."""
    first = 0
    while first < len(values):
        length = next(length for length in _LENGTHS if length <= len(values) - first)
        yield values[first : first + length]
        first += length


def history(stream: Stream) -> Iterator[Fact]:
    """Every fact in order, from one snapshot of the tables."""
    ledger, place, head = next(iter(stream("SELECT ledger, place, head FROM tip")))
    yield Fact(0, "ledger", {"ledger": ledger}, genesis(ledger))
    yield from heapq.merge(
        _plain(stream, "limits", "limit"),
        _plain(stream, "accounts", "account"),
        _plain(stream, "entries", "reserved"),
        map(
            _answered,
            stream("SELECT place, entry, answer, salt, secret, spared, head FROM answers ORDER BY place"),
        ),
        map(_noted, stream("SELECT place, kind, body, head FROM notes ORDER BY place")),
        key=lambda fact: fact.place,
    )
    yield Fact(place, "tip", {}, head)


def _plain(stream: Stream, table: str, kind: str) -> Iterator[Fact]:
    names = FIELDS[kind]
    for row in stream(f"SELECT place, {', '.join(names)}, head FROM {table} ORDER BY place"):
        yield Fact(row[0], kind, dict(zip(names, row[1:-1], strict=True)), row[-1])


def _answered(row: Any) -> Fact:
    place, entry, answer, salt, secret, spared, head = row
    known = digest(salt, answer) if is_hex(salt) and isinstance(answer, str) else ""
    fields = {"entry": entry, "secret": secret, "spared": spared, "digest": known}
    return Fact(place, "answered", fields, head, answer, salt)


def _noted(row: Any) -> Fact:
    place, kind, body, head = row
    try:
        fields = json.loads(body)
    except (ValueError, TypeError):  # tampered with
        fields = {}
    if not isinstance(fields, dict) or canonical(fields) != body:
        fields = {}
    return Fact(place, kind if kind in NOTES else "note", fields, head)


def _cap(row: Any) -> Account:
    name, currency, units, delta = row
    return Account(name, currency, units, delta=delta)


def _net_totals(row: Any) -> Totals:
    *running, spared = row
    return Totals(*running).spared(spared)


def _entry(row: Any) -> Entry:
    place, session, key, plan, event, *charged, answer, secret, spared = row
    return Entry(place, session, key, plan, event, Charge(*charged), answer, bool(secret), spared or 0)
