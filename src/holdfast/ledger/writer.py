"""Writing the tables of a ledger, inside one transaction that holds its lock."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from holdfast.errors import LedgerError
from holdfast.ledger.commit import Commit, Record, Reserve
from holdfast.ledger.division import ASIDE, check_part
from holdfast.ledger.entry import (
    Account,
    Charge,
    Entry,
    Precondition,
    Stale,
    Totals,
    refuse_closed,
    refuse_full,
)
from holdfast.ledger.fact import CLOSED, FIELDS, Value, canonical, digest, link_values, sealed
from holdfast.ledger.memory import check_account, check_charge, check_end, check_limit, running
from holdfast.ledger.reader import Reader, Reservation, Rows, in_lists
from holdfast.ledger.shares import check_share, check_told

_TABLES = {"limit": "limits", "account": "accounts", "reserved": "entries"}
_COLUMNS = {kind: f"{table} (place, {', '.join(FIELDS[kind])}, head)" for kind, table in _TABLES.items()} | {
    "answered": "answers (place, entry, answer, salt, secret, spared, head)"
}
"""Where the facts of a kind stand, what they refer to before them."""
_UNWRITTEN = 64
"""So many facts are written with one statement."""

_SESSIONS_KEPT = 10_000


class Writer(Reader):
    """Appends facts, each bound to the one before. Call `sign` at the end, before the commit.

    What it has read or written (the tip, totals, accounts, the cap and the last note) it remembers: nobody else
    can change them while it holds the lock, and later nobody can without another head at the tip, by which
    `goes_on` notices. After a rollback it is of no use any more.

    Facts are written many at a time: at the latest before the next statement. So a fact that the database refuses may
    break a later operation, or the signature; no operation of the transaction counts then.
    """

    def __init__(self, rows: Rows) -> None:
        super().__init__(self._after_all_facts)
        self._statement = rows
        self._facts: dict[str, list[tuple[Value, ...]]] = {kind: [] for kind in _COLUMNS}
        """Those that are not written yet."""
        self._free: set[tuple[str, str]] = set()
        self._salts: list[str] = []
        self._reservations: dict[int, Reservation] = {}
        self.ledger, self.place, self._head = self.tip()
        self.begun = self.place
        self.total, self.cap, self.last_note = super().totals(), self.limit(), self.note()
        self._totals: dict[str, Totals] = {}
        self._accounts: dict[str, Account] = {}
        self._shares: list[Account] | None = None
        self._ended: frozenset[str] | None = None

    def goes_on(self) -> bool:
        """At the start of another transaction: whether nobody else has written since the last."""
        self.begun = self.place
        self._free, self._reservations = set(), {}
        return self.tip() == (self.ledger, self.place, self._head)

    def keep_secret(self, secret: bytes) -> None:
        """Take over the secret of the ledger that is copied."""
        self._rows("UPDATE tip SET secret = ?", sealed(secret))

    def totals(self, session: str | None = None) -> Totals:
        if session is None:
            return self.total
        known = self._totals.get(session)
        if known is None:
            self._make_room()
            known = self._totals[session] = super().totals(session)
        return known

    def account(self, name: str) -> Account | None:
        known = self._accounts.get(name)
        if known is None:
            known = super().account(name)
            if known is not None:
                self._make_room()
                self._accounts[name] = known
        return known

    def shares(self) -> list[Account]:
        if self._shares is None:
            self._shares = super().shares()
        return self._shares

    def ended(self) -> frozenset[str]:
        if self._ended is None:
            self._ended = super().ended()
        return self._ended

    def _told_by(self, name: str) -> int:
        return self.totals(name).information

    def _make_room(self) -> None:
        """Sessions come and go; only some are remembered."""
        for kept in (self._totals, self._accounts):
            if len(kept) >= _SESSIONS_KEPT:
                kept.clear()

    def expect(self, commits: Sequence[Commit]) -> None:
        """Look at once for what these commits will ask about."""
        keys = [(one.session, one.key) for one in commits if isinstance(one, Reserve)]
        self._free = set(keys) - self.taken(keys)
        self._reservations = self.reservations([one.entry for one in commits if isinstance(one, Record)])

    @property
    def last(self) -> str:
        """The head of all that was written so far."""
        return self._head

    def sign(self) -> None:
        """Move the tip to the last fact."""
        if self.place != self.begun:
            self._rows("UPDATE tip SET place = ?, head = ?", self.place, self._head)

    def refuse_unless_open(self) -> None:
        """LedgerError if another ledger counts for these rows, or will."""
        match self.last_note:
            case ("moved", {"target": target}):
                raise LedgerError(
                    f"this ledger was moved to {target}, which counts from now on; open the table with that ledger"
                )
            case ("arriving", {"source": source}):
                raise LedgerError(
                    f"the facts of ledger {source} are on their way here and not complete; finish the move first"
                )

    def set_limit(self, account: Account) -> None:
        check_limit(self.cap, account, self.total)
        self._append("limit", account.name, account.currency, account.limit, account.delta)
        self.cap = Account(account.name, account.currency, account.limit, delta=account.delta)

    def open(self, account: Account) -> Account:
        standing = self.account(account.name)
        check_account(standing, account, self.totals(account.name), self.cap)
        if standing is None:
            check_part(account, self.account(ASIDE) is not None, self.has_accounts())
            check_share(account, self.shares(), self._told_by, self.total.information)
        if standing != account:
            self._append(
                "account", account.name, account.currency, account.limit, account.terms,
                account.information, account.table_information, account.delta,
            )  # fmt: skip
            self._accounts[account.name] = account
            self._shares = None
        return account

    def end(self, session: str) -> None:
        check_end(session, self.account(session))
        if session not in self.ended():
            self._note(CLOSED, session=session)
            self._ended, self._shares = self.ended() | {session}, None

    def reserve(
        self, session: str, key: str, plan: str, event: str, charge: Charge, holds: Precondition
    ) -> Entry:
        mine, all_ = self.totals(session).of_session(charge), self.total.of_table(charge)
        holds.check(mine, all_, self.cap, self.total.information)
        if (session, key) in self._free:
            self._free.remove((session, key))
        elif self.find(session, key) is not None:
            raise Stale("this was reserved meanwhile")
        refuse_full(holds.most_entries, mine.entries)
        refuse_closed(session, self.ended())
        account = check_charge(session, self.account(session), self.cap, charge, mine, all_)
        check_told(account, self.shares(), self._told_by, mine, self.total.information, charge.information)
        return self._charge(session, key, plan, event, charge, mine, all_)

    def charge(self, session: str, key: str, plan: str, event: str, charge: Charge) -> Entry:
        """Append a reservation without asking whether it fits: it was made before, or was lost."""
        mine, all_ = self.totals(session).of_session(charge), self.total.of_table(charge)
        return self._charge(session, key, plan, event, charge, mine, all_)

    def _charge(
        self, session: str, key: str, plan: str, event: str, charge: Charge, mine: Totals, all_: Totals
    ) -> Entry:
        self._append(
            "reserved", session, key, plan, event, charge.session, charge.table, charge.queries, charge.information,
            charge.delta, *running(mine, all_),
        )  # fmt: skip
        self.total, self._totals[session] = all_, mine
        return Entry(self.place, session, key, plan, event, charge, None)

    def record(
        self, entry: int, answer: str, secret: bool, after: int | None = None, told: int | None = None
    ) -> str:
        reserved = self._reservations.pop(entry, None) or self.reservations([entry]).get(entry)
        if reserved is None:
            raise LedgerError(
                f"expected a reservation, got {entry}, which is none; reserve before the answer"
            )
        if reserved.answer is not None:
            return reserved.answer
        if after is not None and self._rows("SELECT max(place) FROM answers")[0][0] != (after or None):
            raise Stale("another was answered meanwhile")
        spared = 0 if told is None else self.total.sparing(reserved.information, told)
        salt = self._salt()
        self._bind("answered", (entry, int(secret), spared, digest(salt, answer)))
        self._put("answered", (self.place, entry, answer, salt, int(secret), spared, self._head))
        self.total = self.total.spared(spared)
        if spared and reserved.session in self._totals:
            self._totals[reserved.session] = self._totals[reserved.session].spared(spared)
        return answer

    def _salt(self) -> str:
        """32 random letters. They are drawn many at a time: each draw would let other threads go on."""
        if not self._salts:
            many = secrets.token_hex(16 * _UNWRITTEN)
            self._salts = [many[first : first + 32] for first in range(0, len(many), 32)]
        return self._salts.pop()

    def write_note(self, kind: str, **fields: Value) -> None:
        """Append what happened to the ledger itself."""
        self._note(kind, **fields)
        self.last_note = kind, fields

    def _note(self, kind: str, **fields: Value) -> None:
        self._bind(kind, tuple(fields[name] for name in FIELDS[kind]))
        self._rows(
            "INSERT INTO notes (place, kind, body, head) VALUES (?, ?, ?, ?)",
            self.place, kind, canonical(fields), self._head,
        )  # fmt: skip

    def _append(self, kind: str, *values: Value) -> None:
        self._bind(kind, values)
        self._put(kind, (self.place, *values, self._head))

    def _put(self, kind: str, fact: tuple[Value, ...]) -> None:
        facts = self._facts[kind]
        facts.append(fact)
        if len(facts) >= _UNWRITTEN:
            self._write_facts()

    def _write_facts(self) -> None:
        for kind, facts in self._facts.items():
            for some in in_lists(facts):
                row = f"({', '.join('?' * len(some[0]))})"
                sql = f"INSERT INTO {_COLUMNS[kind]} VALUES {', '.join([row] * len(some))}"
                self._statement(sql, *(value for fact in some for value in fact))
            facts.clear()

    def _after_all_facts(self, sql: str, *values: object) -> list[Any]:
        """A statement which sees all that was appended."""
        self._write_facts()
        return self._statement(sql, *values)

    def _bind(self, kind: str, values: tuple[Value, ...]) -> None:
        """Take the next place in the chain."""
        self._head = link_values(self._head, self.place + 1, kind, values)
        self.place += 1
