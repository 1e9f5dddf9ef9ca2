"""What a ledger is asked to commit, or to say, as a value: to be put now, later, or together with others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.ledger.entry import ALWAYS, Charge, Entry, Moment, Precondition

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


@dataclass(frozen=True, slots=True)
class Survey:
    """Whether a session was asked a question before (its keys begin with `question`), and where the ledger stands."""

    session: str
    question: str

    def put(self, ledger: Ledger) -> Surveyed:
        return ledger.survey_all([self])[0]


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What a ledger says to a survey. With `expected` the moment counts charges that others are about to commit, and
    what is refused by it may be had after all."""

    asked: bool
    moment: Moment
    expected: bool = False


Commit = Reserve | Record
Outcome = Entry | str | Surveyed | Exception
"""What a ledger says to a commit or a survey: what it returns, or raises."""


def outcome(asked: Commit | Survey, ledger: Ledger) -> Outcome:
    """Put one commit or survey."""
    try:
        return asked.put(ledger)
    except Exception as error:
        return error
