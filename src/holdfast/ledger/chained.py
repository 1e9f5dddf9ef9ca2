"""A ledger in a database: facts chained by SHA-256, anchored outside, committed in groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TypeVar

from holdfast.errors import BudgetError, InputError, LedgerError
from holdfast.ledger.anchor import Anchor, Mark, NoAnchor, anchors_folder
from holdfast.ledger.batch import Batches, Ticket
from holdfast.ledger.commit import Commit, Outcome, Reserve, Survey, Surveyed
from holdfast.ledger.database import Database
from holdfast.ledger.entry import (
    ALWAYS,
    LOST,
    MOST,
    UNCOVERED,
    Account,
    Charge,
    Entry,
    Moment,
    Precondition,
    Stale,
    Totals,
)
from holdfast.ledger.fact import Fact, Value, is_hex
from holdfast.ledger.failpoint import reached
from holdfast.ledger.reader import Reader, history
from holdfast.ledger.writer import Writer
from holdfast.process import Home

Result = TypeVar("Result")
_REFUSALS = (BudgetError, InputError, Stale)
"""What an operation says before it writes; the others of its batch go on."""


class ChainedLedger:
    """See `Ledger`. `SqliteLedger` and `PostgresLedger` say where the tables are.

    Guarantee: what was returned is committed, synced and anchored. A database that does not hold the place
    and head of its anchor is refused, when it is opened and at every write (docs/ledger.md).
    Running totals are kept in each entry, so a charge costs the same however many came before it. Operations
    of threads that come at the same time are committed together.
    """

    def __init__(
        self, database: Database, anchors: Path | str | None, beside: Path | None, *, acknowledged: bool
    ) -> None:
        self._database = database
        # A fork shares the parent's connections and locks, so these keep nobody out.
        self._home = Home("a ledger", "open it again", LedgerError)
        self._reader = Reader(database.read)
        self._batches: Batches[Writer] = Batches(self._commit)
        self._writer: Writer | None = None
        self._moments: tuple[list[object], dict[str, Moment]] = ([], {})
        """Where the ledger stands for some sessions, and at which tip."""
        self._turn = Lock()
        try:
            self.id, place, head = self._reader.tip()
            if not is_hex(self.id):  # it names a file
                raise LedgerError("the ledger was changed: its id is none; put the right one back")
            folder = anchors_folder(anchors, beside)
            first = Mark(place, head, self._reader.totals())
            self._anchor = Anchor.open(folder / f"{self.id}.anchor", first)
            if acknowledged:
                self._acknowledge()
            self._refuse_older(self._reader, self.anchored())
        except BaseException:
            database.close()
            raise

    @property
    def address(self) -> str:
        """Where it is, in words without a password."""
        return self._database.address

    @property
    def anchors(self) -> Path:
        """The folder of its anchor."""
        return self._anchor.path.parent

    @property
    def secret(self) -> bytes:
        return self._reader.secret()

    def limit(self) -> Account | None:
        return self._reader.limit()

    def set_limit(self, account: Account) -> None:
        self._write(lambda writer: writer.set_limit(account))

    def open(self, account: Account) -> Account:
        return self._write(lambda writer: writer.open(account))

    def accounts(self) -> Iterator[Account]:
        return self._reader.accounts()

    def end(self, session: str) -> None:
        self._write(lambda writer: writer.end(session))

    def ended(self) -> frozenset[str]:
        return self._reader.ended()

    def reserve(
        self, session: str, key: str, plan: str, event: str, charge: Charge, holds: Precondition = ALWAYS
    ) -> Entry:
        reached("before reserve")
        return self._write(lambda writer: writer.reserve(session, key, plan, event, charge, holds))

    def record(
        self,
        entry: int,
        answer: str,
        *,
        secret: bool = False,
        after: int | None = None,
        told: int | None = None,
    ) -> str:
        return self._write(lambda writer: writer.record(entry, answer, secret, after, told))

    def commit_all(self, commits: Sequence[Commit]) -> list[Outcome]:
        self._home.check()
        for commit in commits:
            if isinstance(commit, Reserve):
                reached("before reserve")
        tickets = self._batches.put_all([_Put(commit) for commit in commits])
        return [ticket.result if ticket.error is None else ticket.error for ticket in tickets]

    def survey_all(self, surveys: Sequence[Survey]) -> list[Surveyed]:
        self._home.check()
        asked = self._reader.asked([(one.session, one.question) for one in surveys])
        moments = {session: self.moment(session) for session in {one.session for one in surveys}}
        return [Surveyed((one.session, one.question) in asked, moments[one.session]) for one in surveys]

    def find(self, session: str, key: str) -> Entry | None:
        self._home.check()
        return self._reader.find(session, key)

    def firsts(self, session: str, beginnings: Sequence[str]) -> list[Entry]:
        return self._reader.firsts(session, beginnings)

    def totals(self, session: str | None = None) -> Totals:
        return self._reader.totals(session)

    def moment(self, session: str) -> Moment:
        self._home.check()
        _, *tip = self._reader.tip()
        if self._moments[0] != tip:
            self._moments = (tip, {})
        moments = self._moments[1]
        known = moments.get(session)
        if known is None:
            known = moments[session] = self._reader.moment(session)
        return known

    def entries(self, session: str | None = None, *, last: int | None = None) -> Iterator[Entry]:
        return self._reader.entries(session, last=last)

    def answered(self, after: int = 0) -> Iterator[tuple[int, Entry]]:
        self._home.check()
        return self._reader.answered(after)

    @contextmanager
    def turn(self) -> Iterator[None]:
        self._home.check()
        with self._turn, self._database.turn():
            yield

    def course(self, session: str, every: int) -> list[tuple[int, int]]:
        return self._reader.course(session, every)

    def history(self) -> Iterator[Fact]:
        """Every fact in order, from one snapshot."""
        with self._database.snapshot() as stream:
            yield from history(stream)

    def anchored(self) -> Mark:
        """What the anchor remembers."""
        return self._anchor.latest()

    def committing_for(self) -> float:
        """For how many seconds the commit under way has been; 0 if there is none. Waits for nobody."""
        return self._batches.busy_for()

    def moved(self) -> str | None:
        """Where this ledger was moved to, if it was."""
        note = self._reader.note()
        return str(note[1]["target"]) if note is not None and note[0] == "moved" else None

    def arrived(self, source: str) -> bool:
        """Whether the ledger with this id was moved here, completely."""
        note = self._reader.note()
        return note is not None and note[0] == "arrived" and note[1]["source"] == source

    def expect(self, source: str) -> None:
        """Accept no charges until the facts of another ledger have arrived."""
        self._write(lambda writer: _note_once(writer, "arriving", source=source), closed=True)

    def retire(self, target: str, *, unless_charged: bool = False) -> None:
        """Accept no further charges: the ledger at `target` counts from now on."""

        def write(writer: Writer) -> None:
            if unless_charged and writer.total.entries:
                raise LedgerError(
                    f"the ledger {self.address} has answered {writer.total.entries} questions; move it, so that they "
                    "still count: `holdfast ledger move` (docs/ledger.md)"
                )
            _note_once(writer, "moved", target=target)

        self._write(write, closed=True)

    def adopt(self, write: Callable[[Writer], None]) -> None:
        """Write facts of another ledger here, all or none."""
        self._write(write, closed=True)

    def close(self) -> None:
        """Let go, after what is under way; closing twice is allowed."""
        self._batches.close()
        self._database.close()
        self._anchor.close()

    def _write(self, operation: Callable[[Writer], Result], *, closed: bool = False) -> Result:
        """Commit an operation; on a ledger that counts no longer (`closed`) only where that is its purpose."""
        self._home.check()
        return self._batches.put(operation if closed else _open_only(operation))

    def _commit(self, tickets: list[Ticket[Writer]]) -> None:
        """One transaction for all operations that wait; each succeeds or fails by itself.

        An operation is refused before it writes. Should one break later, its rows are taken back with those of all
        others, and each has a transaction of its own.
        """
        if self._transaction(tickets):
            return
        for ticket in tickets:
            try:
                self._transaction([ticket])
            except LedgerError as error:
                ticket.error = error

    def _transaction(self, tickets: list[Ticket[Writer]]) -> bool:
        """Run operations and commit them; False if one of them broke, and nothing was committed.

        The anchor is held all the while. It comes first: processes queue up for it, where SQLite would poll.
        """
        with self._anchor.held():
            rows, known, self._writer = self._database.begin(), self._writer, None
            try:
                writer = known if known is not None and known.goes_on() else Writer(rows)
                mark = self._anchor.read()
                self._refuse_older(writer, mark)
                if not _all_attempted(tickets, writer):
                    self._database.rollback()
                    return False
                reached("inside the transaction")
                self._database.commit()
                reached("after commit")
                if writer.place != mark.place:
                    self._anchor.advance(Mark(writer.place, writer.last, writer.total))
                self._writer = writer
                reached("after anchor")
                return True
            except BaseException:
                self._database.rollback()
                raise

    def _refuse_older(self, reader: Reader, mark: Mark) -> None:
        """LedgerError unless the anchor's place and head are in this database."""
        ledger, place, head = (
            (reader.ledger, reader.begun, reader.last) if isinstance(reader, Writer) else reader.tip()
        )
        at_mark = (
            head if mark.place == place else reader.head(ledger, mark.place) if mark.place < place else None
        )
        if at_mark != mark.head:
            raise LedgerError(
                f"this ledger is an older copy or went another way: its anchor {self._anchor.path} has seen "
                f"place {mark.place}, and this copy has {place} without it. Put the current ledger back; "
                "or, if answers were lost for good, run `holdfast ledger acknowledge` (docs/ledger.md)"
            )

    def _acknowledge(self) -> None:
        """Go on from this copy: charge what was lost, and note it in the chain; see `acknowledge`."""
        with self._anchor.held():
            try:
                writer, mark = Writer(self._database.begin()), self._last_mark()
                if (
                    mark is not None
                    and mark.place <= writer.place
                    and writer.head(writer.ledger, mark.place) == mark.head
                ):
                    return
                _charge_what_was_lost(writer, mark)
                writer.sign()
                self._database.commit()
                self._anchor.renew(Mark(writer.place, writer.last, writer.total))
            finally:
                self._database.rollback()

    def _last_mark(self) -> Mark | None:
        """What the anchor remembers, if it is one."""
        try:
            return self._anchor.read()
        except NoAnchor:
            return None


