"""A ledger for the life of a table that was never saved."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, islice
from threading import Lock

from holdfast.errors import BudgetError, LedgerError
from holdfast.ledger.commit import Commit, Outcome, Survey, Surveyed, outcome
from holdfast.ledger.division import ASIDE, check_part
from holdfast.ledger.entry import (
    ALWAYS,
    BEGINNING,
    LOOKS,
    QUESTION,
    Account,
    Charge,
    Entry,
    Moment,
    Precondition,
    Stale,
    Totals,
    refuse_closed,
    refuse_delta,
    refuse_full,
    refuse_mixture,
    refuse_overspending,
)
from holdfast.ledger.fact import CLOSED, FIELDS, Fact, Value, digest, genesis, link
from holdfast.ledger.shares import check_share, check_told
from holdfast.process import Home

_NOTHING = Totals()
SECRET_BYTES = 16


class MemoryLedger:
    """See `Ledger`. Every operation is O(1) and holds one lock. The chain is computed when it is asked for.

    Guarantee: it counts in the process that made it and in no other. A forked child has a copy that its parent
    does not see, so there it refuses (LedgerError) to charge, to record and to look for what was charged.
    """

    def __init__(self) -> None:
        self._lock, self._turn = Lock(), Lock()
        self._home = Home(
            "a ledger", "ask there, or keep it in a file that this process opens too", LedgerError
        )
        self._limit: Account | None = None
        self._accounts: dict[str, Account] = {}
        self._shares: list[Account] = []
        self._ended: frozenset[str] = frozenset()
        self._totals: dict[str | None, Totals] = {}
        self._entries: list[Entry] = []
        self._answered: list[int] = []
        self._keys: dict[tuple[str, str], int] = {}
        self._least: dict[tuple[str, str], str] = {}
        self._questions: set[tuple[str, str]] = set()
        self._retired = False
        self._log: list[tuple[str, Account | int | str]] = []
        self.id, self._salts = uuid.uuid4().hex, secrets.token_bytes(32)
        self.secret = secrets.token_bytes(SECRET_BYTES)

    @property
    def tally(self) -> Mapping[str | None, Totals]:
        """What was charged so far, for each session and (None) for the table. Whoever holds it sees it grow, and may
        outlive the ledger."""
        return self._totals

    def limit(self) -> Account | None:
        return self._limit

    def set_limit(self, account: Account) -> None:
        self._home.check()
        with self._lock:
            check_limit(self._limit, account, self.totals())
            self._limit = account
            self._log.append(("limit", account))

    def open(self, account: Account) -> Account:
        self._home.check()
        with self._lock:
            standing = self._accounts.get(account.name)
            check_account(standing, account, self.totals(account.name), self._limit)
            if standing is None:
                check_part(account, ASIDE in self._accounts, bool(self._accounts))
                check_share(account, self._shares, self._told_by, self.totals().information)
            if standing != account:
                self._accounts[account.name] = account
                self._shares = [share for share in self._shares if share.name != account.name]
                self._shares += [account] if account.is_share and account.name not in self._ended else []
                self._log.append(("account", account))
            return account

    def accounts(self) -> Iterator[Account]:
        return iter(list(self._accounts.values()))

    def end(self, session: str) -> None:
        self._home.check()
        with self._lock:
            self._refuse_retired()
            check_end(session, self._accounts.get(session))
            if session not in self._ended:
                self._ended |= {session}
                self._shares = [share for share in self._shares if share.name != session]
                self._log.append((CLOSED, session))

    def ended(self) -> frozenset[str]:
        return self._ended

    def _told_by(self, name: str) -> int:
        return self.totals(name).information

    def reserve(
        self, session: str, key: str, plan: str, event: str, charge: Charge, holds: Precondition = ALWAYS
    ) -> Entry:
        self._home.check()
        with self._lock:
            self._refuse_retired()
            before = self.totals().information
            mine, all_ = self.totals(session).of_session(charge), self.totals().of_table(charge)
            holds.check(mine, all_, self._limit, before)
            if (session, key) in self._keys:
                raise Stale("this was reserved meanwhile")
            refuse_full(holds.most_entries, mine.entries)
            refuse_closed(session, self._ended)
            account = check_charge(session, self._accounts.get(session), self._limit, charge, mine, all_)
            check_told(account, self._shares, self._told_by, mine, before, charge.information)
            entry = Entry(len(self._entries), session, key, plan, event, charge, None)
            self._entries.append(entry)
            self._keys[session, key] = entry.id
            self._questions.add((session, key[:QUESTION]))
            if len(key) > BEGINNING:
                begun = session, key[:BEGINNING]
                self._least[begun] = min(key, self._least.get(begun, key))
            self._log.append(("reserved", entry.id))
            self._totals[session], self._totals[None] = mine, all_
            return entry

    def record(
        self,
        entry: int,
        answer: str,
        *,
        secret: bool = False,
        after: int | None = None,
        told: int | None = None,
    ) -> str:
        self._home.check()
        with self._lock:
            if not 0 <= entry < len(self._entries):
                raise LedgerError(
                    f"expected a reservation, got {entry}, which is none; reserve before the answer"
                )
            standing = self._entries[entry].answer
            if standing is not None:
                return standing
            # A reservation that went along with the copy is answered there, once.
            self._refuse_retired()
            if after not in (None, len(self._answered)):
                raise Stale("another was answered meanwhile")
            paid = self._entries[entry]
            spared = self.totals().sparing(paid.charge.information, told)
            self._entries[entry] = Entry(
                paid.id, paid.session, paid.key, paid.plan, paid.event, paid.charge, answer, secret, spared
            )
            if spared:
                for whose in (None, paid.session):
                    self._totals[whose] = self.totals(whose).spared(spared)
            self._answered.append(entry)
            self._log.append(("answered", entry))
            return answer

    def commit_all(self, commits: Sequence[Commit]) -> list[Outcome]:
        return [outcome(commit, self) for commit in commits]

    def survey_all(self, surveys: Sequence[Survey]) -> list[Surveyed]:
        return [
            Surveyed((one.session, one.question) in self._questions, self.moment(one.session))
            for one in surveys
        ]

    def find(self, session: str, key: str) -> Entry | None:
        self._home.check()
        index = self._keys.get((session, key))
        return None if index is None else self._entries[index]

    def firsts(self, session: str, beginnings: Sequence[str]) -> list[Entry]:
        keys = (self._least.get((session, beginning)) for beginning in beginnings)
        return [self._entries[self._keys[session, key]] for key in keys if key is not None]

    def totals(self, session: str | None = None) -> Totals:
        return self._totals.get(session, _NOTHING)

    def moment(self, session: str) -> Moment:
        self._home.check()
        with self._lock:
            return Moment(self.totals(session), self.totals(), self._limit)

    def entries(self, session: str | None = None, *, last: int | None = None) -> Iterator[Entry]:
        skipped = 0 if last is None else max(0, self.totals(session).entries - last)
        mine = (entry for entry in list(self._entries) if session is None or entry.session == session)
        return islice(mine, skipped, None)

    def answered(self, after: int = 0) -> Iterator[tuple[int, Entry]]:
        self._home.check()
        return (
            (place, self._entries[entry]) for place, entry in enumerate(self._answered[after:], after + 1)
        )

    @contextmanager
    def turn(self) -> Iterator[None]:
        self._home.check()
        with self._turn:
            yield

    def course(self, session: str, every: int) -> list[tuple[int, int]]:
        units = accumulate(entry.charge.session for entry in self.entries(session))
        return [(place, total) for place, total in enumerate(units, 1) if place % every == 0]

    def history(self) -> Iterator[Fact]:
        """Every fact in order, chained now."""
        with self._lock:
            log, entries = list(self._log), list(self._entries)
        head = genesis(self.id)
        yield Fact(0, "ledger", {"ledger": self.id}, head)
        places: dict[int, int] = {}
        spent: dict[str | None, Totals] = {}
        for place, (kind, what) in enumerate(log, 1):
            answer = salt = None
            if isinstance(what, Account):
                fields = _account_fields(kind, what)
            elif isinstance(what, str):
                fields = {"session": what}
            elif kind == "reserved":
                places[what] = place
                fields = _entry_fields(entries[what], spent)
            else:
                answer, salt = str(entries[what].answer), self._salt(place)
                spared, secret = entries[what].spared, int(entries[what].secret)
                fields = {"entry": places[what], "secret": secret, "spared": spared}
                for whose in (None, entries[what].session):
                    spent[whose] = spent[whose].spared(spared)
                fields["digest"] = digest(salt, answer)
            head = link(head, place, kind, fields)
            yield Fact(place, kind, fields, head, answer, salt)
        yield Fact(len(log), "tip", {}, head)

    def _salt(self, place: int) -> str:
        """The same for the same place, so that two exports agree."""
        return hashlib.sha256(self._salts + place.to_bytes(8)).hexdigest()[:32]

    def anchored(self) -> None:
        """It has no anchor: it dies with the process."""

    def _refuse_retired(self) -> None:
        if self._retired:
            raise LedgerError(
                "this table was saved, and the store's ledger counts from now on; open a session on the saved table"
            )

    def retire(self, retired: bool = True) -> None:
        """Accept no further charges: another ledger counts for these rows from now on."""
        self._home.check()
        with self._lock:
            self._retired = retired

    def close(self) -> None:
        """Nothing to let go of."""


def _account_fields(kind: str, account: Account) -> dict[str, Value]:
    fields: dict[str, Value] = {"name": account.name, "currency": account.currency, "units": account.limit}
    fields["delta"] = account.delta
    if kind == "limit":
        return fields
    share: dict[str, Value] = {name: getattr(account, name) for name in ("information", "table_information")}
    return {**fields, "terms": account.terms, **share}


def _entry_fields(entry: Entry, spent: dict[str | None, Totals]) -> dict[str, Value]:
    """A reservation with the running totals after it; `spent` goes along."""
    charge = entry.charge
    mine = spent[entry.session] = spent.get(entry.session, _NOTHING).of_session(charge)
    all_ = spent[None] = spent.get(None, _NOTHING).of_table(charge)
    values: tuple[Value, ...] = (
        entry.session, entry.key, entry.plan, entry.event, charge.session, charge.table, charge.queries,
        charge.information, charge.delta, *running(mine, all_),
    )  # fmt: skip
    return dict(zip(FIELDS["reserved"], values, strict=True))


def running(mine: Totals, all_: Totals) -> tuple[int, ...]:
    """The running totals that stand in a reservation."""
    return (
        mine.entries, mine.answers, mine.units, mine.information, mine.delta,
        all_.entries, all_.answers, all_.units, all_.information, all_.delta,
    )  # fmt: skip


def check_limit(standing: Account | None, wanted: Account, spent: Totals) -> None:
    """Refuse a table cap in another currency than the charges already made, or below them; and to count looks
    where privacy was to be counted, or the other way round."""
    currency = "zcdp" if standing is None else standing.currency
    mixed = standing is not None and LOOKS in (currency, wanted.currency)
    if currency != wanted.currency and (spent.units or mixed):
        raise LedgerError(
            f"the table's charges are counted in {currency}; a limit in {wanted.currency} cannot be compared "
            f"with them. Set the limit in {currency}, or set it before the first answer."
        )
    if spent.units > wanted.limit or spent.delta > wanted.delta:
        raise BudgetError("the table was already charged more than this limit; set a higher one")


def check_account(standing: Account | None, wanted: Account, spent: Totals, cap: Account | None) -> None:
    """Refuse to come back to a session on other terms, or to open one that the table's cap cannot count."""
    if cap is not None:
        refuse_mixture(wanted, cap)
    if standing is not None and standing.currency != wanted.currency:
        raise LedgerError(
            f"session {wanted.name!r} exists and is counted in {standing.currency}, not {wanted.currency}; "
            f"open it on the same terms, or choose another name"
        )
    if standing is not None and standing.terms != wanted.terms:
        raise LedgerError(
            f"session {wanted.name!r} exists and promised {standing.terms}, not {wanted.terms}; open it on the "
            "same terms, or choose another name"
        )
    if standing is not None and _share(standing) != _share(wanted):
        raise LedgerError(
            f"session {wanted.name!r} exists and has another share of the meter; open it on the same terms, or choose "
            "another name"
        )
    if spent.units > wanted.limit or spent.delta > wanted.delta:
        raise BudgetError(
            f"session {wanted.name!r} was already charged more than this limit; open it with a larger budget"
        )


def check_charge(
    session: str, account: Account | None, cap: Account | None, charge: Charge, mine: Totals, all_: Totals
) -> Account:
    """The account that is charged. Refuse a charge to a session without one, or one after which a limit is passed;
    `mine` and `all_` are the totals with it."""
    if account is None:
        raise LedgerError(f"session {session!r} has no account in this ledger; open it first")
    refuse_mixture(account, cap)
    refuse_overspending(account, mine.units, charge.session)
    refuse_overspending(cap, all_.units, charge.table)
    refuse_delta(account, mine, charge.delta)
    refuse_delta(cap, all_, charge.delta)
    return account


def check_end(session: str, account: Account | None) -> None:
    """Refuse to close what was never opened."""
    if account is None:
        raise LedgerError(f"session {session!r} has no account in this ledger; there is nothing to close")


def _share(account: Account) -> tuple[int, int]:
    return account.information, account.table_information
