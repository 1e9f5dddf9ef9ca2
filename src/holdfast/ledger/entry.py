"""The facts that a ledger keeps."""

from __future__ import annotations

import json
from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Any

from holdfast.errors import BudgetError, HoldfastError, InputError, LedgerError

UNIT = 1e-9
"""One unit of a charge: a billionth in the currency of its account."""

DELTA_UNIT = 1e-18
"""One unit of delta."""

UNCOVERED = MOST = 2**63 - 1
"""The most that a ledger can count; as information: more than any, because no bound of it is known."""

LOOKS = "looks"
"""The currency of holdouts and boards, whose unit is one whole look. It is no notion of privacy, and adds to none."""

BEGINNING = 33
"""How many letters of a key say what is asked, and by which kind of accuracy; keys that begin alike differ in how
exactly, the most exact first."""

QUESTION = BEGINNING - 1
"""How many of them say what is asked, whatever kind of accuracy."""

LOST = "answers lost with an older copy"
"""The account that bears what was charged after a backup had been made that came back."""

_REPLAYED = '{"replayed": true, '


def as_replayed(plan: str) -> str:
    """The same plan (a JSON object with something in it), which says that its noise repeats itself: a test's."""
    return _REPLAYED + plan[1:]


def is_replayed(plan: str) -> bool:
    """Whether a plan says so; what was answered under it is not private."""
    return plan.startswith(_REPLAYED)


@dataclass(frozen=True, slots=True)
class Account:
    """A budget that charges are made against: a session's, or the whole table's.

    `currency` names what the units count: a notion of privacy ("pure", "zcdp", "gdp") or LOOKS; `limit` is in units.
    `terms` is what else was promised when it was opened (JSON text); it cannot change afterwards. Nor can what a share
    of the meter says: `information` is the most that the account may tell of the rows, `table_information` the most
    that all together may, this account's maximum included, for its plan to hold. `delta` is how much of delta releases
    with a delta of their own may use up, in units of 1e-18.
    """

    name: str
    currency: str
    limit: int
    terms: str = ""
    information: int = UNCOVERED
    table_information: int = UNCOVERED
    delta: int = 0

    @property
    def is_share(self) -> bool:
        """Whether it has a maximum of information."""
        return self.information < UNCOVERED

    def __post_init__(self) -> None:
        if not _is_count(self.limit) or not _is_count(self.delta) or max(self.limit, self.delta) > MOST:
            raise InputError(
                f"expected a budget of 0 to {MOST * UNIT:.3g}, in whole billionths, got another number; "
                "give a smaller budget"
            )


@dataclass(frozen=True, slots=True)
class Charge:
    """What one answer costs: in the session's own currency, and in the table's; how many numbers with an interval it
    promises (`queries`), which the intervals of all answers have to share; and how much it tells of the rows
    (`information`, see `holdfast.validity.told`), which later intervals for the population pay for; and a delta of its
    own (`delta`, in units of 1e-18), which both count alike."""

    session: int
    table: int
    queries: int = 1
    information: int = 0
    delta: int = 0

    def __post_init__(self) -> None:
        five = self.session, self.table, self.queries, self.information, self.delta
        if not (
            all(type(number) is int for number in five) and min(five) >= 0 and max(five[3:]) <= UNCOVERED
        ):
            raise InputError(
                "expected a charge in whole units, none below 0, got another number; round it up"
            )


@dataclass(frozen=True, slots=True)
class Totals:
    """How many reservations a session (or the whole table) has, how many numbers they promised, what they cost, and
    how much they told; and the deltas of their own."""

    entries: int = 0
    answers: int = 0
    units: int = 0
    information: int = 0
    delta: int = 0

    def of_session(self, charge: Charge) -> Totals:
        """After one more charge, as its session counts."""
        return self._plus(charge, charge.session)

    def of_table(self, charge: Charge) -> Totals:
        """After one more charge, as the table counts."""
        return self._plus(charge, charge.table)

    def _plus(self, charge: Charge, units: int) -> Totals:
        told, delta = (
            min(self.information + charge.information, UNCOVERED),
            min(self.delta + charge.delta, MOST),
        )
        return Totals(self.entries + 1, self.answers + charge.queries, self.units + units, told, delta)

    def plus(self, others: Totals) -> Totals:
        """Both together."""
        return Totals(
            self.entries + others.entries,
            self.answers + others.answers,
            self.units + others.units,
            min(self.information + others.information, UNCOVERED),
            min(self.delta + others.delta, MOST),
        )

    def spared(self, information: int) -> Totals:
        """After an answer that told so much less than was reserved for it. What is uncovered stays so."""
        return self if not information else replace(self, information=self.information - information)

    def sparing(self, reserved: int, told: int | None) -> int:
        """How much less an answer told than was reserved for it; nothing where no bound of it is known."""
        return 0 if told is None or self.information >= UNCOVERED else max(0, reserved - told)


