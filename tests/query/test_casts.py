"""Casts to numbers and if(...) mean what they mean in DuckDB, and what engines disagree about is refused."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest

import holdfast as hf
from holdfast.errors import QueryError
from holdfast.query.across import parse_statement
from holdfast.query.parse import parse_expression, parse_predicate
from holdfast.session.session import Session

draw = np.random.default_rng(4)
ROWS = pd.DataFrame(
    {
        "age": draw.integers(0, 100, 500),
        "smoker": draw.random(500) < 0.3,
        "cost": draw.gamma(2, 50, 500).round(2),
        "region": draw.choice(["North", "south", "South-East"], 500),
    }
)
SCHEMA = hf.Schema(
    age=hf.Integer(0, 99),
    smoker=hf.Boolean(),
    cost=hf.Real(0, 900),
    region=hf.Category("North", "south", "South-East"),
)


@pytest.fixture(scope="module")
def session() -> Session:
    return hf.open(ROWS, SCHEMA).session(rho=9e9, target="table")


@pytest.mark.parametrize(
    "aggregate",
    [
        "avg(age::float)",
        "avg(CAST(age AS DOUBLE))",
        "avg(CAST(age AS double precision) / 2)",
        "avg(age::numeric(9, 2) + 1)",
        "avg(CAST(age AS decimal(9,2)))",
        "avg((age > 40)::int)",
        "avg(CAST(age > 40 AS INTEGER))",
        "sum(CAST(smoker AS bigint))",
        "sum(smoker::int * age)",
        "avg(age::int::double)",
        "avg(CAST(CAST(age > 40 AS INT) AS DOUBLE) * cost)",
        "avg(if(age > 40, cost, 0))",
        "avg(if(age > 40, 1, if(age > 20, 2, 3)))",
        "sum(if(smoker, 1, 0)::int + age)",
        "count(*) FILTER (WHERE region ILIKE 's%')",
        "count(*) FILTER (WHERE region NOT ILIKE '%TH')",
        "avg(abs(age - 50)::double)",
        "avg(CASE WHEN smoker THEN 1 ELSE 2 END::double)",
    ],
)
def test_as_in_duckdb(session: Session, aggregate: str) -> None:
    text = f"SELECT {aggregate} FROM rows"
    with duckdb.connect() as engine:
        engine.register("rows", ROWS)
        row = engine.execute(text).fetchone()
    assert row is not None
    assert session.sql_one(text, rho=1e8).value == pytest.approx(float(row[0]), rel=1e-5)


def test_the_share_of_a_condition_is_the_same_question_cast_or_not() -> None:
    plain, cast = (
        parse_statement(f"SELECT avg({each}) FROM t", SCHEMA)[0] for each in ("age > 40", "(age > 40)::int")
    )
    assert plain == cast


def test_other_names_of_if() -> None:
    found = {parse_expression(f"{name}(age > 3, age, 0)", SCHEMA) for name in ("if", "IFF", "iif")}
    assert found == {parse_expression("CASE WHEN age > 3 THEN age ELSE 0 END", SCHEMA)}
    assert parse_expression("if(age > 3, age)", SCHEMA) == parse_expression(
        "CASE WHEN age > 3 THEN age END", SCHEMA
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cost::int", "write floor(x), or floor(x + 0.5)"),
        ("CAST(cost AS INTEGER)", "write floor(x), or floor(x + 0.5)"),
        ("region::int", "not a number"),
        ("age::varchar", "a cast is to a number"),
        ("CAST(age AS varchar)", "a cast is to a number"),
        ("CAST(age AS decimal(9, x))", "a cast is to a number"),
        ("CAST(AS int)", "takes one number"),
        ("if(age > 3)", "ends too early"),
        ("if(age > 3, 1, 2, 3)", "cannot read"),
        ("if(", "ends too early"),
        ("::int", "a cast is to a number"),
        ("age::", "a cast is to a number"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_expression(text, SCHEMA)
    assert message in str(caught.value)


def test_ilike_is_over_declared_labels() -> None:
    assert parse_predicate("region ILIKE 'SOUTH%'", SCHEMA) == parse_predicate(
        "region IN ('south', 'South-East')", SCHEMA
    )
    with pytest.raises(QueryError, match="of a text column write LIKE"):
        parse_predicate("note ILIKE 'a%'", hf.Schema(note=hf.Text(3)))


def test_deep_nesting_is_refused_in_time() -> None:
    for opening, closing in (("if(age > 3, ", ", 0)"), ("CAST(", " AS int)"), ("(", ")::int")):
        count = 60_000 // len(opening + closing)
        with pytest.raises(QueryError):
            parse_expression(opening * count + "age" + closing * count, SCHEMA)
