"""What every ledger can do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from holdfast.ledger.anchor import Mark
from holdfast.ledger.commit import Commit, Outcome, Survey, Surveyed
from holdfast.ledger.entry import ALWAYS, Account, Charge, Entry, Moment, Precondition, Totals
from holdfast.ledger.fact import Fact


class Ledger(Protocol):
    """A record of charges that many sessions, threads and (if it is a file) processes share.

    Guarantee: `reserve` is atomic. It commits the charge, or raises and changes nothing; no interleaving lets
    the sum of charges pass a limit. What `record` stored first for a reservation is what everybody gets.
    """

    @property
    def secret(self) -> bytes:
        """Random bytes, made with the ledger and carried with it: by them the rows are chosen that are left out where
        a unit has more than its bound. They leave it in no export and no answer."""

    def limit(self) -> Account | None:
        """The cap over the whole table, or None while the owner has not set one."""

    def set_limit(self, account: Account) -> None:
        """Set the table's cap. Refuses (BudgetError) one that is below what was already charged."""

    def open(self, account: Account) -> Account:
        """Open a session's account, or come back to it: the same name must have the same currency.
        A different limit replaces the old one, unless more than it was already charged. Units are set aside by the
        first account or never, and where they are, every other says which part it is about; see `check_part`."""

    def accounts(self) -> Iterator[Account]:
        """Every session's account, as it stands."""

    def end(self, session: str) -> None:
        """Close a session's account, for ever: it is charged no more, and has no share of the meter any more beyond
        what it told. What it was charged for stays, and can still be recorded. A second time does nothing."""

    def ended(self) -> frozenset[str]:
        """The names of the accounts that are closed."""

    def reserve(
        self, session: str, key: str, plan: str, event: str, charge: Charge, holds: Precondition = ALWAYS
    ) -> Entry:
        """Commit a charge, if the plan still holds and the key is new; Stale otherwise."""

    def record(
        self,
        entry: int,
        answer: str,
        *,
        secret: bool = False,
        after: int | None = None,
        told: int | None = None,
    ) -> str:
        """Commit the answer of a reservation, once; returns the answer that stands. A `secret` one (a noisy
        threshold) is left out of exports. With `after`, Stale unless the ledger's last answer stands at this place,
        as `answered` tells it: for answers that depend on all before. `told` is how much the answer tells of the rows,
        where that is read off the answer: what was reserved above it is free again, in the same transaction."""

    def commit_all(self, commits: Sequence[Commit]) -> list[Outcome]:
        """Put several commits, in their order and together with what others ask meanwhile: what each `reserve` or
        `record` returned or raised."""

    def survey_all(self, surveys: Sequence[Survey]) -> list[Surveyed]:
        """What each survey asks, all of them in few looks."""

    def find(self, session: str, key: str) -> Entry | None:
        """The reservation that this session made under this key, if any."""

    def firsts(self, session: str, beginnings: Sequence[str]) -> list[Entry]:
        """For each beginning of keys (of `BEGINNING` letters) the reservation with the least longer key, if there is
        one; in any order. In one look, however many there are."""

    def totals(self, session: str | None = None) -> Totals:
        """What was charged so far: to a session in its currency, or (None) to the table in the table's."""

    def moment(self, session: str) -> Moment:
        """Where a session and the table stand, at one moment."""

    def entries(self, session: str | None = None, *, last: int | None = None) -> Iterator[Entry]:
        """All reservations, oldest first, or the last so many; read a thousand at a time."""

    def answered(self, after: int = 0) -> Iterator[tuple[int, Entry]]:
        """Reservations that have an answer, in the order of the answers, each with its answer's place; from beyond a
        place on."""

    def turn(self) -> AbstractContextManager[None]:
        """One at a time over all threads, processes and hosts, for answers that depend on all before. Not to be
        nested. Whoever dies, or loses the server, loses the turn: `record(after=...)` notices."""

    def course(self, session: str, every: int) -> list[tuple[int, int]]:
        """How much was charged to a session after `every`, twice `every`, … reservations: (how many, units)."""

    def history(self) -> Iterator[Fact]:
        """Every fact, chained, from the ledger's id to its tip; see `holdfast.ledger.fact`."""

    def anchored(self) -> Mark | None:
        """What its anchor remembers; None if it has no anchor."""

    def close(self) -> None:
        """Let go of the file, if there is one."""
