"""The ledger in memory: it refuses once the store's ledger counts, and in a forked copy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast import process
from holdfast.errors import LedgerError
from holdfast.ledger import Account, Charge, MemoryLedger


def test_a_retired_ledger_neither_charges_nor_records() -> None:
    ledger = MemoryLedger()
    ledger.open(Account("ann", "zcdp", 100))
    entry = ledger.reserve("ann", "one", "{}", "{}", Charge(1, 1))
    ledger.retire()
    with pytest.raises(LedgerError, match="the store's ledger counts"):
        ledger.reserve("ann", "two", "{}", "{}", Charge(1, 1))
    with pytest.raises(LedgerError, match="the store's ledger counts"):
        ledger.record(entry.id, "1")
    assert (ledger.totals().units, ledger.totals().entries) == (1, 1)
    ledger.retire(False)
    assert ledger.record(entry.id, "1") == "1"


def test_a_session_that_was_open_when_its_table_was_saved_is_over(tmp_path: Path) -> None:
    table = hf.open({"x": np.arange(100)}, hf.Schema(x=hf.Integer(0, 99)))
    session = table.session(rho=1.0, target="table")
    session.count("x > 3", rho=0.1)
    saved = table.save(tmp_path / "rows.hf")
    with pytest.raises(LedgerError, match="open a session on the saved table"):
        session.count("x > 4", rho=0.1)
    assert float(saved.spent) == pytest.approx(0.1)


def test_a_forked_copy_neither_charges_nor_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a child: one more fork lies between this process and the first. tests/forking.py forks for real."""
    ledger = MemoryLedger()
    ledger.open(Account("ann", "zcdp", 100))
    entry = ledger.reserve("ann", "one", "{}", "{}", Charge(1, 1))
    with monkeypatch.context() as forked:
        forked.setattr(process, "_forks", process._forks + 1)
        with pytest.raises(LedgerError, match="in this process, got its parent's"):
            ledger.reserve("ann", "two", "{}", "{}", Charge(1, 1))
        with pytest.raises(LedgerError, match="in this process, got its parent's"):
            ledger.record(entry.id, "1")
    assert (ledger.totals().units, ledger.totals().entries, list(ledger.answered())) == (1, 1, [])
    assert ledger.record(entry.id, "1") == "1"
