"""What a ledger is asked to commit, as a value: to be put now, later, or together with others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.ledger.entry import ALWAYS, Charge, Entry, While

if TYPE_CHECKING:
    from holdfast.ledger.protocol import Ledger


@dataclass(frozen=True, slots=True)
class Reserve:
    """A wish to commit a charge; see `Ledger.reserve`."""

    session: str
    key: str
    plan: str
    event: str
    charge: Charge
    holds: While = ALWAYS

    def put(self, ledger: Ledger) -> Entry:
        return ledger.reserve(self.session, self.key, self.plan, self.event, self.charge, self.holds)


@dataclass(frozen=True, slots=True)
class Record:
    """A wish to commit the answer of a reservation; see `Ledger.record`."""

    entry: int
    answer: str
    secret: bool = False

    def put(self, ledger: Ledger) -> str:
        return ledger.record(self.entry, self.answer, secret=self.secret)


Wish = Reserve | Record
Outcome = Entry | str | Exception
"""What a ledger says to a wish: what it returns, or raises."""


def outcome(wish: Wish, ledger: Ledger) -> Outcome:
    """Put one wish."""
    try:
        return wish.put(ledger)
    except Exception as error:
        return error
