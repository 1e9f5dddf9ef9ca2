"""What tools and people write around a question means nothing: the same question, and errors in the text as it was."""

from __future__ import annotations

import duckdb
import pytest

import holdfast as hf
from holdfast.errors import QueryError
from holdfast.query.across import parse_statement

SCHEMA = hf.Schema(
    age=hf.Integer(0, 99),
    region=hf.Category("north", "south"),
    cost=hf.Real(0, 500),
    visit=hf.Date("2023-01-01", "2024-12-31"),
)
PAIRS = [
    ("SELECT p.region r, count(*) n FROM main.people AS p WHERE p.age > 3 GROUP BY p.region ORDER BY n DESC",
     "SELECT region AS r, count(*) AS n FROM people WHERE age > 3 GROUP BY region ORDER BY n DESC"),
    ('SELECT "people"."region" AS "region", COUNT(*) "count" FROM "main"."people" "people" GROUP BY 1',
     'SELECT region AS region, count(*) AS "count" FROM people GROUP BY region'),
    ("SELECT people.region, avg(people.cost) FROM people GROUP BY people.region",
     "SELECT region, avg(cost) FROM people GROUP BY region"),
    ("WITH w AS (SELECT p.region r, cost / 2 half FROM people p WHERE P.age > 3) "
     "SELECT w.r, avg(w.half) m FROM w GROUP BY w.r",
     "SELECT region AS r, avg(cost / 2) AS m FROM people WHERE age > 3 GROUP BY region"),
    ("SELECT x.r, count(*) FROM (SELECT region r FROM people) x GROUP BY x.r",
     "SELECT region AS r, count(*) FROM people GROUP BY region"),
    ("SELECT extract(year FROM p.visit) y, count(*) n FROM people p GROUP BY y",
     "SELECT year(visit) AS y, count(*) AS n FROM people GROUP BY year(visit)"),
    ("SELECT region, sum(count(*)) OVER (ORDER BY region) up FROM people GROUP BY region",
     "SELECT region, sum(count(*)) OVER (ORDER BY region) AS up FROM people GROUP BY region"),
    ("SELECT region, count(*) FROM people GROUP BY ALL", "SELECT region, count(*) FROM people GROUP BY region"),
    ("SELECT region r, age > 40 AS old, count(*) FROM people GROUP BY ALL",
     "SELECT region AS r, age > 40 AS old, count(*) FROM people GROUP BY region, age > 40"),
    ("SELECT CASE WHEN age > 40 THEN 'a' ELSE 'b' END who, count(*) FROM people GROUP BY who",
     "SELECT CASE WHEN age > 40 THEN 'a' ELSE 'b' END AS who, count(*) FROM people GROUP BY who"),
]  # fmt: skip


@pytest.mark.parametrize(("theirs", "ours"), PAIRS)
def test_they_mean_the_same(theirs: str, ours: str) -> None:
    found, expected = parse_statement(theirs, SCHEMA)[0], parse_statement(ours, SCHEMA)[0]
    assert found == expected
    assert [name for name, _ in found.arrangement.shown] == [name for name, _ in expected.arrangement.shown]
    assert found.arrangement.order == expected.arrangement.order


@pytest.mark.parametrize(("theirs", "ours"), PAIRS)
def test_and_they_do_in_a_database(theirs: str, ours: str) -> None:
    """The other side: DuckDB takes both for the same question."""
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE people (age INTEGER, region VARCHAR, cost DOUBLE, visit DATE)")
        engine.execute("INSERT INTO people SELECT i % 99, CASE WHEN i % 3 = 0 THEN 'north' ELSE 'south' END, i, "
                       "DATE '2023-01-01' + CAST(i AS INTEGER) FROM range(700) r(i)")  # fmt: skip
        assert sorted(engine.execute(theirs).fetchall()) == sorted(engine.execute(ours).fetchall())


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        ("SELECT avg(p.¦cots) FROM people p", "did you mean cost"),
        ("SELECT avg(¦q.cost) FROM people p", "no column 'q'"),
        ("SELECT p.region ¦r s, count(*) FROM people p GROUP BY r", "no column 'r'"),
        ("SELECT ¦region FROM people p GROUP BY region", "for each group alone write count(*)"),
    ],
)
def test_errors_point_at_what_is_wrong(marked: str, message: str) -> None:
    text, place = marked.replace("¦", ""), marked.index("¦")
    with pytest.raises(QueryError) as caught:
        parse_statement(text, SCHEMA)
    assert message in str(caught.value)
    assert caught.value.text is not None and caught.value.position is not None
    if "count(*)" not in message:  # which is of the whole statement
        assert caught.value.text[caught.value.position :].split()[0] == text[place:].split()[0]


def test_long_statements_are_refused_in_time() -> None:
    """Thousands of SELECTs inside one another, and of names of the table, are not looked at thousands of times each."""
    for text in (
        "SELECT " + "(SELECT a b FROM " * 3_800,
        "SELECT p.age" + " + p.age" * 8_000 + " FROM people p",
    ):
        with pytest.raises(QueryError):
            parse_statement(text, SCHEMA)