@dataclass(frozen=True, slots=True)
class Precondition:
    """How long a plan holds: while the totals, its own charge included, are at most these, what was told before it is
    at most `table_information` (what it tells itself does not count), and (`fresh`) nobody was charged before.
    `currency` is the table's, in which the charge was counted. `most_entries` is how many reservations its session may
    have at all. `least_answers` is how many answers of the session it needs, its own included: a plan that expected
    charges which were not committed after all is no plan for an earlier place."""

    session_answers: int | None = None
    table_answers: int | None = None
    table_units: int | None = None
    table_information: int | None = None
    fresh: bool = False
    currency: str | None = None
    most_entries: int | None = None
    least_answers: int | None = None

    def check(self, session: Totals, table: Totals, cap: Account | None = None, told: int = 0) -> None:
        """Raise Stale if it holds no longer; LedgerError if the table is counted in another currency now."""
        if cap is not None and self.currency not in (None, cap.currency):
            raise LedgerError(
                f"the table's limit is counted in {cap.currency} now, not in {self.currency}; open the session again"
            )
        if not self._holds(session.answers, table.answers, table.units, told, table.entries):
            raise Stale("the ledger has moved on since this was planned")

    def after(self, moment: Moment, charge: Charge) -> bool:
        """Whether it would hold if this charge were made at this moment, whatever the cap."""
        mine, all_ = moment.session, moment.table
        answers = mine.answers + charge.queries, all_.answers + charge.queries
        return self._holds(*answers, all_.units + charge.table, all_.information, all_.entries + 1)

    def _holds(self, session: int, table: int, units: int, told: int, entries: int) -> bool:
        """By the answers of the session and of the table, its units, what was told before, and the reservations."""
        return not (
            (self.session_answers is not None and session > self.session_answers)
            or (self.least_answers is not None and session < self.least_answers)
            or (self.table_answers is not None and table > self.table_answers)
            or (self.table_units is not None and units > self.table_units)
            or (self.table_information is not None and told > self.table_information)
            or (self.fresh and entries > 1)
        )


ALWAYS = Precondition()


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a ledger stands for one session: its totals, the whole table's, and the table's cap."""

    session: Totals
    table: Totals
    cap: Account | None = None

    def after(self, charge: Charge) -> Moment:
        """Where it will stand after a charge of this session's."""
        return Moment(
            self.session.of_session(charge),
            self.table.of_table(charge),
            self.cap,
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """One reservation. `plan` is the JSON text that suffices to compute the answer once more; `answer` is
    the JSON text of the one answer, or None while it is paid for and not yet computed. `secret` says that
    the answer holds what must not leave (a noisy threshold). `spared` is how much less the answer told of the rows than
    was reserved for it."""

    id: int
    session: str
    key: str
    plan: str
    event: str
    charge: Charge
    answer: str | None
    secret: bool = False
    spared: int = 0

    @property
    def kind(self) -> str:
        """What it is a charge for: "statistic", "sample", "weights" and so on."""
        return str(json.loads(self.plan).get("kind", ""))

    @property
    def note(self) -> Any:
        """What the release has to know when it goes on (JSON); the words of a plan are for people."""
        return json.loads(self.plan)["note"]


class Stale(HoldfastError):
    """The ledger has moved on since an answer was planned, or has that answer; plan again. Never reaches the
    user."""


def refuse_overspending(account: Account | None, after: int, cost: int) -> None:
    """Raise BudgetError if the total `after` a charge of `cost` units would pass the account's limit; without
    an account, if it would be more than can be counted.

    Guarantee: integers only, so no charge is lost to rounding and no slack is granted.
    """
    if after > (MOST if account is None else account.limit):
        account = account or Account("the table", "its currency", MOST)
        unit = 1 if account.currency == LOOKS else UNIT
        remaining = (account.limit - after + cost) * unit
        requested = min(cost, 10**300) * unit  # a float has no room for more
        raise BudgetError(
            f"this answer costs {requested:.6g} and {account.name} has {remaining:.6g} left "
            f"(in {account.currency}); ask for a wider answer or raise the limit",
            requested=requested,
            remaining=remaining,
        )


def refuse_delta(account: Account | None, after: Totals, cost: int) -> None:
    """Raise BudgetError if a charge with a delta of its own would pass what the account keeps for such charges."""
    if cost and account is not None and after.delta > account.delta:
        left = (account.delta - after.delta + cost) * DELTA_UNIT
        raise BudgetError(
            f"this release has a delta of {cost * DELTA_UNIT:.3g} of its own, and {account.name} keeps "
            f"{left:.3g} for such releases; open it with delta= and a larger keys_delta=",
            requested=cost * DELTA_UNIT,
            remaining=left,
        )


def refuse_full(most: int | None, entries: int) -> None:
    """Raise BudgetError if a session would have more reservations than it may."""
    if most is not None and entries > most:
        raise BudgetError(
            f"you have asked as many questions of this table as anybody may ({most:,}); ask the owner for a larger "
            "most_entries",
            requested=1,
            remaining=0,
        )


def refuse_closed(session: str, closed: Container[str]) -> None:
    """Raise BudgetError for a charge to a session that was closed: what it had left is given up."""
    if session in closed:
        raise BudgetError(
            f"expected an open session, got {session!r}, which was closed; what it told stays, and another can be "
            "opened",
            remaining=0.0,
        )


def refuse_mixture(account: Account, cap: Account | None) -> None:
    """LedgerError if one of them counts looks and the other privacy (as a table does that has no cap yet)."""
    if (account.currency == LOOKS) != (cap is not None and cap.currency == LOOKS):
        counted = "privacy" if account.currency == LOOKS else "looks at a holdout"
        raise LedgerError(
            f"expected a ledger that counts {account.currency}, got one that counts {counted}; a holdout's looks and "
            "a table's privacy need a ledger each"
        )


def _is_count(number: object) -> bool:
    """Whether this is a whole number from 0; True, NaN and 1.0 are none."""
    return type(number) is int and number >= 0
