"""Other engines' names for the same functions mean the same, and errors point at the text as it was written."""

from __future__ import annotations

import pytest

from holdfast.errors import QueryError
from holdfast.query.parse import parse_expression
from holdfast.query.schema import Date, Integer, Schema
from holdfast.query.select import parse_select
from holdfast.query.synonyms import NAMES

SCHEMA = Schema(
    age=Integer(0, 120), visit=Date("2020-01-01", "2026-12-31"), mean=Integer(0, 3), year=Integer(0, 9)
)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("EXTRACT(year FROM visit)", "year(visit)"),
        ("extract ( DOW from visit ) + 1", "dow(visit) + 1"),
        ("date_part('month', visit)", "month(visit)"),
        ("extract(dayofweek from visit)", "dow(visit)"),
        ("dayofyear(visit)", "doy(visit)"),
        ("weekday(visit)", "dow(visit)"),
        ("ifnull(age, 3)", "coalesce(age, 3)"),
        ("nvl(age, EXTRACT(day FROM visit))", "coalesce(age, day(visit))"),
        ("ceiling(age / 10)", "ceil(age / 10)"),
        ("mean + year", "mean + year"),
    ],
)
def test_functions(theirs: str, ours: str) -> None:
    assert parse_expression(theirs, SCHEMA) == parse_expression(ours, SCHEMA)


@pytest.mark.parametrize(
    "aggregate",
    [
        "percentile_cont(0.9) WITHIN GROUP (ORDER BY age)",
        "quantile(age, 0.9)",
        "quantile_cont(age, 0.9)",
    ],
)
def test_quantiles(aggregate: str) -> None:
    found = parse_select(f"SELECT {aggregate}, mean(year) FROM t", SCHEMA)
    assert [(each.kind, each.rank) for each in found.aggregates] == [("quantile", 0.9), ("avg", None)]


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        ("¦extract(decade FROM visit)", "takes a part (year"),
        ("¦date_part('era', visit)", "takes a part (year"),
        ("extract(year FROM ¦visitt)", "did you mean visit"),
        ("1 + extract(year FROM ¦age)", "timestamp column only"),
    ],
)
def test_refusals_point_at_the_place(marked: str, message: str) -> None:
    text, place = marked.replace("¦", ""), marked.index("¦")
    with pytest.raises(QueryError) as caught:
        parse_expression(text, SCHEMA)
    assert message in str(caught.value)
    assert caught.value.position == place, str(caught.value)


def test_every_synonym_has_a_meaning() -> None:
    assert not set(NAMES) & set(NAMES.values())


def test_deep_nesting_takes_linear_time() -> None:
    """Ten thousand functions inside one another are refused, and not looked at ten thousand times each."""
    for opening in ("abs(", "extract(year from ", "percentile_cont(0.5) within group (order by "):
        with pytest.raises(QueryError):
            parse_expression(opening * (60_000 // len(opening)), SCHEMA)
