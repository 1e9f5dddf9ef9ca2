"""Walking a ledger's history: is every fact as it was written, and was every rule kept?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from holdfast.errors import HoldfastError, LedgerError
from holdfast.ledger.anchor import Mark
from holdfast.ledger.entry import (
    LOOKS,
    LOST,
    UNCOVERED,
    Account,
    Charge,
    Totals,
    is_replayed,
    refuse_closed,
    refuse_mixture,
)
from holdfast.ledger.fact import FIELDS, Fact, Value, digest, genesis, is_hex, link
from holdfast.ledger.memory import check_account, check_end, check_limit, running
from holdfast.ledger.protocol import Ledger
from holdfast.ledger.seen_keys import SeenKeys
from holdfast.ledger.shares import check_share, check_told
from holdfast.privacy.filter import UNITS

CHARGED = ("session_units", "table_units", "queries", "information", "delta")


@dataclass(frozen=True, slots=True)
class Verified:
    """What a sound ledger holds. `head` stands for all of it; `currency` is the table's; `replayed` is how many
    charges a test made with noise that repeats itself, and which paid for nothing private."""

    ledger: str
    place: int
    head: str
    sessions: int
    answered: int
    secret: int
    totals: Totals
    currency: str
    moved: str | None
    replayed: int = 0

    def __str__(self) -> str:
        moved = "" if self.moved is None else f"; moved to {self.moved}"
        replayed = f"; {_several(self.replayed, 'charge')} REPLAYED, not private" if self.replayed else ""
        charged = f"{_several(self.totals.entries, 'charge')} by {_several(self.sessions, 'session')}"
        return (
            f"ledger {self.ledger}: sound. {_several(self.place, 'fact')}: {charged}, "
            f"{self.answered} answered ({self.secret} secret), "
            f"{_amount(self.totals.units, self.currency)} in all{replayed}{moved}\n"
            f"head {self.head}"
        )


def _several(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _amount(units: int, currency: str) -> str:
    """A sum of charges in the words that sessions use for it."""
    if currency == LOOKS:
        return f"{units} {currency}"
    name = {"zcdp": "rho", "pure": "epsilon", "gdp": "mu squared"}[currency]
    return f"{name} {units / UNITS:.9g}"


def verify(ledger: Ledger) -> Verified:
    """Walk the whole ledger; LedgerError names the first fact that does not fit.

    Guarantee: the chain is unbroken to the tip and holds the anchor's mark; running totals are the sums of
    the charges; no cap was passed at any step; each answer belongs to a reservation, one at most to each.
    """
    mark = ledger.anchored()  # before the snapshot: the ledger may only be further than its anchor
    _ = ledger.secret  # refused if it is damaged
    return audit(ledger.history(), mark)


def audit(history: Iterable[Fact], mark: Mark | None = None) -> Verified:
    """Walk a history, from its first fact to its tip."""
    facts = iter(history)
    first = next(facts, None)
    if first is None or first.kind != "ledger" or first.place != 0:
        raise LedgerError("expected a ledger's history, got something else; give a ledger or its export")
    walk = Walk(str(first.fields.get("ledger")), mark)
    if first.head != walk.head:
        walk.refuse(first, "its head does not belong to this ledger's id")
    for fact in facts:
        if fact.kind == "tip":
            return walk.ended(fact)
        walk.step(fact)
    raise LedgerError(f"the history ends after place {walk.place} without a tip; find the copy that has one")


class Walk:
    """What is known after each fact."""

    def __init__(self, ledger: str, mark: Mark | None) -> None:
        self.ledger, self.mark = ledger, mark
        self.place, self.head = 0, genesis(ledger)
        self._cap: Account | None = None
        self._accounts: dict[str, Account] = {}
        self._spent: dict[str, Totals] = {}
        self._total = Totals()
        self._keys = SeenKeys()
        self._ended: set[str] = set()
        self._pending: dict[int, tuple[str, int]] = {}
        self._answered = self._secret = self._replayed = 0
        self._moved: str | None = None
        self._check_mark()

    def refuse(self, fact: Fact, why: str) -> NoReturn:
        raise LedgerError(
            f"the ledger was changed: {fact.kind} at place {fact.place}: {why}; find the right copy"
        )

    def step(self, fact: Fact) -> None:
        """The next fact. Its hash is checked before its meaning."""
        if fact.place != self.place + 1:
            self.refuse(fact, f"expected place {self.place + 1}; a fact is missing or stands twice")
        if set(fact.fields) != set(FIELDS.get(fact.kind, ())):
            self.refuse(fact, "it is not a fact as ledgers write them")
        if fact.kind == "answered":
            self._check_digest(fact)
        self.head = link(self.head, fact.place, fact.kind, fact.fields)
        if fact.head != self.head:
            self.refuse(fact, "its head is not the hash of the head before it and of its contents")
        if self._moved is not None:
            self.refuse(fact, "it was written after the ledger had been moved")
        self.place = fact.place
        self._check_mark()
        self._understand(fact)

    def ended(self, tip: Fact) -> Verified:
        """The history is complete if the tip says so, and the anchor has not seen more."""
        self._refuse_repeated(self._keys.settle())
        if (tip.place, tip.head) != (self.place, self.head):
            self.refuse(tip, f"the facts end at place {self.place} with another head")
        if self.mark is not None and self.mark.place > self.place:
            raise LedgerError(
                f"the ledger is an older copy: its anchor has seen place {self.mark.place}, the tip is at "
                f"place {self.place}; find the right copy, or acknowledge what was lost"
            )
        return Verified(
            self.ledger, self.place, self.head, len(self._accounts), self._answered, self._secret, self._total,
            "zcdp" if self._cap is None else self._cap.currency, self._moved,
            self._replayed,
        )  # fmt: skip

    def _refuse_repeated(self, place: int | None) -> None:
        if place is not None:
            raise LedgerError(
                f"the ledger was changed: reserved at place {place}: its key was reserved before; find the right copy"
            )

    def _check_mark(self) -> None:
        if self.mark is not None and self.mark.place == self.place and self.mark.head != self.head:
            raise LedgerError(
                f"the ledger went another way than its anchor: at place {self.place} the anchor saw another head"
                "; find the right copy, or acknowledge what was lost"
            )

    def _check_digest(self, fact: Fact) -> None:
        if fact.answer is None:
            if not fact.fields["secret"]:
                self.refuse(fact, "the answer is missing, and it is not a secret one")
        elif (
            not (is_hex(fact.salt) and isinstance(fact.answer, str))
            or digest(str(fact.salt), fact.answer) != fact.fields["digest"]
        ):
            self.refuse(fact, "the answer is not the one that was committed")

    def _understand(self, fact: Fact) -> None:
        """What a fact says, held against what is known."""
        match fact.kind:
            case "limit":
                self._limit(fact)
            case "account":
                self._account(fact)
            case "reserved":
                self._reserved(fact)
            case "answered":
                self._answer(fact)
            case "closed":
                self._closed(fact)
            case "moved":
                self._moved = str(fact.fields["target"])

    def _limit(self, fact: Fact) -> None:
        try:
            wanted = account_of(fact.fields)
            check_limit(self._cap, wanted, self._total)
        except HoldfastError as error:
            self.refuse(fact, str(error))
        self._cap = wanted

    def _account(self, fact: Fact) -> None:
        try:
            wanted = account_of(fact.fields)
            spent = self._spent.get(wanted.name, Totals())
            standing = self._accounts.get(wanted.name)
            check_account(standing, wanted, spent, self._cap)
            if standing is None:
                check_share(wanted, self._shares(), self._told_by, self._total.information)
        except HoldfastError as error:
            self.refuse(fact, str(error))
        self._accounts[wanted.name] = wanted

    def _closed(self, fact: Fact) -> None:
        session = str(fact.fields["session"])
        try:
            check_end(session, self._accounts.get(session))
        except HoldfastError as error:
            self.refuse(fact, str(error))
        if session in self._ended:
            self.refuse(fact, "its session was closed before")
        self._ended.add(session)

    def _reserved(self, fact: Fact) -> None:
        fields, session = fact.fields, str(fact.fields["session"])
        account = self._accounts.get(session)
        if account is None:
            self.refuse(fact, "its session has no account")
        self._refuse_repeated(self._keys.add(f"{session}\0{fields['key']}", fact.place))
        numbers = [int(fields[name]) for name in CHARGED]
        if min(numbers) < 0:
            self.refuse(fact, "it charges less than nothing")
        charge, before = Charge(*numbers), self._total
        mine = self._spent.get(session, Totals()).of_session(charge)
        self._total = all_ = before.of_table(charge)
        totals = running(mine, all_)
        if tuple(fields[name] for name in FIELDS["reserved"][-len(totals) :]) != totals:
            self.refuse(fact, "its running totals are not the sums of the charges")
        try:
            refuse_mixture(account, self._cap)
            if fields["plan"] != LOST:
                refuse_closed(session, self._ended)
                check_told(
                    account, self._shares(), self._told_by, mine, before.information, charge.information
                )
        except HoldfastError as error:
            self.refuse(fact, str(error))
        if mine.units > account.limit or mine.delta > account.delta:
            self.refuse(fact, "it passes its session's limit")
        # What was lost with an older copy is charged in any case; nobody gains by it.
        passed = self._cap is not None and (all_.units > self._cap.limit or all_.delta > self._cap.delta)
        if passed and fields["plan"] != LOST:
            self.refuse(fact, "it passes the table's limit")
        self._spent[session] = mine
        self._pending[fact.place] = (session, charge.information)
        self._replayed += is_replayed(str(fields["plan"]))

    def _shares(self) -> list[Account]:
        return [
            account
            for account in self._accounts.values()
            if account.is_share and account.name not in self._ended
        ]

    def _told_by(self, name: str) -> int:
        return self._spent.get(name, Totals()).information

    def _answer(self, fact: Fact) -> None:
        entry = int(fact.fields["entry"])
        if entry not in self._pending:
            self.refuse(fact, "it answers no reservation, or one that was answered before")
        (session, reserved), spared = self._pending.pop(entry), int(fact.fields["spared"])
        if spared != self._total.sparing(reserved, reserved - spared) or spared > reserved:
            self.refuse(fact, "it gives back more than was reserved for it")
        self._total, self._spent[session] = self._total.spared(spared), self._spent[session].spared(spared)
        self._answered += 1
        self._secret += bool(fact.fields["secret"])


def account_of(fields: Mapping[str, Value]) -> Account:
    """The account, or the limit, that a fact tells of."""
    most, of_all = (int(fields.get(name, UNCOVERED)) for name in ("information", "table_information"))
    known = str(fields["name"]), str(fields["currency"]), int(fields["units"]), str(fields.get("terms", ""))
    return Account(*known, most, of_all, int(fields["delta"]))
