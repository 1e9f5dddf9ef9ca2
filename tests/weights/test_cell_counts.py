"""Counts of rows in the groups of columns: what one block of rows takes while it is counted."""

from __future__ import annotations

import tracemalloc
from itertools import combinations
from typing import Any, cast

import numpy as np
import pytest

import holdfast as hf
from holdfast.data.source import BLOCK_ROWS
from holdfast.query.universe import universe
from holdfast.weights import cell_counts
from holdfast.weights.cell_counts import marginal_counts


class Rows:
    """Two blocks of columns of 16 values, where each is the last one's neighbour."""

    def __init__(self, columns: int) -> None:
        self.schema = hf.Schema.from_mapping({f"c{i}": hf.Integer(0, 15) for i in range(columns)})
        first = np.random.default_rng(0).integers(0, 17, BLOCK_ROWS)
        self.block = {name: ((first + i) % 17).astype(np.uint8) for i, name in enumerate(self.schema)}

    def scan(self, columns: Any) -> Any:
        return iter([self.block, self.block])


def counted(columns: int) -> tuple[int, Any, Rows]:
    rows = Rows(columns)
    made = universe(rows.schema, list(rows.schema), {}, most=10 ** (2 * columns))
    pairs = list(combinations(range(3), 2))
    tracemalloc.start()
    found = marginal_counts(cast(Any, rows), made, pairs)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, found, rows


@pytest.mark.parametrize("columns", [3, 60])
def test_a_block_takes_two_bytes_a_value_and_a_few_columns_of_whole_numbers(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 2 * columns * BLOCK_ROWS + 8 * 8 * BLOCK_ROWS
    peak, found, rows = counted(columns)
    assert peak < most
    for (first, second), counts in found.items():
        place = rows.block[f"c{first}"].astype(np.int64) * 17 + rows.block[f"c{second}"]
        assert (counts.ravel() == 2 * np.bincount(place, minlength=17 * 17)).all()
    if columns > 3:  # a twin that keeps whole numbers
        plain = cell_counts.groups_of_columns
        wide = lambda block, made: [own.astype(np.int64) for own in plain(block, made)]  # noqa: E731
        monkeypatch.setattr(cell_counts, "groups_of_columns", wide)
        assert counted(columns)[0] > 2 * most
