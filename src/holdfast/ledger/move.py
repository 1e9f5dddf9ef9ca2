"""Carry a record of charges to another ledger."""

from __future__ import annotations

from holdfast.errors import LedgerError
from holdfast.ledger.audit import CHARGED, account_of
from holdfast.ledger.chained import ChainedLedger
from holdfast.ledger.entry import Charge
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
    writer.keep_secret(source.secret)
    copied: dict[int, tuple[int, int]] = {}
    for fact in source.history():
        fields = fact.fields
        match fact.kind:
            case "limit":
                writer.set_limit(account_of(fields))
            case "account":
                writer.open(account_of(fields))
            case "closed":
                writer.end(str(fields["session"]))
            case "reserved":
                session, key, plan, event = (
                    str(fields[name]) for name in ("session", "key", "plan", "event")
                )
                charge = Charge(*(int(fields[name]) for name in CHARGED))
                copied[fact.place] = writer.charge(session, key, plan, event, charge).id, charge.information
            case "answered":
                entry, reserved = copied[int(fields["entry"])]
                spared = int(fields["spared"])
                told = reserved - spared if spared else None
                writer.record(entry, str(fact.answer), bool(fields["secret"]), told=told)
