"""Rows told apart by their groups: the same sums as the cells', exactly."""

from __future__ import annotations

import numpy as np
import pytest

import holdfast as hf
from holdfast.ledger import MemoryLedger
from holdfast.query.region import factors, region
from holdfast.query.universe import universe
from holdfast.weights import row_groups
from holdfast.weights.cell_counts import CellCounts
from holdfast.weights.row_groups import RowGroups, by_rows
from tests.synthesis.wide import SCHEMA, census

EDGES = {"hours": [5, 30, 40, 60], "gain": [0.0, 500.0, 1e5]}
QUERIES = (
    "rich",
    "work = 'self' AND hours < 40",
    "gain IS NULL",
    "NOT rich",
    "rich OR hours >= 40",
    "(rich AND married) OR (NOT rich AND NOT married)",
)


@pytest.mark.parametrize("nulls", [None, [], ["gain"]])
def test_sums_are_those_of_the_cells(nulls: list[str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """With NULL and rows outside of the edges; a twin that takes what is outside for the first group is caught."""
    monkeypatch.setattr(row_groups, "_BLOCK", 700)
    session = hf.open(census(3000), SCHEMA, ledger=MemoryLedger()).session(rho=1.0, target="table")
    made = universe(SCHEMA, ["work", "hours", "gain", "rich", "married"], EDGES, nulls=nulls)
    rows, cells = (kind(session._desk.for_the_owner(), made) for kind in (RowGroups, CellCounts))
    asked = [region(made, text) for text in QUERIES if nulls is None or "NULL" not in text]
    asked.append(factors(made, {"hours": [0.25, 0.5, 1.0], "rich": [0.125, 0.75]}))
    assert [rows.steps(one) for one in asked] == [cells.steps(one) for one in asked]
    rows._inside[:] = True
    assert [rows.steps(one) for one in asked] != [cells.steps(one) for one in asked]
    assert all(groups.dtype == np.uint8 for groups in rows._groups)


def test_which_of_both_is_kept_depends_on_public_numbers() -> None:
    small, large = (
        universe(SCHEMA, ["work", "rich"]),
        universe(SCHEMA, ["age", "region", "hours", "work", "rich"]),
    )
    assert not by_rows(small, 10) and by_rows(large, 1000)
    assert not by_rows(large, large.size)
