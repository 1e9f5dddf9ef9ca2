"""Theorem 139: what one row, or one unit, does to a number of distinct values; every neighbour of small tables."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from holdfast.errors import InputError, QueryError
from holdfast.query.dictionary import encoded
from holdfast.query.distinct import ColumnValues, DistinctMeasurement, column_values
from holdfast.query.grouping import grouping
from holdfast.query.parse import parse_predicate
from holdfast.query.predicate import Always
from holdfast.query.schema import Category, Integer, Real, Schema, Text
from holdfast.query.statistic import Statistic, workload

SCHEMA = Schema(
    x=Integer(0, 2),
    g=Category("a", "b"),
    t=Text(3),
    r=Real(0, 1),
    far=Integer(0, 2**40),
    id=Integer(0, 2**61),
)
ROWS = list(itertools.product((0, 1, 2, None), ("a", "b", None)))


def block(rows: Any) -> dict[str, Any]:
    """Codes: NULL is the largest."""
    x, g = zip(*rows, strict=True)
    return {
        "x": np.array([3 if one is None else one for one in x], np.uint8),
        "g": np.array([("a", "b", None).index(one) for one in g], np.uint8),
    }


def made(by: str | None = None, where: str | None = None, of: str = "x") -> DistinctMeasurement:
    groups = None if by is None else grouping(SCHEMA, by)
    chosen = Always() if where is None else parse_predicate(where, SCHEMA)
    values = column_values(SCHEMA, of, 1)
    (measurement,) = workload(
        Statistic("distinct", chosen, None, groups, distinct=values), SCHEMA, 9
    ).measurements
    assert isinstance(measurement, DistinctMeasurement)
    return measurement


@pytest.mark.parametrize("by", [None, "g"])
def test_a_row_moves_the_numbers_as_far_as_is_charged_and_no_farther(by: str | None) -> None:
    measurement = made(by)
    asked = Statistic("distinct", Always(), None, measurement.by, distinct=measurement.of)
    claimed = workload(asked, SCHEMA, 3).sensitivity()
    moved = [
        np.abs(measurement.counted([block((*rest, one))]) - measurement.counted([block((*rest, other))]))
        for rest in itertools.product(ROWS[:6], repeat=2)
        for one, other in itertools.combinations(ROWS, 2)
    ]
    # As far as is charged: a twin that claims any less is caught here.
    assert max(int(each.sum()) for each in moved) == claimed.l1 == (1 if by is None else 2)
    assert max(int((each**2).sum()) for each in moved) == claimed.l2_squared


def test_values_in_several_blocks_count_once() -> None:
    measurement = made()
    parts = [block(ROWS[:6]), block(ROWS[3:])]
    assert measurement.counted(parts).tolist() == [3]
    twin = sum(measurement.counted([part]) for part in parts)  # adds up what does not add up
    assert twin.tolist() != [3]  # type: ignore[union-attr]


def test_null_is_no_value_and_conditions_and_groups_choose() -> None:
    rows = [(0, "a"), (0, "b"), (1, "b"), (None, "b"), (2, None), (2, "a")]
    assert made().counted([block(rows)]).tolist() == [3]
    assert made("g").counted([block(rows)]).tolist() == [2, 2]
    assert made("g", "x < 2").counted([block(rows)]).tolist() == [1, 2]
    assert made().counted([]).tolist() == [0]


@pytest.mark.parametrize("by", [None, "g"])
def test_many_values_are_sorted_instead_of_ticked_off(by: str | None) -> None:
    draw = np.random.default_rng(1)
    values, groups = draw.integers(0, 2**40, 500), draw.integers(0, 2, 500)
    values[250:] = values[:250]
    columns = {"far": values.astype(np.uint64), "g": groups.astype(np.uint8)}
    found = made(by, of="far").counted(
        [{name: part[a:b] for name, part in columns.items()} for a, b in ((0, 300), (300, 500))]
    )
    kept = [np.ones(500, bool)] if by is None else [groups == 0, groups == 1]
    assert found.tolist() == [len(np.unique(values[each])) for each in kept]


def test_the_column_whose_values_are_told_apart_is_read() -> None:
    """With groups or without, with a condition or without: what is not read cannot be counted."""
    assert made().columns == ("x",) and made(where="g = 'a'").columns == ("x", "g")
    assert made(by="g").columns == ("x", "g") and made(where="x > 0", of="t").columns == ("x", "t")


def test_texts_are_told_apart_by_their_dictionary() -> None:
    measurement = made(of="t")
    assert measurement.counted([{"t": encoded(["a", "b", None, "a", "c"], Text(3))}]).tolist() == [3]
    assert measurement.most_values(9) == 9 and made().most_values(9) == 3 and made().most_values(2) == 2


def test_what_cannot_be_told_apart_is_refused() -> None:
    with pytest.raises(QueryError, match=r"floor\(r\)"):
        column_values(SCHEMA, "r", 1)
    with pytest.raises(QueryError, match="narrower"):
        column_values(SCHEMA, "id", 4)
    assert column_values(SCHEMA, "id", 1) == ColumnValues("id", 2**61 + 1)
    with pytest.raises(InputError, match="do not add up"):
        made().totals(block(ROWS))
    with pytest.raises(InputError, match="read the rows"):
        made().sql("t")
