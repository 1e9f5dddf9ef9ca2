"""Every kind of ledger; a newcomer is added to MAKERS and cannot skip a law."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.ledger import Charge, Commit, Ledger, MemoryLedger, Outcome
from ledger.homes import HOMES

Make = Callable[[Path], Ledger]
MAKERS: dict[str, Make] = {
    "memory": lambda folder: MemoryLedger(),
    "postgres": lambda folder: HOMES["postgres"](folder).open(),
    "sqlite": lambda folder: HOMES["sqlite"](folder).open(),
}


def charge(ledger: Ledger, units: int, session: str = "s") -> int:
    """One more reservation of a session."""
    mine = ledger.totals(session).entries
    return ledger.reserve(session, f"key {mine}", "{}", "{}", Charge(units, 2 * units, 3)).id


def together(ledger: Ledger, commits: Sequence[Commit]) -> list[Outcome]:
    """What becomes of commits that are put together."""
    return ledger.commit_all(commits)
