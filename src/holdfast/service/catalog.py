"""What the gateway remembers beside the ledgers: people, tokens, tables, boards, and the replies it gave."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from holdfast.check import one_of, printable
from holdfast.errors import InputError, LedgerError
from holdfast.formats import FORMATS, check_format
from holdfast.service.deeds import Deeds
from holdfast.service.gateway_database import Database, Remembered
from holdfast.service.identities import Identities
from holdfast.service.parts import is_aside, table_of

_TABLES = (
    "CREATE TABLE IF NOT EXISTS people (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, scope TEXT NOT NULL,"
    " team TEXT NOT NULL, created DOUBLE PRECISION NOT NULL)",
    "CREATE TABLE IF NOT EXISTS tokens (id TEXT PRIMARY KEY, person TEXT NOT NULL REFERENCES people,"
    " digest TEXT NOT NULL, label TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION,"
    " revoked DOUBLE PRECISION)",
    "CREATE TABLE IF NOT EXISTS datasets (id TEXT PRIMARY KEY, record TEXT NOT NULL, ledger TEXT)",
    "CREATE TABLE IF NOT EXISTS marks (mark TEXT PRIMARY KEY, dataset TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS members (dataset TEXT NOT NULL REFERENCES datasets, person TEXT NOT NULL"
    " REFERENCES people, budget TEXT NOT NULL, PRIMARY KEY (dataset, person))",
    "CREATE TABLE IF NOT EXISTS members_aside (dataset TEXT NOT NULL REFERENCES datasets, person TEXT NOT NULL"
    " REFERENCES people, budget TEXT NOT NULL, PRIMARY KEY (dataset, person))",
    "CREATE TABLE IF NOT EXISTS boards (id TEXT PRIMARY KEY, record TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS disabled (person TEXT PRIMARY KEY REFERENCES people)",
    "CREATE TABLE IF NOT EXISTS retired (kind TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (kind, id))",
    "CREATE TABLE IF NOT EXISTS visits (digest TEXT PRIMARY KEY, token TEXT NOT NULL REFERENCES tokens,"
    " expires DOUBLE PRECISION NOT NULL)",
)
_REPLIES = (
    "CREATE TABLE IF NOT EXISTS replies (person TEXT NOT NULL, place TEXT NOT NULL, key TEXT NOT NULL,"
    " digest TEXT NOT NULL, body TEXT NOT NULL, kept DOUBLE PRECISION NOT NULL, PRIMARY KEY (person, place, key))",
    "CREATE INDEX IF NOT EXISTS replies_by_age ON replies (person, kept)",
)
REPLIES_KEPT, LARGEST_REPLY = 1000, 65_536
"""How many keys are remembered for each person, and how long a reply may be that is kept with its key. Another is
computed again, from the ledger."""
_TIDY_EVERY = 50

SCOPES = ("owner", "analyst", "auditor", "metrics")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who may sign in. `scope` is what they are: an owner, an analyst, an auditor, or a machine that reads
    the metrics."""

    id: str
    name: str
    scope: str
    team: str


@dataclass(frozen=True, slots=True)
class Token:
    """A credential of a person, without its secret, of which only a digest is kept."""

    id: str
    person: str
    digest: str
    label: str
    created: float
    expires: float | None
    revoked: float | None


