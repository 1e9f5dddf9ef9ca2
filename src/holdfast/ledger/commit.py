"""What a ledger is asked to commit, as a value: to be put now, later, or together with others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.ledger.entry import ALWAYS, Charge, Entry, Precondition

if TYPE_CHECKING:
    from holdfast.ledger.protocol import Ledger
    from holdfast.ledger.writer import Writer


@dataclass(frozen=True, slots=True)
class Reserve:
    """A charge to commit; see `Ledger.reserve`."""

    session: str
    key: str
    plan: str
    event: str
    charge: Charge
    holds: Precondition = ALWAYS

    def put(self, ledger: Ledger | Writer) -> Entry:
        return ledger.reserve(self.session, self.key, self.plan, self.event, self.charge, self.holds)


@dataclass(frozen=True, slots=True)
class Record:
    """The answer of a reservation, to commit; see `Ledger.record`."""

    entry: int
    answer: str
    secret: bool = False
    told: int | None = None

    def put(self, ledger: Ledger | Writer) -> str:
        return ledger.record(self.entry, self.answer, secret=self.secret, told=self.told)


Commit = Reserve | Record
Outcome = Entry | str | Exception
"""What a ledger says to a commit: what it returns, or raises."""


def outcome(commit: Commit, ledger: Ledger) -> Outcome:
    """Put one commit."""
    try:
        return commit.put(ledger)
    except Exception as error:
        return error
