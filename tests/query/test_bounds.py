"""No row that a condition chooses leaves the bounds: by brute force against the evaluator, with twins that break."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

import holdfast as hf
from holdfast.errors import QueryError
from holdfast.query import bounds as module
from holdfast.query.bounds import bounds
from holdfast.query.evaluate import compile_expression, compile_predicate
from holdfast.query.expression import range as declared
from holdfast.query.parse import parse_expression, parse_predicate
from holdfast.query.predicate import Predicate
from holdfast.query.schema import Schema
from holdfast.query.statistic import Statistic, workload

from . import kleene
from .questions import SCHEMA as WIDE
from .questions import arithmetic, edge_block, questions

SCHEMA = hf.Schema(x=hf.Integer(-3, 4), y=hf.Integer(-2, 2), z=hf.Real(-1.0, 2.0))
CODES = list(itertools.product(range(9), range(6), (-1.0, -0.5, 0.0, 0.25, 1.0, 2.0, math.nan)))
"""Every value of both integers and some of the real, NULL included."""
ROWS = {name: np.array([row[i] for row in CODES], SCHEMA[name].dtype) for i, name in enumerate(SCHEMA)}
EDGES = edge_block(400)

VALUES = ["x", "y", "z", "x * x", "x * x * x * x", "(x - y) * (x - y)", "abs(x)", "x * y", "2 * x - z", "z * z",
          "least(x, y, 1)", "greatest(x, z)", "-x", "x * x - x"]  # fmt: skip
CONDITIONS = [
    "x IS NOT NULL", "x IS NULL", "x > 1", "x BETWEEN -1 AND 2", "x < -1 OR x > 2", "x IN (-3, 4)", "x <> 0", "x = 2",
    "x > 1 AND y < 0", "x > 1 OR y < 0", "x > 1 OR x IS NULL", "NOT x > 1", "NOT (x > 1 AND y > 1)", "x < y", "x = y",
    "x >= y AND y > 0", "x <= z", "z > 0.3", "z > x", "x * x < 5", "x - y > 3", "2 * z < 1 AND z >= -0.5",
    "x * y > 3 OR x * y < -3", "(x > 3 AND z > 1) OR (x > 2 AND z < 0)", "x > y AND y > x", "x > 4", "z = 0.25",
]  # fmt: skip


def outside(value: str, where: Predicate, schema: Schema, rows: dict[str, Any]) -> list[float]:
    """The values of chosen rows that leave the bounds."""
    parsed = parse_expression(value, schema)
    lo, hi = bounds(parsed, where, schema)
    least, most = declared(parsed, schema)
    assert least <= lo <= hi <= most
    assert isinstance(lo, int) == isinstance(least, int) and isinstance(hi, int) == isinstance(most, int)
    values, null = compile_expression(parsed, schema)(rows)
    chosen = compile_predicate(where, schema)(rows)
    found = values[chosen & ~null] if null is not None else values[chosen]
    return [v for v in found.tolist() if not lo <= v <= hi]


@pytest.mark.parametrize("where", CONDITIONS)
def test_no_row_that_is_chosen_leaves_the_bounds(where: str) -> None:
    for value in VALUES:
        assert outside(value, parse_predicate(where, SCHEMA), SCHEMA, ROWS) == [], value


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(arithmetic, questions)
def test_no_row_of_any_table_leaves_them(value: Any, where: Any) -> None:
    try:
        parse_expression(kleene.sql(value), WIDE)
        predicate = parse_predicate(kleene.sql(where), WIDE)
    except QueryError:
        assume(False)
    assert outside(kleene.sql(value), predicate, WIDE, EDGES) == []


@pytest.mark.parametrize(
    ("value", "where", "expected"),
    [
        ("x", "x BETWEEN -1 AND 2", (-1, 2)),
        ("x", "x > 1", (2, 4)),
        ("x * x", "y = 0", (0, 16)),
        ("x * x", "x > 2", (9, 16)),
        ("2 * x + 1", "x >= 3", (7, 9)),
        ("x * y", "x * y > 3", (4, 8)),
        ("x", "x < y", (-3, 2)),
        ("x", "x > 3 OR x < -2", (-3, 4)),
        ("x", "(x = 1 AND y = 0) OR (x = 2 AND y = 1)", (1, 2)),
        ("x", "x > 1 OR y > 1", (-3, 4)),
        ("z", "z >= 0.5", (0.5, 2.0)),
        ("z", "x > 3", (-1.0, 2.0)),
        ("x * y", "x * y > 3 AND x * y < -3", (-8, 8)),
    ],
)
def test_bounds_are_as_near_as_they_should_be(value: str, where: str, expected: tuple[float, float]) -> None:
    """Also where no row can be meant: then the declared range stands."""
    assert bounds(parse_expression(value, SCHEMA), parse_predicate(where, SCHEMA), SCHEMA) == expected


def test_an_or_that_is_taken_for_an_and_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds.cache_clear()
    monkeypatch.setattr(module, "_any", module._all)
    assert outside("x", parse_predicate("x < y OR x * x < 5", SCHEMA), SCHEMA, ROWS)
    bounds.cache_clear()


def test_a_whole_number_that_is_compared_after_rounding_is_not_narrowed() -> None:
    """2^53 + 1 and 2^53 are one float: with the threshold off, a row that satisfies the condition is outside."""
    schema = hf.Schema(i=hf.Integer(0, 2**60), f=hf.Real(0.0, float(2**53)))
    rows = {"i": np.array([2**53 + 1], schema["i"].dtype), "f": np.array([float(2**53)])}
    where = parse_predicate("i <= f", schema)
    assert compile_predicate(where, schema)(rows)[0]
    assert outside("i", where, schema, rows) == []
    bounds.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_EXACT", 2.0**70)
        assert outside("i", where, schema, rows) == [2**53 + 1]
    bounds.cache_clear()


def test_a_mean_over_a_part_is_as_wide_as_that_part() -> None:
    """Spans, and so the noise, follow the condition; what is outside is refused arithmetic all the same."""
    value = parse_expression("x", SCHEMA)

    def span(where: str) -> int:
        work = workload(Statistic("mean", parse_predicate(where, SCHEMA), value), SCHEMA, 100)
        return work.measurements[0].high - work.measurements[0].low

    assert (span("x IS NOT NULL"), span("x BETWEEN -1 AND 2"), span("x > 2")) == (7, 3, 1)
    shapes = {
        workload(Statistic("mean", parse_predicate(where, SCHEMA), value), SCHEMA, 100).shape
        for where in ("y > 0", "y < 0", "x > 1", "x BETWEEN 2 AND 4")
    }
    assert len(shapes) == 2, "one plan for conditions with the same bounds, and for no others"


def test_steps_stay_on_the_grid_of_the_owner() -> None:
    """Values at the declared steps are not moved by rounding, wherever a condition puts the middle."""
    schema = hf.Schema(v=hf.Real(-1.0, 2.0, step=0.5))
    value = parse_expression("v", schema)
    work = workload(Statistic("mean", parse_predicate("v < 0.7", schema), value), schema, 10)
    total = work.measurements[0]
    rows = {"v": np.array([-1.0, -0.5, 0.0, 0.5])}
    assert total.grid is not None
    read = [total.grid.origin + u * total.grid.step for u in total.contributions(rows)]
    assert read == rows["v"].tolist()


def test_an_answer_is_never_where_no_row_can_be() -> None:
    """However few rows qualify, and whatever the noise says."""
    rows = {"x": np.arange(200) % 8 - 3, "y": np.zeros(200, int), "z": np.zeros(200)}
    session = hf.open(rows, SCHEMA).session(epsilon=3, delta=1e-6)
    for where, low, high in (("x BETWEEN -1 AND 2", -1, 2), ("x > 2", 3, 4), ("x * x < 2", -1, 1)):
        answer = session.mean("x", where, rho=1e-4)
        assert low <= answer.low <= answer.value <= answer.high <= high
    square = session.mean("x * x", rho=1e-4)
    assert 0 <= square.low <= square.high <= 16
    with pytest.raises(hf.InputError, match="the same number"):
        session.mean("x", "x = 2", rho=1e-4)