class Catalog:
    """People, tokens, tables, their analysts, and boards. Nothing in it comes from a table's rows.

    Ids are random or chosen by an owner. What was read is remembered while nobody changes it, so that an event loop may
    read it too (`at_once`). `replies` may lag behind after a power cut: a reply that is missing is
    computed once more from the ledger, which has the answer, and a key that is missing is free again.
    """

    def __init__(
        self,
        records: Database,
        replies: Database,
        anchors: Path | str | None = None,
        beside: Path | None = None,
    ) -> None:
        self._db, self._replies, self._written = Remembered(records), replies, 0
        self._latest = 0.0
        try:
            _make(records, "gateway's catalog", _TABLES)
            _make(replies, "gateway's replies", _REPLIES)
            self.deeds = Deeds(self._db, anchors, beside)
            self.identities = Identities(self._db)
        except BaseException:
            self._db.close()
            self._replies.close()
            raise

    def now(self) -> float:
        """The time, which never goes back: what has ended stays ended when the clock is set back, until a restart."""
        self._latest = max(self._latest, time.time())
        return self._latest

    def add_person(
        self, name: str, scope: str, team: str | None = None, *, identity: str | None = None, by: str = ""
    ) -> Person:
        """Somebody new. Names are unique; a team is whom their submissions to boards are charged to; by `identity` a
        provider or a proxy knows them (`Identities`)."""
        one_of("scope", scope, SCOPES)
        person = Person(secrets.token_hex(6), _name("name", name), scope, _name("team", team or name))
        with self.deeds.done("person added", person=person.id, scope=scope, by=by):
            if self._db.rows("SELECT 1 FROM people WHERE name = ?", person.name):
                raise Taken(f"there is somebody named {person.name!r} already; choose another name")
            self._db.rows(
                "INSERT INTO people VALUES (?, ?, ?, ?, ?)",
                person.id, person.name, person.scope, person.team, self.now(),
            )  # fmt: skip
            self._put_identity(person.id, identity)
        return person

    def set_identity(self, person: str, identity: str | None, *, by: str = "") -> None:
        """By what a provider or a proxy knows somebody; None is by nothing. Their visits to the page end."""
        with self.deeds.done("identity set", person=person, identity=identity or "", by=by):
            self._put_identity(person, identity)
            self._db.rows(
                "DELETE FROM visits WHERE token IN (SELECT id FROM tokens WHERE person = ?)", person
            )

    def _put_identity(self, person: str, identity: str | None) -> None:
        if not self.identities.put(person, identity):
            raise Taken(f"somebody else is {identity!r} already; end that first, or look at the spelling")

    def person(self, key: str) -> Person | None:
        """Somebody by their id."""
        rows = self._db.rows("SELECT id, name, scope, team FROM people WHERE id = ?", key)
        return Person(*rows[0]) if rows else None

    def people(self) -> list[Person]:
        """Everybody, in the order of their names."""
        return [
            Person(*row) for row in self._db.rows("SELECT id, name, scope, team FROM people ORDER BY name")
        ]

    def add_token(self, token: Token, *, by: str = "") -> None:
        """Keep a new token."""
        with self.deeds.done("token issued", token=token.id, person=token.person, by=by):
            if self._db.rows("SELECT 1 FROM disabled WHERE person = ?", token.person):
                raise InputError(
                    "expected somebody who may sign in, got a disabled person; add another person"
                )
            self._db.rows(
                "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?)",
                token.id, token.person, token.digest, token.label, token.created, token.expires, token.revoked,
            )  # fmt: skip

    def token(self, key: str) -> tuple[Token, Person] | None:
        """A token with its person."""
        rows = self._db.rows(
            "SELECT t.id, t.person, t.digest, t.label, t.created, t.expires, t.revoked, p.id, p.name, p.scope, p.team"
            " FROM tokens t JOIN people p ON p.id = t.person WHERE t.id = ?",
            key,
        )
        return _with_person(tuple(rows[0])) if rows else None

    def tokens(self, person: str) -> list[Token]:
        """All tokens of a person, oldest first."""
        return [
            Token(*row)
            for row in self._db.rows(
                "SELECT id, person, digest, label, created, expires, revoked FROM tokens WHERE person = ?"
                " ORDER BY created, id", person,
            )
        ]  # fmt: skip

    def revoke(self, key: str, *, by: str = "") -> None:
        """End a token now. One that was revoked before keeps its time."""
        with self.deeds.done("token revoked", token=key, by=by):
            self._db.rows("UPDATE tokens SET revoked = ? WHERE id = ? AND revoked IS NULL", self.now(), key)

    def end_tokens(self, person: str, *, by: str = "") -> None:
        """End all tokens of a person now, and with them their visits to the page."""
        with self.deeds.done("tokens ended", person=person, by=by):
            self._end_tokens("person = ?", person)

    def disable(self, person: str, *, by: str = "") -> None:
        """End all tokens of a person, and let nobody issue another, ever again."""
        with self.deeds.done("person disabled", person=person, by=by):
            self._db.rows("INSERT INTO disabled VALUES (?) ON CONFLICT DO NOTHING", person)
            self._end_tokens("person = ?", person)

    def disabled(self) -> frozenset[str]:
        """The ids of those who were disabled."""
        return frozenset(person for (person,) in self._db.rows("SELECT person FROM disabled"))

    def restored(self) -> None:
        """Go on from this copy, and end every token: nobody knows which were revoked after it was made."""
        with self.deeds.restored():
            self._end_tokens("1 = 1")

    def _end_tokens(self, whose: str, *values: object) -> None:
        ended = f"UPDATE tokens SET revoked = ? WHERE {whose} AND revoked IS NULL"
        self._db.rows(ended, self.now(), *values)

    def add_visit(self, digest: str, token: str, expires: float, now: float) -> None:
        """Somebody signed in to the page with a token; of their cookie only a digest is kept."""
        with self._db.write():
            self._db.rows("DELETE FROM visits WHERE expires <= ?", now)
            self._db.rows("INSERT INTO visits VALUES (?, ?, ?)", digest, token, expires)

    def visitor(self, digest: str, now: float) -> Person | None:
        """Whose visit it is, while neither it nor its token has ended."""
        rows = self._db.rows(
            "SELECT p.id, p.name, p.scope, p.team, v.expires, t.expires FROM visits v JOIN tokens t ON t.id = v.token"
            " JOIN people p ON p.id = t.person WHERE v.digest = ? AND t.revoked IS NULL",
            digest,
        )
        lasts = rows and all(end is None or end > now for end in rows[0][4:])
        return Person(*rows[0][:4]) if lasts else None

    def end_visit(self, digest: str) -> None:
        """Somebody signed out."""
        with self._db.write():
            self._db.rows("DELETE FROM visits WHERE digest = ?", digest)

    def add_dataset(self, key: str, record: dict[str, Any], marks: Iterable[str], *, by: str = "") -> None:
        """Register a table under an id of the owner's choice, unless one of its marks is another's. It has no ledger
        yet.

        Guarantee: of registrations that come at once, to whichever worker, one has the id and one has each mark.
        """
        with self.deeds.done("table added", table=key, by=by):
            added = "INSERT INTO datasets VALUES (?, ?, NULL) ON CONFLICT DO NOTHING RETURNING id"
            if not self._db.rows(added, key, json.dumps(record)):
                raise Taken(f"{key!r} is registered already; choose another id")
            for mark in sorted(marks):  # in order: of two that share several, one waits for the other
                ((owner,),) = self._db.rows(
                    "INSERT INTO marks VALUES (?, ?) ON CONFLICT (mark) DO UPDATE SET dataset = marks.dataset"
                    " RETURNING dataset", mark, key,
                )  # fmt: skip
                if owner != key:
                    raise same_rows(owner)

    def set_ledger(self, key: str, ledger: str, counted: dict[str, int]) -> None:
        """The table that was added has a ledger now, which tells how its units are `counted`, and stays."""
        with self.deeds.done("ledger made", table=key, ledger=ledger):
            chosen = "WHERE id = ? AND (ledger IS NULL OR ledger = ?)"
            for (record,) in (found := self._db.rows(f"SELECT record FROM datasets {chosen}", key, ledger)):
                changed = json.dumps(json.loads(record) | counted)
                self._db.rows(
                    f"UPDATE datasets SET ledger = ?, record = ? {chosen}", ledger, changed, key, ledger
                )
            if not found:
                raise LedgerError(
                    f"{key!r} was registered otherwise meanwhile; look at it, or register it again"
                )

    def take_back(self, key: str) -> None:
        """Forget a table that was added, unless it has a ledger."""
        with self.deeds.done("table taken back", table=key):
            if self._db.rows("DELETE FROM datasets WHERE id = ? AND ledger IS NULL RETURNING id", key):
                self._db.rows("DELETE FROM marks WHERE dataset = ?", key)

    def set_cap(self, key: str, budget: dict[str, Any], *, by: str = "") -> None:
        """The cap of a table is another now. Its ledger was told before."""
        with self.deeds.done("cap set", table=key, budget=json.dumps(budget), by=by):
            ((record,),) = self._db.rows("SELECT record FROM datasets WHERE id = ?", key)
            changed = json.dumps(json.loads(record) | {"budget": budget})
            self._db.rows("UPDATE datasets SET record = ? WHERE id = ?", changed, key)

    def retire(self, kind: str, key: str, *, by: str = "") -> None:
        """A table or a board answers nothing any more. It keeps its id, and a table its marks: its rows cannot be
        registered again."""
        with self.deeds.done(f"{kind} retired", id=key, by=by):
            self._db.rows("INSERT INTO retired VALUES (?, ?) ON CONFLICT DO NOTHING", kind, key)

    def retired(self, kind: str) -> frozenset[str]:
        """The ids of the tables or boards that were retired."""
        return frozenset(key for (key,) in self._db.rows("SELECT id FROM retired WHERE kind = ?", kind))

    def dataset(self, key: str) -> dict[str, Any] | None:
        """A registered table."""
        return dict(self.datasets(key)).get(key)

    def datasets(self, key: str | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
        """All registered tables, by id, or one."""
        only, values = ("", ()) if key is None else ("WHERE id = ? ", (key,))
        rows = self._db.rows(f"SELECT id, record, ledger FROM datasets {only}ORDER BY id", *values)
        return ((found, json.loads(record) | {"ledger": ledger}) for found, record, ledger in rows)

    def add_board(self, key: str, record: dict[str, Any], *, by: str = "") -> None:
        """Register a leaderboard or a holdout."""
        with self.deeds.done("board added", board=key, by=by):
            added = "INSERT INTO boards VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING id"
            if not self._db.rows(added, key, json.dumps(record)):
                raise Taken(f"{key!r} is registered already; choose another id")

    def board(self, key: str) -> dict[str, Any] | None:
        """A leaderboard or a holdout."""
        rows = self._db.rows("SELECT record FROM boards WHERE id = ?", key)
        return json.loads(rows[0][0]) if rows else None

    def boards(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """All boards and holdouts, by id."""
        rows = self._db.rows("SELECT id, record FROM boards ORDER BY id")
        return ((key, json.loads(record)) for key, record in rows)

    def set_member(self, dataset: str, person: str, budget: dict[str, Any], *, by: str = "") -> None:
        """Let somebody ask a table, or what is set aside of it, with a budget of their own below the table's."""
        members, table = _members(dataset)
        with self.deeds.done("admitted", table=dataset, person=person, budget=json.dumps(budget), by=by):
            self._db.rows(f"DELETE FROM {members} WHERE dataset = ? AND person = ?", table, person)
            self._db.rows(f"INSERT INTO {members} VALUES (?, ?, ?)", table, person, json.dumps(budget))

    def withdraw(self, dataset: str, person: str, *, by: str = "") -> None:
        """Somebody may ask a table, or what is set aside of it, no more."""
        members, table = _members(dataset)
        with self.deeds.done("withdrawn", table=dataset, person=person, by=by):
            self._db.rows(f"DELETE FROM {members} WHERE dataset = ? AND person = ?", table, person)

    def members(self, dataset: str) -> dict[str, dict[str, Any]]:
        """Who may ask a table, or what is set aside of it, with their budgets."""
        members, table = _members(dataset)
        rows = self._db.rows(f"SELECT person, budget FROM {members} WHERE dataset = ? ORDER BY person", table)
        return {person: json.loads(budget) for person, budget in rows}

    def member(self, dataset: str, person: str) -> dict[str, Any] | None:
        """The budget that somebody has on a table, or on what is set aside of it; None if they may not ask it, or
        nobody may."""
        members, table = _members(dataset)
        rows = self._db.rows(
            f"SELECT budget FROM {members} WHERE dataset = ? AND person = ? AND dataset NOT IN"
            " (SELECT id FROM retired WHERE kind = 'table')",
            table,
            person,
        )
        return json.loads(rows[0][0]) if rows else None

    def claim(self, person: str, place: str, key: str, digest: str) -> tuple[str, str]:
        """Take an idempotency key for a request, unless it is taken: (digest of the request that has it, its reply).

        Guarantee: of requests that come at once, to whichever worker, the first has the key, and all are told so. The
        reply is empty until there is one, and if it was too long to keep.
        """
        with self._replies.write():
            rows = self._replies.rows(
                "INSERT INTO replies VALUES (?, ?, ?, ?, '', ?) ON CONFLICT (person, place, key)"
                " DO UPDATE SET kept = replies.kept RETURNING digest, body",
                person, place, key, digest, self.now(),
            )  # fmt: skip
            self._written += 1
            if self._written % _TIDY_EVERY == 0:
                self._replies.rows(
                    "DELETE FROM replies WHERE person = ? AND kept < (SELECT kept FROM replies WHERE person = ?"
                    f" ORDER BY kept DESC LIMIT 1 OFFSET {REPLIES_KEPT})",
                    person, person,
                )  # fmt: skip
        return tuple(rows[0])

    def keep_reply(self, person: str, place: str, key: str, digest: str, body: str) -> str:
        """Keep the reply to the request that has a key, unless it has one; the reply that stands."""
        kept = body if len(body) <= LARGEST_REPLY else ""
        with self._replies.write():
            rows = self._replies.rows(
                "UPDATE replies SET body = CASE body WHEN '' THEN ? ELSE body END"
                " WHERE person = ? AND place = ? AND key = ? AND digest = ? RETURNING body",
                kept, person, place, key, digest,
            )  # fmt: skip
        return (rows[0][0] if rows else "") or body

    def touch(self) -> None:
        """LedgerError unless both databases can be read and locked."""
        for database in (self._db, self._replies):
            with database.write():
                database.rows("SELECT version FROM formats")

    def latest(self) -> float:
        """The latest time that was written; 0 if none was."""
        times = self._db.rows(
            "SELECT max(created) FROM people UNION ALL SELECT max(created) FROM tokens UNION ALL"
            " SELECT max(revoked) FROM tokens"
        )
        return max((time for (time,) in times if time is not None), default=0.0)

    def close(self) -> None:
        """Let go of both databases."""
        self._db.close()
        self._replies.close()
        self.deeds.close()


@lru_cache(maxsize=1024)
def _with_person(row: tuple[Any, ...]) -> tuple[Token, Person]:
    """A token with its person; the same row is looked at for every request."""
    return Token(*row[:7]), Person(*row[7:])


def _members(key: str) -> tuple[str, str]:
    """Where it stands who may ask this part of a table, and the table."""
    return ("members_aside" if is_aside(key) else "members"), table_of(key)


def _make(database: Database, kind: str, tables: Iterable[str]) -> None:
    """Make what is missing of the tables; LedgerError if there are some of another version, which stay as they are."""
    with database.write():
        database.rows("CREATE TABLE IF NOT EXISTS formats (kind TEXT PRIMARY KEY, version BIGINT NOT NULL)")
        database.rows("INSERT INTO formats VALUES (?, ?) ON CONFLICT DO NOTHING", kind, FORMATS[kind])
        ((version,),) = database.rows("SELECT version FROM formats WHERE kind = ?", kind)
        check_format(kind, version, "the gateway's database")
        for statement in tables:
            database.rows(statement)


class Taken(InputError):
    """A name or an id that must be unique is in use."""


def same_rows(owner: str) -> Taken:
    """What is said of rows that are there under another id."""
    return Taken(
        f"those rows are registered already as {owner!r}, with one budget for all; if this is another file that only "
        "took the place of a removed one, register a copy of it"
    )


def _name(what: str, text: str) -> str:
    return printable(what, text, 100).strip()
