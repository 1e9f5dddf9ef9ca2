"""Which totals a derived statistic needs: the same in numpy and in SQL, and told together."""

from __future__ import annotations

import math

import duckdb
import numpy as np
import pytest

import holdfast as hf
from holdfast.planning.question import Difference, Fraction, Interval, Paired, Ratio, Spread, Total
from holdfast.query.expression import Column
from holdfast.query.grid import grid_of
from holdfast.query.predicate import Always
from holdfast.query.statistic import workload

SCHEMA = hf.Schema(x=hf.Integer(-3, 4), y=hf.Real(0.0, 2.0), g=hf.Category("a", "b"), t=hf.Boolean())
ASKED: list[Interval] = [
    Fraction(where="t", given="x > 0", by="g"),
    Total(kind="mean", column="t OR x > 2"),
    Ratio(column="x", divisor="y", by="g"),
    Spread(kind="variance", column="y", by="g"),
    Paired(kind="correlation", column="x", other="y"),
    Difference(where="g = 'a'", other="x > 1", of="t"),
    Difference(where="g = 'a'", other="g = 'b'", of="y"),
]


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_an_engine_adds_up_the_same(asked: Interval) -> None:
    draw = np.random.default_rng(1)
    codes = {
        "x": draw.integers(0, 9, 200).astype(np.uint8),  # 8 is NULL
        "y": np.where(draw.random(200) < 0.1, np.nan, draw.uniform(0, 2, 200)),
        "g": draw.integers(0, 3, 200).astype(np.uint8),
        "t": draw.integers(0, 3, 200).astype(np.uint8),
    }
    nulls = {name: SCHEMA[name].null_code for name in ("x", "g", "t")}
    engine = duckdb.connect()
    engine.register("held", {name: codes[name] for name in codes})
    made = workload(asked.read(SCHEMA).statistics[0], SCHEMA, 200)
    columns = ", ".join(f"CAST({n} AS INTEGER) AS {n}" if n in nulls else n for n in codes)
    relation = f"(SELECT {columns} FROM held) AS h"
    for measurement in made.measurements:
        found = np.zeros(measurement.size, dtype=np.int64)
        for group, total in engine.execute(measurement.sql(relation)).fetchall():
            found[group] = total
        assert found.tolist() == measurement.totals(codes).tolist()
        reach = 200 * max(-measurement.low, measurement.high)
        assert np.abs(found).max() <= reach


def test_what_is_unknown_counts_against_a_fraction_and_not_in_a_mean() -> None:
    codes = {"t": np.array([0, 1, 1, 2], dtype=np.uint8)}
    whole, known = (
        workload(asked.read(SCHEMA).statistics[0], SCHEMA, 4)
        for asked in (Fraction(where="t", given="x > -9 OR x IS NULL"), Total(kind="mean", column="t"))
    )
    codes["x"] = np.array([1, 2, 3, 8], dtype=np.uint8)
    assert [m.totals(codes).tolist() for m in whole.measurements] == [[2], [2]]
    assert [m.totals(codes).tolist() for m in known.measurements] == [[2], [1]]


def test_conditions_that_exclude_each_other_cost_half_as_much() -> None:
    apart, overlapping = (
        workload(Difference(where="g = 'a'", other=other, of="x").read(SCHEMA).statistics[0], SCHEMA, 9)
        for other in ("g = 'b'", "x > 1")
    )
    assert apart.joint is not None and overlapping.joint is not None
    assert (apart.joint.l2_squared, overlapping.joint.l2_squared) == (4, 8)


def test_squares_of_many_rows_stay_in_whole_numbers() -> None:
    """Steps are doubled until the squares of a billion rows add up below 2^60."""
    grid = grid_of(Column("y"), Always(), SCHEMA, 10**9, centred=True, power=2)
    assert grid.reach**2 * 10**9 < 2**61
    assert math.log2(grid.reach) > 13