class _Put:
    """Put a commit, unless another ledger counts for these rows."""

    __slots__ = ("commit",)

    def __init__(self, commit: Commit) -> None:
        self.commit = commit

    def __call__(self, writer: Writer) -> Entry | str:
        writer.refuse_unless_open()
        return self.commit.put(writer)


def _all_attempted(tickets: list[Ticket[Writer]], writer: Writer) -> bool:
    """Run operations, and sign what they wrote; False if one of them broke, or if it cannot be said which did."""
    try:
        if len(tickets) > 1:
            writer.expect([put.commit for ticket in tickets if isinstance(put := ticket.operation, _Put)])
        for ticket in tickets:
            place = writer.place
            if not ticket.attempt(writer) and not (
                writer.place == place and isinstance(ticket.error, _REFUSALS)
            ):
                return False
        writer.sign()
        return True
    except LedgerError:
        if len(tickets) == 1:
            raise
        return False


def _open_only(operation: Callable[[Writer], Result]) -> Callable[[Writer], Result]:
    """The same, unless another ledger counts for these rows."""

    def checked(writer: Writer) -> Result:
        writer.refuse_unless_open()
        return operation(writer)

    return checked


def _note_once(writer: Writer, kind: str, **fields: Value) -> None:
    """A second call does nothing; another note on a closed ledger is refused."""
    if writer.last_note != (kind, fields):
        writer.refuse_unless_open()
        writer.write_note(kind, **fields)


