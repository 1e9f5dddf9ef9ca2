"""The sums behind a difference: against the evaluator and DuckDB on every row, and their true sensitivity."""

from __future__ import annotations

import itertools

import duckdb
import numpy as np
import pandas as pd
import pytest

import holdfast as hf
from holdfast.query.difference import DifferenceMeasurement
from holdfast.query.evaluate import evaluate
from holdfast.query.parse import parse_predicate
from holdfast.query.statistic import Sensitivity, Statistic, workload

SCHEMA = hf.Schema(x=hf.Integer(-2, 3), t=hf.Boolean())
CODES = list(itertools.product(range(7), range(3)))
BLOCK = {name: np.array([row[i] for row in CODES], SCHEMA[name].dtype) for i, name in enumerate(SCHEMA)}
PAIRS = [
    ("x > 0", "t"),
    ("x > 0", "NOT x > 0"),
    ("x IS NULL", "t"),
    ("x * x < 3", "x < 2 OR t"),
    ("t", "x IS NOT NULL"),
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_sums_are_those_of_the_evaluator_and_of_duckdb(first: str, second: str) -> None:
    one, two = parse_predicate(first, SCHEMA), parse_predicate(second, SCHEMA)
    a, b = (evaluate(part, BLOCK, SCHEMA).astype(int) for part in (one, two))
    codes = pd.DataFrame(BLOCK)
    for disagreement, truth in ((False, a - b), (True, np.abs(a - b))):
        measured = DifferenceMeasurement(SCHEMA, one, two, disagreement)
        assert measured.contributions(BLOCK).tolist() == truth.tolist()
        assert measured.low <= truth.min() and truth.max() <= measured.high
        assert measured.totals(BLOCK).tolist() == [truth.sum()]
        with duckdb.connect() as engine:
            assert engine.sql(measured.sql("codes")).fetchall() == [(0, truth.sum())]
            none = measured.sql("(SELECT * FROM codes WHERE FALSE) AS none")
            assert engine.sql(none).fetchall() == [(0, 0)]
    assert len(codes) == len(CODES)


def test_a_row_moves_the_pair_as_far_as_is_charged() -> None:
    """By (2, 0) or (1, 1): with at least as much noise on the disagreement, the first is the worst.

    The twin has a quarter of that noise, and the second is."""
    work = workload(
        Statistic("difference", parse_predicate("x > 0", SCHEMA), other=parse_predicate("x < 0", SCHEMA)),
        SCHEMA,
        10,
    )
    assert work.sensitivity() == Sensitivity(2, 4)
    f = work.measurements[0].contributions(BLOCK)
    moves = [(int(a - b), int(abs(a) - abs(b))) for a, b in itertools.product(f.tolist(), repeat=2)]
    assert {(abs(x), abs(y)) for x, y in moves} == {(0, 0), (2, 0), (1, 1)}
    for noise, fine in ((4.0, True), (1.0, True), (0.25, False)):
        assert (max(x * x + y * y / noise for x, y in moves) <= work.sensitivity().l2_squared) is fine


def test_the_same_condition_twice_is_no_question() -> None:
    rows = {"x": np.zeros(50, int), "t": np.zeros(50, bool)}
    session = hf.open(rows, SCHEMA).session(epsilon=1, delta=1e-6)
    with pytest.raises(hf.InputError, match="the same number"):
        session.difference("x > 0", "0 < x", within=0.5)
