"""Where the charges of a table are kept: in its store, in a file, on a server, or in memory."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.check import printable
from holdfast.errors import InputError, LedgerError
from holdfast.ledger import LEDGER_FILE, ChainedLedger, Ledger, SqliteLedger, copy_ledger, open_ledger


def ledger_of_store(path: Path | None, ledger: Ledger | str | Path | None) -> Ledger:
    """The ledger of a store: its own, or the one in its place."""
    assert path is not None
    own = path / LEDGER_FILE
    return SqliteLedger(own) if ledger is None else _in_place_of(own, opened_ledger(ledger))


def opened_ledger(ledger: Ledger | str | Path) -> Ledger:
    """A ledger as `open` takes it."""
    if isinstance(ledger, str | Path):
        printable("ledger", str(ledger))
        return open_ledger(ledger)
    if not hasattr(ledger, "reserve"):
        raise InputError(f"expected ledger= as a path, an address or a ledger, got {type(ledger).__name__}")
    return ledger


def _in_place_of(own: Path, ledger: Ledger) -> Ledger:
    """Have a store's charges counted elsewhere, and no longer in its folder: one store, one budget."""
    if not isinstance(ledger, ChainedLedger):
        raise InputError(
            "expected a ledger that outlasts the process, got one in memory; name a file or a server"
        )
    writable = own.exists() or os.access(own.parent, os.W_OK)  # else nobody can charge it there
    if writable and ledger.address != str(own.absolute()):
        standing = SqliteLedger(own)
        try:
            if standing.moved() != ledger.address:
                standing.retire(ledger.address, unless_charged=True)
        finally:
            standing.close()
    return ledger


def copied_beside(standing: Ledger, folder: Path) -> None:
    """Carry what was charged into the folder of a new store."""
    ledger = SqliteLedger(folder / LEDGER_FILE)
    copy_ledger(standing, ledger)
    ledger.close()


def refuse_to_lose_a_ledger(folder: Path, home: Path | None) -> None:
    """A store that has been asked keeps what it was charged, unless it is this very table's, which is at home there."""
    if not (folder / LEDGER_FILE).exists() or folder.resolve() == home:
        return
    standing = SqliteLedger(folder / LEDGER_FILE)
    asked = standing.totals().entries
    standing.close()
    if asked:
        raise LedgerError(
            f"{folder} has answered {asked} questions, and overwriting it would forget what they cost; save "
            "elsewhere, or remove it yourself"
        )