def _charge_what_was_lost(writer: Writer, mark: Mark | None) -> None:
    """Count as spent all that the anchor has seen, on top of what this copy has; and all that each session had
    left, because the anchor does not know which of them was charged.

    What both have is counted twice. That this copy is the past of what the anchor saw, and was not charged
    elsewhere since, cannot be proved: a hash says nothing of the heads before it, and those are lost.
    """
    cap = writer.cap
    if mark is None:
        units, queries = (0 if cap is None else cap.limit - writer.total.units), 0
    else:
        units, queries = mark.totals.units, mark.totals.answers
    standing = list(writer.accounts())
    lost_place, lost_head = (-1, "") if mark is None else (mark.place, mark.head)
    writer.write_note(
        "restored", lost_place=lost_place, lost_head=lost_head, lost_units=units, lost_queries=queries
    )
    key = f"restored {writer.place}"
    for account in standing:
        if account.name != LOST:
            spent = writer.totals(account.name)
            left, delta = max(0, account.limit - spent.units), max(0, account.delta - spent.delta)
            writer.charge(account.name, key, LOST, "{}", Charge(left, 0, 0, UNCOVERED, delta))
    delta = 0 if cap is None else max(0, cap.delta - writer.total.delta)
    writer.open(Account(LOST, "zcdp" if cap is None else cap.currency, 0, delta=MOST))
    writer.charge(LOST, key, LOST, "{}", Charge(0, max(0, units), max(0, queries), UNCOVERED, delta))
