"""A ledger for the life of a table that was never saved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Lock

from holdfast.errors import BudgetError, LedgerError
from holdfast.ledger.entry import ALWAYS, Account, Charge, Entry, Stale, Totals, While, refuse_overspending

_NOTHING = Totals()


class MemoryLedger:
    """See `Ledger`. Every operation is O(1) and holds one lock."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._limit: Account | None = None
        self._accounts: dict[str, Account] = {}
        self._totals: dict[str | None, Totals] = {}
        self._entries: list[Entry] = []
        self._keys: dict[tuple[str, str], int] = {}
        self._retired = False

    def limit(self) -> Account | None:
        return self._limit

    def set_limit(self, account: Account) -> None:
        with self._lock:
            check_limit(self._limit, account, self.totals().units)
            self._limit = account

    def open(self, account: Account) -> Account:
        with self._lock:
            check_account(self._accounts.get(account.name), account, self.totals(account.name).units)
            self._accounts[account.name] = account
            return account

    def accounts(self) -> Iterator[Account]:
        return iter(list(self._accounts.values()))

    def reserve(
        self, session: str, key: str, plan: str, event: str, charge: Charge, holds: While = ALWAYS
    ) -> Entry:
        with self._lock:
            if self._retired:
                raise LedgerError(
                    "this table was saved, and the store's ledger counts from now on; open a session on the saved table"
                )
            mine = self.totals(session).plus(charge.queries, charge.session)
            all_ = self.totals().plus(charge.queries, charge.table)
            holds.check(mine, all_, self._limit)
            if (session, key) in self._keys:
                raise Stale("this was reserved meanwhile")
            refuse_overspending(self._accounts[session], mine.units, charge.session)
            if self._limit is not None:
                refuse_overspending(self._limit, all_.units, charge.table)
            entry = Entry(len(self._entries), session, key, plan, event, charge, None)
            self._entries.append(entry)
            self._keys[session, key] = entry.id
            self._totals[session], self._totals[None] = mine, all_
            return entry

    def record(self, entry: int, answer: str) -> str:
        with self._lock:
            standing = self._entries[entry].answer
            if standing is None:
                self._entries[entry] = replace(self._entries[entry], answer=answer)
                return answer
            return standing

    def find(self, session: str, key: str) -> Entry | None:
        index = self._keys.get((session, key))
        return None if index is None else self._entries[index]

    def totals(self, session: str | None = None) -> Totals:
        return self._totals.get(session, _NOTHING)

    def entries(self, session: str | None = None) -> Iterator[Entry]:
        return (entry for entry in list(self._entries) if session is None or entry.session == session)

    def retire(self, retired: bool = True) -> None:
        """Accept no further charges: another ledger counts for these rows from now on."""
        with self._lock:
            self._retired = retired

    def close(self) -> None:
        """Nothing to let go of."""


def check_limit(standing: Account | None, wanted: Account, spent: int) -> None:
    """Refuse a table cap in another currency than the charges already made, or below them."""
    currency = "zcdp" if standing is None else standing.currency
    if spent and currency != wanted.currency:
        raise LedgerError(
            f"the table's charges are counted in {currency}; a limit in {wanted.currency} cannot be compared "
            f"with them. Set the limit in {currency}, or set it before the first answer."
        )
    if spent > wanted.limit:
        raise BudgetError("the table was already charged more than this limit; set a higher one")


def check_account(standing: Account | None, wanted: Account, spent: int) -> None:
    """Refuse to come back to a session on other terms."""
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
    if spent > wanted.limit:
        raise BudgetError(
            f"session {wanted.name!r} was already charged more than this limit; open it with a larger budget"
        )
