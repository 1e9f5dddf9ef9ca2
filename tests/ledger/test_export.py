"""Noisy thresholds stay out of exports; what was told stays in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import MemoryLedger, SqliteLedger, export, verify_export

SCHEMA = hf.Schema(x=hf.Integer(0, 99), y=hf.Integer(0, 3))


class TellsAll(MemoryLedger):
    """The broken twin: what is secret is kept as any answer."""

    def record(self, entry: int, answer: str, *, secret: bool = False, told: int | None = None) -> str:
        return super().record(entry, answer)


def secrets_in_export(ledger: Any) -> list[str]:
    """Use everything that has a secret state; which of its numbers are in the export?"""
    draw = np.random.default_rng(1)
    data = {"x": draw.integers(0, 100, 5000), "y": draw.integers(0, 4, 5000)}
    session = hf.open(data, SCHEMA, ledger=ledger).session(epsilon=500.0, target="table")
    watch = session.sparse_vector(0.5, 3, epsilon=1.0)
    for cut in (90, 10, 80):
        watch.above(f"x > {cut}")
    weights = session.multiplicative_weights(["y"], queries=20, within=0.1)
    weights.fraction("y = 1")
    answer = session.fraction("x > 50", within=0.1)
    lines = list(export(ledger))
    assert verify_export(lines).totals == ledger.totals()
    text = "\n".join(lines)
    assert json.dumps(answer.value) in text
    hidden = [
        entry.answer for entry in ledger.entries() if entry.answer and is_state(json.loads(entry.answer))
    ]
    assert len(hidden) >= 5  # the opening, three comparisons, a run of the weights
    return [state for state in hidden if json.dumps(state)[1:-1] in text]


def is_state(answer: Any) -> bool:
    """Whether an answer holds the state of a sparse vector."""
    return isinstance(answer, dict) and ("state" in answer or "terms" in answer)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_an_export_holds_no_noisy_threshold(kind: str, tmp_path: Path) -> None:
    ledger = MemoryLedger() if kind == "memory" else SqliteLedger(tmp_path / "ledger.sqlite")
    assert secrets_in_export(ledger) == []
    ledger.close()


def test_the_check_would_notice() -> None:
    assert len(secrets_in_export(TellsAll())) >= 5
