"""What ends the leave-out theorem: refused while others rest on it, told to whoever does it alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import UNCOVERED, MemoryLedger
from holdfast.session import session as session_room

SCHEMA = hf.Schema(x=hf.Integer(0, 99), t=hf.Boolean())
ROWS = {"x": np.arange(5_000) % 100, "t": np.arange(5_000) % 2 == 0}
ENDING: dict[str, Callable[[hf.Session], Any]] = {
    "laplace": lambda s: s.fraction("x < 9", rho=1e-3, mechanism="laplace"),
    "plain quantile": lambda s: s.quantile("x", rho=1e-3, mechanism="exponential"),
    "sparse vector by name": lambda s: s.sparse_vector(0.5, 1, rho=1e-3, version="best"),
    "weights": lambda s: s.multiplicative_weights(["t"], queries=5, within=0.4, version="best"),
    "permute and flip": lambda s: s.select(["x < 9", "t"], epsilon=0.1, mechanism="permute-and-flip"),
}


def opened(**how: Any) -> hf.Table:
    return hf.open(ROWS, SCHEMA, ledger=MemoryLedger(), **how)


@pytest.mark.parametrize("name", ENDING)
def test_it_is_refused_uncharged_while_another_share_is_open(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin does not look at the others."""
    table = opened()
    mine, _ = table.session(rho=1.0), table.session(rho=1.0, queries=5)
    with pytest.raises(hf.BudgetError, match="would end it for them"):
        ENDING[name](mine)
    assert table.ledger.totals().entries == 0
    monkeypatch.setattr(session_room, "refuse_to_end", lambda *how: None)
    ENDING[name](mine)
    assert table.ledger.totals().information == UNCOVERED


@pytest.mark.parametrize("name", ENDING)
def test_the_owner_may_allow_it_and_who_is_alone_may_do_it(name: str) -> None:
    allowed, alone = opened(allow_uncovered=True), opened()
    mine, _ = allowed.session(rho=1.0), allowed.session(rho=1.0)
    for session in (mine, alone.session(rho=1.0)):
        ENDING[name](session)
        assert session._ledger.totals().information == UNCOVERED


def test_whoever_ends_it_is_told_before_and_after_and_once() -> None:
    session = opened().session(rho=1.0, queries=20)
    assert not session.fraction("x < 5", rho=1e-3).ends_theorem
    planned = session.estimate.fraction("x < 9", rho=1e-3, mechanism="laplace")
    answer = session.fraction("x < 9", rho=1e-3, mechanism="laplace")
    for told in (planned, answer):
        assert told.ends_theorem and "ends the leave-out theorem on this table" in told.explain()
    assert hf.Answer.from_json(answer.to_json()).ends_theorem
    assert "by Theorem 20" not in session.history[0].explain()
    assert "by Theorem 20" in session.fraction("x < 11", rho=1e-3).explain(), "those after it say so"
    second = session.fraction("x < 10", rho=1e-3, mechanism="laplace")
    assert not second.ends_theorem and "ends the leave-out" not in second.explain()


def test_a_share_that_is_used_up_or_rests_on_no_theorem_is_not_in_the_way() -> None:
    table = opened()
    done = table.session(rho=1.0, queries=1)
    table.session(epsilon=1.0, target="table")
    table.session(rho=1.0, target="table")
    mine = table.session(rho=1.0)
    with pytest.raises(hf.BudgetError):
        ENDING["laplace"](mine)
    done.fraction("x < 50")
    assert ENDING["laplace"](mine).ends_theorem
    table.session(rho=1.0)
    assert not mine.fraction("x < 11", rho=1e-3, mechanism="laplace").ends_theorem, "there is nothing to end"


def test_what_was_opened_before_goes_on(tmp_path: Path) -> None:
    """A sparse vector that was paid for while its session was alone is not refused when others come."""
    table = opened().save(tmp_path / "rows.hf")
    vector = table.session(rho=1.0, name="ann").sparse_vector(0.5, 1, rho=1e-3, version="best")
    vector.above("x < 3")
    table.close()
    again = hf.open(tmp_path / "rows.hf")
    again.session(rho=1.0, name="ben")
    later = again.session(name="ann").sparse_vector(0.5, 1, rho=1e-3, version="best")
    assert later.asked == 1 and not later.above("x < 2")
    again.close()
