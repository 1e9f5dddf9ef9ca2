"""What a session says of noise that a test replays: in the entry it charges, and where it must not be used."""

from __future__ import annotations

from holdfast.errors import LedgerError
from holdfast.ledger import Entry
from holdfast.ledger.entry import as_replayed, is_replayed
from holdfast.noise._replay import replaying


def noted(plan: str) -> str:
    """The plan as the ledger keeps it: while noise is replayed, it says so."""
    return as_replayed(plan) if replaying() else plan


def refuse_to_replay(entry: Entry) -> None:
    """LedgerError if the entry's answer would have replayed noise and the entry does not say so."""
    if replaying() and not is_replayed(entry.plan):
        raise LedgerError(
            "expected a charge that says it is replayed, got one for real noise; ask without replaying"
        )
