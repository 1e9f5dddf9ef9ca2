"""What a row can contribute to a total: 0 is always possible, since it need not qualify."""

from __future__ import annotations

import pytest

import holdfast as hf
from holdfast.query.expression import Column
from holdfast.query.grid import Grid
from holdfast.query.measurement import Measurement
from holdfast.query.predicate import Always

SCHEMA = hf.Schema(x=hf.Integer(-9, 9))


@pytest.mark.parametrize("weight", [1, 7])
def test_a_count_contributes_nothing_or_its_weight(weight: int) -> None:
    count = Measurement(SCHEMA, Always(), weight=weight)
    assert (count.low, count.high) == (0, weight)


@pytest.mark.parametrize(
    ("grid", "contributions"), [((3, 8), (0, 8)), ((-8, -3), (-8, 0)), ((-2, 5), (-2, 5)), ((0, 0), (0, 0))]
)
def test_a_sum_contributes_what_its_grid_and_zero_span(
    grid: tuple[int, int], contributions: tuple[int, int]
) -> None:
    total = Measurement(SCHEMA, Always(), Column("x"), Grid(0, 1, *grid, exact=True))
    assert (total.low, total.high) == contributions
