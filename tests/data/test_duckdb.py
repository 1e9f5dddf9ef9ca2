"""Totals computed by DuckDB are the evaluator's, on generated tables and questions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from data.tables import LABELS, SCHEMA, arrow, generated, whole
from holdfast.data.duckdb import DuckSource, stream_source
from holdfast.errors import HoldfastError
from holdfast.query import expression
from holdfast.query.grouping import Cross, grouping
from holdfast.query.measurement import Measurement
from holdfast.query.parse import parse_expression, parse_predicate
from holdfast.query.predicate import Always
from holdfast.query.statistic import Statistic, workload

KIND = '"kind of ""thing"""'
OPERATORS = st.sampled_from(["<", "<=", ">", ">=", "=", "<>"])
LABEL = st.sampled_from(LABELS).map(lambda label: "'" + label.replace("'", "''") + "'")
DAY = st.dates(SCHEMA["visit"].first, SCHEMA["visit"].last).map(lambda day: f"'{day}'")
NUMBER = st.sampled_from(["0", "1", "-1", "0.1", "40.5", "120", "1e5", str(2**53 + 1), str(-(2**61))])


def joined(*parts: Any) -> st.SearchStrategy[str]:
    return st.tuples(*(st.just(part) if isinstance(part, str) else part for part in parts)).map(" ".join)


values = st.recursive(
    st.sampled_from(["age", "wide", "income", "2", "0.5"]),
    lambda inner: st.one_of(
        joined("(", inner, st.sampled_from(["+", "-", "*"]), inner, ")"),
        joined("abs(", inner, ")"),
        joined(st.sampled_from(["least(", "greatest("]), inner, ",", inner, ")"),
    ),
    max_leaves=4,
)
conditions = st.recursive(
    st.one_of(
        joined(values, OPERATORS, NUMBER),
        joined(values, OPERATORS, values),
        joined(KIND, st.sampled_from(["=", "<>"]), LABEL),
        joined("visit", OPERATORS, DAY),
        joined(st.sampled_from(["age", "income", KIND, "insured", "visit"]), "IS NULL"),
        st.sampled_from(["insured", "NOT insured"]),
    ),
    lambda inner: (
        joined("(", inner, st.sampled_from(["AND", "OR"]), inner, ")") | joined("NOT (", inner, ")")
    ),
    max_leaves=5,
)
groups = st.sampled_from(
    [
        None,
        grouping(SCHEMA, 'kind of "thing"'),
        grouping(SCHEMA, "insured"),
        grouping(SCHEMA, "age"),
        grouping(SCHEMA, "visit"),
        grouping(SCHEMA, "income", [-1.5, 0.1, 1e4, 5e5]),
        grouping(SCHEMA, "age", [10, 20, 120]),
    ]
)


@st.composite
def measurements(draw: st.DrawFn, rows: int) -> Measurement:
    kind = draw(st.sampled_from(["count", "sum", "mean"]))
    by = draw(groups)
    try:
        where = parse_predicate(draw(conditions), SCHEMA) if draw(st.integers(0, 4)) else Always()
        value = parse_expression(draw(values), SCHEMA) if kind != "count" else None
        assume(value is None or np.subtract(*expression.range(value, SCHEMA)) != 0)
        found = workload(Statistic(kind, where, value, by), SCHEMA, rows).measurements  # type: ignore[arg-type]
    except HoldfastError:
        assume(False)
        raise
    chosen = draw(st.sampled_from(found))
    if by is not None and chosen.value is None and draw(st.booleans()):
        return replace(chosen, by=Cross(by, grouping(SCHEMA, "insured")))
    return chosen


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
@given(data=st.data(), rows=st.integers(1, 300), seed=st.integers(0, 2**32))
def test_totals_are_the_evaluators(data: st.DataObject, rows: int, seed: int) -> None:
    source = stream_source(arrow(generated(rows, seed)), SCHEMA)
    block = whole(source)
    for _ in range(4):
        measurement = data.draw(measurements(rows))
        np.testing.assert_array_equal(source.totals(measurement), measurement.totals(block))
    source.close()


class Careless(Measurement):
    """A broken twin: NULL codes are counted like values."""

    def sql(self, relation: str) -> str:
        return super().sql(relation).replace(" WHERE ", " WHERE TRUE OR ", 1)


def test_a_careless_rendering_is_caught() -> None:
    source = stream_source(arrow(generated(200, seed=4)), SCHEMA)
    where = parse_predicate("age > 40", SCHEMA)
    sound, flawed = Measurement(SCHEMA, where), Careless(SCHEMA, where)
    assert isinstance(source, DuckSource)
    np.testing.assert_array_equal(source.totals(sound), sound.totals(whole(source)))
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(source.totals(flawed), flawed.totals(whole(source)))
