"""Sessions that are closed: nothing new is told, what was told stays, and nobody is kept waiting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import UNCOVERED, MemoryLedger, memory, verify
from holdfast.session import session as session_room

SCHEMA = hf.Schema(x=hf.Integer(0, 99), t=hf.Boolean())
ROWS = {"x": np.arange(5_000) % 100, "t": np.arange(5_000) % 2 == 0}
NEW: dict[str, Callable[[hf.Session], Any]] = {
    "fraction": lambda s: s.fraction("x < 8"),
    "more exactly": lambda s: s.fraction("x < 7", rho=0.1),
    "sample": lambda s: s.sample("x < 8"),
    "select": lambda s: s.select(["x < 9", "t"], epsilon=0.1),
    "another sparse vector": lambda s: s.sparse_vector(0.5, 1, rho=1e-3, name="other"),
    "a question of an open one": lambda s: s.sparse_vector(0.99, 1, rho=1e-3).above("x < 2"),
}


def opened() -> hf.Table:
    return hf.open(ROWS, SCHEMA, ledger=MemoryLedger())


@pytest.mark.parametrize("name", NEW)
def test_nothing_new_is_answered_and_what_was_told_stays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin is a ledger that does not look."""
    table = opened()
    with table.session(rho=1.0, queries=9) as session:
        told = session.fraction("x < 7")
        session.sparse_vector(0.99, 1, rho=1e-3).above("x < 2")
        assert not session.closed
    assert session.closed and session.meter is None and session.remaining == 0
    assert "Closed" in session.plan and "Closed" in repr(session) and "0.0% is left" in str(session.report())
    before = table.ledger.totals()
    with pytest.raises(hf.BudgetError, match="which was closed"):
        NEW[name](session)
    assert table.ledger.totals() == before
    again = session.fraction("x < 7")
    assert again.repeated and again.value == told.value and session.history[0].value == told.value
    verify(table.ledger)
    monkeypatch.setattr(memory, "refuse_closed", lambda *how: None)
    NEW[name](session)
    assert table.ledger.totals().entries > before.entries


def test_it_is_closed_also_when_the_work_fails() -> None:
    table = opened()
    with pytest.raises(hf.QueryError), table.session(rho=1.0, name="mine") as session:
        session.fraction("y < 7", within=0.1)
    assert session.closed
    session.close()
    assert table.session(name="mine").closed


def test_an_answer_that_was_paid_for_is_had_after_the_end() -> None:
    table = opened()
    session = table.session(rho=1.0, queries=5)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(session_room, "told_by_answer", _killed)
        session.fraction("x < 7")
    session.close()
    paid = table.ledger.totals().units
    assert session.fraction("x < 7").low < 0.07 and table.ledger.totals().units == paid


def _killed(*given: Any) -> Any:
    raise KeyboardInterrupt


@pytest.mark.parametrize("kept", ["memory", "sqlite"])
def test_a_session_that_was_left_half_used_is_in_nobodys_way(kept: str, tmp_path: Path) -> None:
    place = MemoryLedger() if kept == "memory" else tmp_path / "rows.ledger"
    table = hf.open(ROWS, SCHEMA, ledger=place)
    table.session(rho=1.0, queries=9, name="left").fraction("x < 7")
    if kept == "sqlite":
        table.close()
        table = hf.open(ROWS, SCHEMA, ledger=place)
    mine = table.session(rho=1.0)
    with pytest.raises(hf.BudgetError, match=r"session\.close\(\)"):
        mine.fraction("x < 9", rho=1e-3, mechanism="laplace")
    for account in list(table.ledger.accounts()):  # whoever has the table can close what was left
        if account.name != mine.name:
            table.session(name=account.name).close()
    assert mine.fraction("x < 9", rho=1e-3, mechanism="laplace").ends_theorem
    assert table.ledger.totals().information == UNCOVERED
    table.close()


def test_what_is_left_of_a_closed_share_can_be_planned_for_again() -> None:
    """One of two shares is closed early; a third takes its room, tells all it may, and the other's plan holds."""
    table = opened()
    ann, bob = (table.session(rho=1.0, queries=12, share=0.5) for _ in range(2))
    planned = bob._terms.places
    assert planned is not None
    ann.fraction("x < 5")
    with pytest.raises(hf.BudgetError, match="shared out"):
        table.session(rho=1.0, queries=12, share=0.5)
    ann.close()
    dan = table.session(rho=1.0, queries=8, share=0.4)
    for value in range(8):
        dan.fraction(f"x < {10 + value}")
    for value in range(12):
        answer = bob.fraction(f"x < {30 + value}")
        assert answer.noise + answer.sampling + answer.population <= planned.width
    verify(table.ledger)
