"""Carry a record of charges to another ledger."""

from __future__ import annotations

from holdfast.ledger.protocol import Ledger


def copy_ledger(source: Ledger, target: Ledger) -> None:
    """Write everything that `source` holds into the empty ledger `target`.

    Guarantee: limits, accounts, charges and answers are the same afterwards, so that a saved table goes on
    where the unsaved one stood; saving never refreshes a budget.
    """
    cap = source.limit()
    if cap is not None:
        target.set_limit(cap)
    for account in source.accounts():
        target.open(account)
    for entry in source.entries():
        copied = target.reserve(entry.session, entry.key, entry.plan, entry.event, entry.charge)
        if entry.answer is not None:
            target.record(copied.id, entry.answer)
