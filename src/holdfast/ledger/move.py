"""Carry a record of charges to another ledger."""

from __future__ import annotations

from holdfast.errors import LedgerError
from holdfast.ledger.chained import ChainedLedger
from holdfast.ledger.protocol import Ledger
from holdfast.ledger.writer import Writer


def copy_ledger(source: Ledger, target: ChainedLedger) -> None:
    """Write everything that `source` holds into the empty ledger `target`, all or none.

    Guarantee: limits, accounts, charges and answers are the same afterwards and in the same order, so that a saved
    table goes on where the unsaved one stood; saving never refreshes a budget.
    """
    target.adopt(lambda writer: _write(source, writer))


def move_ledger(source: ChainedLedger, target: ChainedLedger) -> None:
    """Carry everything over to the empty ledger `target`, which counts from then on.

    Guarantee: at no moment do both accept charges. Killed at any step, the move is finished by calling it
    again. The source refuses every charge afterwards and says where it went.
    """
    if target.arrived(source.id):
        return
    if target.totals().entries:
        raise LedgerError("expected an empty ledger to move to, got one with charges; choose another name")
    if source.moved() not in (None, target.address):
        raise LedgerError(f"this ledger was moved to {source.moved()} already; go on from there")
    target.expect(source.id)
    source.retire(target.address)
    target.adopt(lambda writer: _arrive(source, writer))


def _arrive(source: ChainedLedger, writer: Writer) -> None:
    _write(source, writer)
    writer.write_note("arrived", source=source.id, source_head=source.anchored().head)


def _write(source: Ledger, writer: Writer) -> None:
    if writer.total.entries:
        raise LedgerError("expected an empty ledger to copy to, got one with charges; choose another")
    cap = source.limit()
    if cap is not None:
        writer.set_limit(cap)
    for account in source.accounts():
        writer.open(account)
    copied = {
        entry.id: writer.charge(entry.session, entry.key, entry.plan, entry.event, entry.charge).id
        for entry in source.entries()
    }
    for _, entry in source.answered():
        assert entry.answer is not None
        writer.record(copied[entry.id], entry.answer, entry.secret)
