"""Rows that are opened more than once in a process, each time with a count of charges of their own."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from holdfast.errors import ReopenedWarning
from holdfast.ledger import Ledger, MemoryLedger

if TYPE_CHECKING:
    from holdfast.data.trace import Span, Trace


class Opening:
    """One opening of rows, with its ledger. Of the rows it keeps nothing but where they lie.

    It *counts* as soon as a session stands on its ledger, and for good once that was charged; a ledger that outlasts
    the process always counts.
    """

    def __init__(self, traces: Sequence[Trace], ledger: Ledger, *, fresh: bool) -> None:
        self._places = [(trace.key, trace.span) for trace in traces]
        self._ledger = weakref.ref(ledger)
        self._tally = ledger.tally if isinstance(ledger, MemoryLedger) else None
        self._silent = not fresh
        self._number = max((_note(trace, self) for trace in traces), default=1)

    @property
    def charged(self) -> bool:
        """Whether its ledger counts for good."""
        return self._tally is None or bool(self._tally)

    @property
    def counts(self) -> bool:
        """Whether another count of the same rows would be a second one."""
        ledger = self._ledger()
        return self.charged or (ledger is not None and any(True for _ in ledger.accounts()))

    @property
    def over(self) -> bool:
        """Whether its ledger is gone and was never charged."""
        return not self.charged and self._ledger() is None

    def warn(self) -> None:
        """ReopenedWarning, once, if another opening of the same rows counts already and this one starts afresh."""
        if self._silent or not any(other.counts for place in self._places for other in _others(self, *place)):
            return
        self._silent = True
        warnings.warn(
            f"this is opening number {self._number} of the same rows in this process, and it starts afresh: its "
            "budget and its intervals know nothing of what was asked before. Keep the first table and its sessions, "
            'or give every opening the same ledger, which also lasts: hf.open(..., ledger="people.ledger")',
            ReopenedWarning,
            stacklevel=4,  # past `fitting`
        )


@dataclass(slots=True)
class _Place:
    """How often rows at a place were opened, and by which openings that may still count."""

    times: int = 0
    openings: list[Opening] = field(default_factory=list)


_lock = Lock()
_known: dict[Hashable, dict[Span, _Place]] = {}


def _note(trace: Trace, opening: Opening) -> int:
    """Remember an opening at a trace, until the trace's owner dies; returns its number there.

    One that was charged stands for all after it, so that what is remembered stays small.
    """
    with _lock:
        if trace.key not in _known and trace.owner is not None:
            weakref.finalize(trace.owner, _known.pop, trace.key, None).atexit = False
        spans = _known.setdefault(trace.key, {})
        number = 1 + max((place.times for place in _near(spans, trace.span)), default=0)
        place = spans.setdefault(trace.span, _Place())
        place.times = number
        place.openings = [other for other in place.openings if not other.over]
        if not any(other.charged for other in place.openings):
            place.openings.append(opening)
        return number


def _others(opening: Opening, key: Hashable, span: Span) -> list[Opening]:
    """All other openings of rows that lie at the same places."""
    with _lock:
        near = _near(_known.get(key, {}), span)
        return [other for place in near for other in place.openings if other is not opening]


def _near(spans: dict[Span, _Place], span: Span) -> list[_Place]:
    """The places that share rows with a span."""
    return [place for (first, last), place in spans.items() if first < span[1] and span[0] < last]


def forget() -> None:
    """Forget every opening: for tests, each of which stands for a process of its own."""
    with _lock:
        _known.clear()
