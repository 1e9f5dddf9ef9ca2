"""Everything that was released in a session: its answers, and what else was charged."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from holdfast.ledger import Entry
from holdfast.ledger.entry import is_replayed
from holdfast.planning.plan import STATISTIC
from holdfast.privacy.filter import UNITS
from holdfast.session.answer import Answer

_LONG = 4096
"""Outcomes of more letters (a synthetic table) are not told again here."""
_LINE = 80
_UNITS = {"pure": "epsilon", "zcdp": "rho", "gdp": "mu squared"}


@dataclass(frozen=True, slots=True, repr=False)
class Release:
    """What was charged and is no answer with an interval: a private choice, a vote, keys, weights, a fit.

    `kind` says which, `question` about what; `cost` is in what the session counts (`currency`). `told` is what the
    ledger recorded of it, where that is public and short; None of the rest, which stands where it was released.
    """

    kind: str
    question: str
    cost: float
    currency: str
    told: Any = None
    replayed: bool = False
    """Whether its noise repeats itself, so that it is not private."""

    @property
    def price(self) -> str:
        """What it cost, in words."""
        if self.replayed:
            return "REPLAYED, not private"
        return f"{_UNITS.get(self.currency, self.currency)} {self.cost:.3g}" if self.cost else "free"

    @property
    def said(self) -> str:
        """What was told, in a line; nothing where it stands elsewhere."""
        if self.told is None:
            return ""
        if self.kind == "select":
            return f"candidate {self.told}"
        line = json.dumps(self.told, ensure_ascii=False)
        return line if len(line) <= _LINE else f"{line[: _LINE - 1]}…"

    def to_json(self) -> str:
        """For the wire; `released` tells it from an answer."""
        parts = asdict(self)
        return json.dumps({"released": parts.pop("kind")} | parts)

    @classmethod
    def from_parts(cls, parts: dict[str, Any]) -> Release:
        """Back from the wire."""
        parts = dict(parts)
        return cls(parts.pop("released"), **parts)

    def __str__(self) -> str:
        said = f": {self.said}" if self.said else ""
        return f"{self.question}{said} ({self.price})"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<div>{html.escape(str(self))}</div>"


def asked_in(plan: str) -> str:
    """What a plan of the ledger is about: its question, or its kind."""
    known = json.loads(plan)
    return str(known.get("question") or known.get("kind") or "a release")


def history_of(entries: Iterable[Entry], currency: str) -> Iterator[Answer | Release]:
    """What was released under the reservations of a session; answers that are not yet told are left out."""
    for entry in entries:
        if entry.kind != STATISTIC:
            yield _release(entry, currency)
        elif entry.answer:
            yield Answer.from_json(entry.answer)


def history_texts(entries: Iterable[Entry], currency: str) -> Iterator[str]:
    """The same as JSON texts, answers as they were told."""
    for entry in entries:
        if entry.kind != STATISTIC:
            yield _release(entry, currency).to_json()
        elif entry.answer:
            yield entry.answer


def _release(entry: Entry, currency: str) -> Release:
    public = entry.answer if not entry.secret and entry.answer and len(entry.answer) <= _LONG else None
    # JSON has no infinity.
    told = None if public is None else json.loads(public, parse_constant=lambda _: None)
    cost, replayed = entry.charge.session / UNITS, is_replayed(entry.plan)
    return Release(entry.kind, asked_in(entry.plan), cost, currency, told, replayed)
