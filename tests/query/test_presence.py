"""Where an expression is NULL: counted nowhere, in NumPy and in SQL; and what forgets it is caught."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.query import evaluate, presence
from holdfast.query.parse import parse_expression
from holdfast.query.predicate import Always, NotNull, Present
from holdfast.query.schema import Integer, Real, Schema
from holdfast.query.statistic import Statistic, workload

SCHEMA = Schema(x=Integer(0, 9), y=Integer(0, 3), z=Real(1, 5))
BLOCK = {
    name: SCHEMA[name].encode_array(np.array(values, dtype=object))
    for name, values in {"x": [4, 9, None, 6], "y": [0, 3, 1, 2], "z": [2, 3, 4, None]}.items()
}


@pytest.mark.parametrize(
    ("text", "partial"),
    [
        ("x + y", False),
        ("x / z", False),
        ("x / 2", False),
        ("x / y", True),
        ("3 + x / y", True),
        ("coalesce(x, 1)", False),
        ("coalesce(x, y)", True),
        ("coalesce(x, y / 2)", True),
        ("CASE WHEN x > 1 THEN x ELSE 0 END", False),
        ("CASE WHEN x > 1 THEN y ELSE 0 END", True),
        ("CASE WHEN x > 1 AND y > 1 THEN x * y ELSE 0 END", False),
        ("CASE WHEN x > 1 OR y > 1 THEN x ELSE 0 END", True),
        ("CASE WHEN x > 1 THEN 1 END", True),
        ("nullif(x, 3)", True),
    ],
)
def test_what_may_be_null_where_no_column_is(text: str, partial: bool) -> None:
    assert presence.is_partial(parse_expression(text, SCHEMA), SCHEMA) is partial


def test_what_always_has_a_value_is_not_asked_for() -> None:
    assert presence.known(parse_expression("coalesce(x, 1)", SCHEMA), schema=SCHEMA) == Always()
    assert presence.known(parse_expression("x / z", SCHEMA), schema=SCHEMA) != Always()
    quotient = parse_expression("x / y", SCHEMA)
    assert presence.known(quotient, schema=SCHEMA) == Present(quotient)
    assert presence.known(parse_expression("x * 1.5", SCHEMA), schema=SCHEMA) == NotNull("x")


def counted(text: str) -> tuple[float, int]:
    """The sum that a mean is made of, and over how many rows."""
    totals = workload(Statistic("mean", Always(), parse_expression(text, SCHEMA)), SCHEMA, 4)
    total, count = totals.measurements
    assert total.grid is not None
    rows = int(count.totals(BLOCK)[0]) // count.weight
    return total.totals(BLOCK)[0] * total.grid.step + total.grid.origin * rows, rows


def test_a_mean_is_over_the_rows_that_have_a_value() -> None:
    assert counted("x / y") == (pytest.approx(9 / 3 + 6 / 2, abs=1e-4), 2)
    assert counted("coalesce(x, 1)") == (20, 4)
    assert counted("CASE WHEN y > 1 THEN x END") == (15, 2)


def test_what_forgets_a_zero_divisor_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "_partial", lambda expression, schema: [])
    evaluate.compile_predicate.cache_clear()
    evaluate.compile_expression.cache_clear()
    assert counted("x / y")[1] == 3
    evaluate.compile_predicate.cache_clear()
    evaluate.compile_expression.cache_clear()
