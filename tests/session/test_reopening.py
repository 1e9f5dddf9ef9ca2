"""A plan is kept by whoever opens it again, and other terms are refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import MemoryLedger


def small(rows: int) -> hf.Table:
    return hf.open({"x": np.arange(rows) % 10}, hf.Schema(x=hf.Integer(0, 99)), ledger=MemoryLedger())


OTHER_TERMS: list[dict[str, Any]] = [
    {"queries": 4}, {"confidence": 0.9}, {"target": "table"}, {"within": 0.3}, {"rows": 10}, {"share": 0.5},
    {"intervals": "rare"}, {"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6, "only": "gaussian"},
]  # fmt: skip


def test_a_plan_is_kept_by_whoever_opens_it_and_by_a_second_process(tmp_path: Path) -> None:
    """Its places are taken together; the last one by whoever comes first, and nothing beyond by anybody."""
    store = tmp_path / "rows.hf"
    own = small(1_000).save(store).session(epsilon=1.0, delta=1e-6, queries=3, name="plan")
    width = own.fraction("x < 1").width
    for other in OTHER_TERMS:
        with pytest.raises(hf.LedgerError, match=r"session 'plan' exists and .*choose another name"):
            hf.open(store).session(**{"name": "plan"} | other)
    there = (
        "import sys, holdfast as hf\n"
        "session = hf.open(sys.argv[1]).session(name='plan')\n"
        "print(session.plan)\n"
        "print(session.fraction('x < 2').width)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", there, str(store)], capture_output=True, text=True, check=True, timeout=120
    )
    plan, told = ran.stdout.splitlines()
    assert plan.split(";")[0] == own.plan.split(";")[0] and float(told) <= width * 1.01
    assert own.fraction("x < 3").width <= width * 1.01
    spent = own.spent
    with pytest.raises(hf.BudgetError):
        own.fraction("x < 4")
    beyond = subprocess.run(
        [sys.executable, "-c", there.replace("x < 2", "x < 7"), str(store)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert "BudgetError" in beyond.stderr and own.spent == spent
    assert own.fraction("x < 2").width == float(told), "what the other process was told stands here too"
