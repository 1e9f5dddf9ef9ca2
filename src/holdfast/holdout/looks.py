"""The looks at one set of labels, counted in a ledger: a team is an account, all teams together are the cap."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from holdfast.desk.replayed import noted, refuse_to_replay
from holdfast.errors import BudgetError, InputError, LedgerError
from holdfast.formats import FORMATS, check_format
from holdfast.holdout.fingerprint import fingerprint
from holdfast.holdout.labels import Labels
from holdfast.holdout.look_meter import Charges, Lost, Meter, told_from_json
from holdfast.holdout.outcome import Outcome
from holdfast.holdout.refusal import overspent, used_up
from holdfast.ledger import (
    LOOKS,
    Account,
    ChainedLedger,
    Charge,
    Entry,
    Ledger,
    MemoryLedger,
    Precondition,
    Stale,
    open_ledger,
    verify,
)
from holdfast.ledger.entry import LOST
from holdfast.ledger.open import LEDGER_FILE

Place = Ledger | str | Path | None
"""Where looks are counted: a ledger, a file, a folder, "postgresql://…#name", or (None) the memory of this process."""

_HOLDOUT, _OPENING, _TEAM = "the holdout", "opening", "team "
_NOTE = "holdout's note"


@dataclass(frozen=True, slots=True)
class Transcript:
    """What the answers so far come to: the place of the last one in the ledger, how many looks were answered (those
    of a crash released nothing), how many guesses failed, the secret state, and how much was told."""

    place: int = 0
    looks: int = 0
    failures: int = 0
    state: str | None = None
    charged: Charges = ()
    """What the meter says, where there is one."""
    last: Mapping[str, float] = field(default_factory=dict)
    """The last value that was told of each metric."""

    def after(self, place: int, entry: Entry, meter: Meter | None) -> Transcript:
        """The same with one more answer."""
        told = json.loads(str(entry.answer))
        state = self.state if told["state"] is None else told["state"]
        charged = self.charged
        for kept in told.get("told", ()) if meter is not None else ():
            assert meter is not None
            charged = meter.after(charged, told_from_json(kept))
        last = self.last
        if "answer" in told:
            last = {**last, metric_of(_question(entry)): float(told["answer"]["value"])}
        looks, failures = self.looks + entry.charge.queries, self.failures + (told.get("failed") or 0)
        return Transcript(place, looks, failures, state, charged, last)


class Looks:
    """The record of looks at one set of labels.

    Guarantee: that of its ledger, in the currency "looks": a charge is committed before a label is read, and no
    interleaving of threads, processes or hosts passes the cap of all looks or of a team; what was answered first is
    what everybody gets. A ledger counts the looks at one set of labels, on the terms of its first opening: the labels'
    digest and the first secret state are a secret record there, the terms those of an account.
    """

    def __init__(self, labels: Labels, place: Place, anchors: Path | str | None = None) -> None:
        self._labels = None if place is None else _identity(labels)
        self._own = place is None or isinstance(place, str | Path)
        self.ledger: Ledger
        if place is None:
            self.ledger = MemoryLedger()
        elif isinstance(place, str | Path):
            self.ledger = open_looks(labels, place, anchors)
        else:
            self.ledger = place
        self._most = 0
        self._limits: dict[str, int] = {}
        self._transcript, self._lock = Transcript(), Lock()
        self.meter: Meter | None = None

    def agree(
        self,
        kind: str,
        terms: Mapping[str, Any] | None,
        state: Callable[[dict[str, Any]], str | None] = lambda terms: None,
        **note: str | None,
    ) -> dict[str, Any]:
        """The terms that stand: the first ones. LedgerError for others, or for other labels.

        `state` draws the first secret state; `note` is what else is remembered of the first opening.
        """
        opening = self.ledger.find(_HOLDOUT, _OPENING)
        if opening is not None and opening.answer is not None:
            self._refuse_other_labels(opening.answer)
        wanted = None if terms is None else json.dumps({"kind": kind, **terms}, sort_keys=True)
        standing = self._terms()
        if standing is None:
            if wanted is None:
                raise InputError(
                    "expected queries=, how many looks in all, got none; a holdout needs it when it is opened first"
                )
            standing = self._promised(wanted)
        if wanted not in (None, standing):
            raise LedgerError(
                f"this holdout was opened before on other terms, {json.loads(standing)['queries']:,} looks in all, "
                "and its looks count on those; open it on the same terms (queries= may be left out), or collect a "
                "fresh holdout"
            )
        found: dict[str, Any] = json.loads(standing)
        if found["kind"] != kind:
            raise LedgerError("these labels are behind a Ladder; open them as that Leaderboard")
        self._most = found["queries"]
        cap = Account("all looks", LOOKS, self._most)
        if self.ledger.limit() != cap:
            self.ledger.set_limit(cap)
        entry = opening or self._opening(note)
        if entry.answer is None:
            refuse_to_replay(entry)
            first = json.dumps({"labels": self._labels, "state": state(found)})
            self._refuse_other_labels(self.ledger.record(entry.id, first, secret=True))
        return found | {"note": json.loads(entry.plan)}

    def abandon(self) -> None:
        """Close the ledger, if it was opened here: the opening has failed."""
        if self._own:
            self.ledger.close()

    @property
    def used(self) -> int:
        """Looks charged so far, answered or not."""
        return self.ledger.moment(_HOLDOUT).table.units

    def used_by(self, team: str) -> int:
        """Looks charged to a team."""
        return self.ledger.moment(_TEAM + team).session.units

    @property
    def left(self) -> int:
        """Looks that may still be charged."""
        return max(0, self._most - self.used)

    @property
    def lost(self) -> int:
        """How many looks were acknowledged as spent, their answers lost with an older copy of the ledger."""
        found = self.ledger.totals(LOST)
        return max(found.answers, found.entries)

    def count_on(self, meter: Meter) -> None:
        """Let this meter say how much the answers told; before the first transcript is read."""
        lost, self.meter = self.lost, meter
        charged = meter.after(meter.nothing, Lost(lost)) if lost else meter.nothing
        self._transcript = Transcript(charged=charged)

    def find(self, team: str, key: str) -> Entry | None:
        """The look that a team was charged under a key."""
        return self.ledger.find(_TEAM + team, key)

    def charge(
        self, team: str, question: str, looks: int, *, team_most: int | None = None, key: str | None = None
    ) -> Entry:
        """Commit a charge; BudgetError if the team or all have too few left. A known key costs nothing.

        With a meter the look gets its place here, beyond all that were given; what was told more than planned takes
        further looks from all, not from the team. The charge fails if another look was charged since it was planned.
        """
        name = _TEAM + team
        while True:
            known = None if key is None else self.find(team, key)
            if known is not None:
                if _question(known) != question:
                    raise InputError(f"expected a new key, got {key!r} of another question; choose a new one")
                if known.answer is None:
                    refuse_to_replay(known)
                return known
            charged = None if self.meter is None else self.transcript().charged
            moment = self.ledger.moment(name)
            used, taken = moment.session.units, moment.table.units
            left = max(0, self._most - taken)
            team_left = None if team_most is None else team_most - used
            if looks > left or (team_left is not None and looks > team_left):
                raise overspent(self._most, looks, team, team_left, left)
            place = self._place(taken, looks, charged)
            plan = noted(json.dumps({"question": question, "place": place}))
            charge = Charge(looks, looks + (place - 1 - taken), looks)
            as_planned = None if self.meter is None else moment.table.answers + looks
            holds = Precondition(session_answers=team_most, table_answers=as_planned)
            try:
                if self._limits.get(name, -1) < used + looks:
                    limit = max(self._most, used + left) if team_most is None else team_most
                    self._limits[name] = self.ledger.open(Account(name, LOOKS, limit)).limit
                return self.ledger.reserve(
                    name, secrets.token_hex(16) if key is None else key, plan, "{}", charge, holds
                )
            except Stale:
                continue
            except BudgetError:  # others were quicker, or another board gave the team another limit
                self._limits.pop(name, None)

    def _place(self, taken: int, looks: int, charged: Charges | None) -> int:
        """The place of the next look, of so many that are taken; BudgetError where the meter has none for it."""
        if self.meter is None or charged is None:
            return taken + 1
        place = self.meter.next_place(charged, taken)
        left = 0 if place is None else self._most - place + 1
        if place is not None and looks <= left:
            return place
        if self.lost:  # they go on, with wider intervals
            return taken + 1
        raise used_up(self.meter.plan, looks, left)

    def settle(self, look: Entry, outcome: Outcome, *, after: int | None = None) -> Outcome:
        """Commit the one outcome of a look; returns the one that stands. One with a secret state is a secret record.
        With `after`, Stale if another look was answered beyond that place."""
        text = outcome.to_json()
        told = self.ledger.record(look.id, text, secret=outcome.state is not None, after=after)
        return outcome if told == text else Outcome.from_json(told)

    def settle_in_turn(self, look: Entry, outcome: Callable[[Transcript], Outcome]) -> Outcome:
        """The same for an outcome that depends on all before it. Call it in a `turn` of the ledger."""
        while True:
            seen = self.transcript()
            try:
                return self.settle(look, outcome(seen), after=seen.place)
            except Stale:  # the turn was lost with its connection; nobody has seen this outcome
                continue

    def transcript(self) -> Transcript:
        """What the answers so far come to; reads those that are new."""
        with self._lock:
            for place, entry in self.ledger.answered(self._transcript.place):
                self._transcript = self._transcript.after(place, entry, self.meter)
            return self._transcript

    def outcomes(
        self, after: int = 0, question: str | None = None
    ) -> Iterator[tuple[int, int, str, Outcome]]:
        """(place, number of the look, team, outcome) of every answer beyond a place, in the order given; to one
        question if it is named."""
        for place, entry in self.ledger.answered(after):
            if entry.session != _HOLDOUT and question in (None, _question(entry)):
                yield place, entry.id, entry.session.removeprefix(_TEAM), Outcome.from_json(str(entry.answer))

    def close(self) -> None:
        """Let go of the ledger."""
        self.ledger.close()

    def _terms(self) -> str | None:
        return next((account.terms for account in self.ledger.accounts() if account.name == _HOLDOUT), None)

    def _promised(self, terms: str) -> str:
        """Make these the terms, if nobody was quicker; those that stand."""
        try:
            return self.ledger.open(Account(_HOLDOUT, LOOKS, 0, terms)).terms
        except LedgerError:
            standing = self._terms()
            if standing is None:
                raise
            return standing

    def _opening(self, note: Mapping[str, str | None]) -> Entry:
        try:
            plan = noted(json.dumps({"question": _OPENING, **note}))
            return self.ledger.reserve(_HOLDOUT, _OPENING, plan, "{}", Charge(0, 0, 0))
        except Stale:
            found = self.ledger.find(_HOLDOUT, _OPENING)
            assert found is not None
            return found

    def _refuse_other_labels(self, opening: str) -> None:
        if json.loads(opening)["labels"] != self._labels:
            raise LedgerError(
                "this ledger counts the looks at other labels or units; give these one of their own, or the right ones"
            )


def _identity(labels: Labels) -> str:
    """Which holdout this is: its labels, and whose they are."""
    found = fingerprint(labels.values)
    return found if labels.units is None else labels.units.digest(found)


def open_looks(
    labels: Labels, place: str | Path, anchors: Path | str | None = None, *, name: str | None = None
) -> ChainedLedger:
    """The ledger at a place, made if new, verified from its first fact on.

    Guarantee: a ledger that these labels had here and that is gone is missed: a note beside its anchor knows its id.
    """
    if not str(place).startswith(("postgresql://", "postgres://")):
        Path(place).parent.mkdir(parents=True, exist_ok=True)
    ledger = open_ledger(place, name=name, anchors=anchors)
    try:
        _for_the_owner_only(place)
        _refuse_another(ledger, fingerprint(labels.values))
        verify(ledger)
    except BaseException:
        ledger.close()
        raise
    return ledger


def _for_the_owner_only(place: str | Path) -> None:
    """Its file can be read and written by its owner alone: answers are released, secret records are not."""
    path = Path(place)
    path = path / LEDGER_FILE if path.is_dir() else path
    if path.is_file() and path.stat().st_uid == os.getuid():
        path.chmod(0o600)


def _refuse_another(ledger: ChainedLedger, labels: str) -> None:
    """LedgerError if another ledger stood in this place for these labels; a fresh one would be fresh looks."""
    name = hashlib.sha256(f"{ledger.address} {labels}".encode()).hexdigest()[:32]
    note = ledger.anchors / f"{name}.looks"
    known = note.read_text() if note.exists() else ""
    if not known:
        note.write_text(f"{FORMATS[_NOTE]} {ledger.id}")
        return
    version, _, standing = known.partition(" ")
    check_format(_NOTE, int(version) if version.isdecimal() else None, note)
    if standing != ledger.id:
        raise LedgerError(
            "the ledger of this holdout is missing, and another one is in its place; put the right one back, or "
            "collect a fresh holdout"
        )


def metric_of(question: str) -> str:
    """What a check and a score ask about alike."""
    return question.removeprefix("check ")


def place_of(entry: Entry) -> int:
    """The place that a look was given with its charge."""
    return int(json.loads(entry.plan)["place"])


def _question(entry: Entry) -> str:
    return str(json.loads(entry.plan)["question"])
