"""What was done to the catalog, chained by SHA-256 and anchored outside, as a ledger's facts are."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from holdfast.errors import LedgerError
from holdfast.ledger.anchor import Anchor, Mark, NoAnchor, anchors_folder
from holdfast.ledger.entry import Totals
from holdfast.ledger.fact import canonical, genesis, link
from holdfast.service.gateway_database import WAIT_SECONDS, Database, Remembered

TABLES = (
    "CREATE TABLE IF NOT EXISTS deeds (place BIGINT PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL,"
    " head TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS deeds_tip (one BIGINT PRIMARY KEY, catalog TEXT NOT NULL, place BIGINT NOT NULL,"
    " head TEXT NOT NULL)",
)


@dataclass(frozen=True, slots=True)
class Deed:
    """One change: `fields` say what, about whom, by whom (an owner's id, or nothing for the operator) and when."""

    place: int
    kind: str
    fields: dict[str, Any]
    head: str


class Deeds:
    """The chain of a catalog's changes. A change and its deed are committed together, and the anchor follows.

    Guarantee: a catalog that does not hold its anchor's place and head is a copy from the past, or went another way; it
    is refused when it is opened and at every change. So what was revoked since a backup is not revived by it.
    """

    def __init__(
        self, database: Database | Remembered, anchors: Path | str | None, beside: Path | None
    ) -> None:
        self._database, self._lock = database, Lock()
        new = uuid.uuid4().hex
        with database.write():
            for statement in TABLES:
                database.rows(statement)
            first = "INSERT INTO deeds_tip VALUES (1, ?, 0, ?) ON CONFLICT DO NOTHING"
            database.rows(first, new, genesis(new))
        self.catalog, place, head = self._tip()
        folder = anchors_folder(anchors, beside)
        self._anchor = Anchor.open(folder / f"{self.catalog}.anchor", Mark(place, head, Totals()))

    def refuse_older(self) -> None:
        """LedgerError if this catalog does not hold what its anchor has seen."""
        self._refuse_older(self._anchor.latest())

    @contextmanager
    def done(self, kind: str, **fields: str | int) -> Iterator[None]:
        """A block of changes, with its deed, all or none."""
        with self._held():
            with self._database.write():
                ((place, before),) = self._database.rows(
                    "UPDATE deeds_tip SET place = place + 1 RETURNING place, head"
                )
                self._refuse_older(self._anchor.read())
                yield
                whole: dict[str, str | int] = {**fields, "moment": int(time.time())}
                head = link(before, place, kind, whole)
                self._database.rows(
                    "INSERT INTO deeds VALUES (?, ?, ?, ?)", place, kind, canonical(whole), head
                )
                self._database.rows("UPDATE deeds_tip SET head = ?", head)
            self._anchor.advance(Mark(place, head, Totals()))

    @contextmanager
    def restored(self) -> Iterator[None]:
        """A block of changes after which this copy counts, whatever the anchor has seen."""
        with self._held():
            try:
                lost = self._anchor.read().place
            except NoAnchor:
                lost = -1
            _, place, head = self._tip()
            self._anchor.renew(Mark(place, head, Totals()))
        with self.done("restored", lost_place=lost):
            yield

    def all(self) -> Iterator[Deed]:
        """Every deed, oldest first; LedgerError where the chain does not fit."""
        catalog, last, tip = self._tip()
        head, place = genesis(catalog), 0
        while place < last:
            rows = self._database.rows(
                "SELECT place, kind, body, head FROM deeds WHERE place > ? ORDER BY place LIMIT 1000", place
            )
            if not rows:
                break
            for found, kind, body, said in rows:
                fields = json.loads(body)
                head, place = link(head, place + 1, kind, fields), place + 1
                if (found, said) != (place, head):
                    raise LedgerError(
                        f"the gateway's catalog was changed at deed {place}; put the right file back"
                    )
                yield Deed(place, kind, fields, head)
        if head != tip and place == last:
            raise LedgerError("the gateway's catalog was changed at its tip; put the right file back")

    def close(self) -> None:
        """Let go of the anchor."""
        self._anchor.close()

    @contextmanager
    def _held(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=WAIT_SECONDS):
            raise LedgerError("the gateway's records are being changed by somebody else; ask again")
        try:
            with self._anchor.held():
                yield
        finally:
            self._lock.release()

    def _tip(self) -> tuple[str, int, str]:
        ((catalog, place, head),) = self._database.rows("SELECT catalog, place, head FROM deeds_tip")
        return catalog, place, head

    def _refuse_older(self, mark: Mark) -> None:
        rows = self._database.rows("SELECT head FROM deeds WHERE place = ?", mark.place)
        if (rows[0][0] if rows else None) != mark.head and (mark.place or mark.head != genesis(self.catalog)):
            raise LedgerError(
                f"the gateway's catalog is an older copy or went another way: its anchor {self._anchor.path} has seen "
                f"deed {mark.place}. Put the current one back; or, if it is lost for good, start once with "
                "--restored-catalog, which ends every token (docs/deploy.md)"
            )
