"""Theorems 135 to 138: every statement of an answer, written out as weights on what is told, and every pair of rows."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.planning.cell_question import Independence
from holdfast.planning.quantile_question import Quantile
from holdfast.planning.question import Count, Interval, Total
from holdfast.query import sums
from holdfast.query.running import strategy
from holdfast.query.statistic import Workload, workload
from holdfast.session.sum_reading import read_sums

SCHEMA = hf.Schema(x=hf.Integer(-2, 3), w=hf.Integer(0, 4), g=hf.Category("a", "b", "c"), t=hf.Boolean())
ROWS = 1000
ASKED: dict[str, Interval] = {
    "running counts": Count(by="w", cumulative=True),
    "running counts of lines": Count(by=["g", "w"], cumulative=True),
    "running sums": Total(kind="sum", column="x", by="w", cumulative=True),
    "running sums of lines": Total(kind="sum", column="x", by=["t", "w"], cumulative=True),
    "quantiles": Quantile(column="x", rank=[0.1, 0.7]),
    "quantiles by groups": Quantile(column="x", rank=[0.5, 0.9], by="g"),
    "independence": Independence(column="t", other="g"),
}


def made(name: str) -> Workload:
    return workload(ASKED[name].read(SCHEMA).statistics[0], SCHEMA, ROWS)


def added() -> Any:
    """The codes of every row that there may be, NULL among them."""
    return [
        {name: np.array([code], dtype=kind.dtype) for (name, kind), code in zip(SCHEMA.items(), row, strict=True)}
        for row in itertools.product(*(range(kind.codes + 1) for kind in SCHEMA.values()))
    ]  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_no_two_rows_are_farther_apart_than_it_says(name: str) -> None:
    """The twin with a row's own length for the distance of two is caught; so is one that forgets other lines."""
    told = made(name)
    assert told.sums is not None and told.joint is not None
    (measurement,), (scale,) = told.measurements, told.joint.scales
    vectors = np.unique([told.sums.encoded(measurement.totals(row)) for row in added()], axis=0)
    apart = max(int(((one - vectors) ** 2).sum(axis=1).max()) for one in vectors)
    longest = int((vectors**2).sum(axis=1).max())
    assert apart <= told.joint.l2_squared * scale**2 < apart + scale**2
    assert longest < apart
    if name.startswith("running"):
        assert longest <= told.joint.radius_squared * scale**2


def statements(name: str, told: Workload) -> list[tuple[int, Any]]:
    """For each statement its class, and its weights on the whole numbers that are told."""
    assert told.sums is not None
    if told.statistic.cells is not None:
        cells = np.eye(6).reshape(6, 2, 3)
        found: list[tuple[int, Any]] = []
        for i, j in itertools.product(range(2), range(3)):
            line, column = cells[:, i].sum(axis=1), cells[:, :, j].sum(axis=1)
            one = cells[:, i, j]
            found += enumerate((one, line - one, column - one, 1 - line - column + one))
        return [*found, (4, np.ones(6))]
    root = told.sums.running
    assert root is not None
    size, held = len(root.factors), told.measurements[0].size
    encode = np.stack([root.encoded(row) for row in np.eye(size, dtype=np.int64)]).T
    read = np.tril(np.ones((size, size))) @ np.linalg.inv(encode)
    lines = [np.kron(np.eye(held // size)[line], read) for line in range(held // size)]
    if told.statistic.ranks:
        return [
            (0, weights - float(rank) * line[-1])
            for line in lines
            for rank in told.statistic.ranks
            for weights in line
        ]
    return [(math.ceil(math.log2(e + 1)), weights) for line in lines for e, weights in enumerate(line)]


@pytest.mark.parametrize("name", ASKED)
def test_every_statement_is_counted_and_its_weights_are_no_longer_than_its_class(name: str) -> None:
    told = made(name)
    assert told.sums is not None
    written = statements(name, told)
    assert told.sums.statements == len(written)
    for kind, norm in enumerate(told.sums.norms):
        longest = max(float(weights @ weights) for place, weights in written if place == kind)
        assert longest <= norm * (1 + 1e-9) and norm == pytest.approx(longest)


def test_every_running_total_has_the_half_width_of_its_class() -> None:
    """Numbers of both signs, whose running totals may fall: nothing moves their ends."""
    told = made("running sums")
    assert told.sums is not None
    reaches = tuple(float(2**place) for place in range(len(told.sums.norms)))
    read = read_sums(told, np.zeros(5, dtype=np.int64), reaches, ROWS)
    assert (read.high - read.low) / 2 == pytest.approx([1, 2, 4, 4, 8])


def test_a_row_of_numbers_of_both_signs_may_go_from_one_end_to_the_other() -> None:
    """In one line and one group: the square of the whole range times a row's length, which is the farthest."""
    joint = sums._by_root(strategy(3), -2, 3, 1, 1)
    factors = strategy(3).factors
    assert joint.l2_squared * 9 >= 25 * int((factors**2).sum())
    assert joint.times(2).l2_squared == 4 * joint.l2_squared and joint.radius_squared == Fraction(
        strategy(3).longest
    )
