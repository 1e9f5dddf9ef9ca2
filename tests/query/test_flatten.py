"""WITH and subqueries in FROM mean what a database means by them; what cannot be flattened is refused at its place."""

from __future__ import annotations

import pytest

from holdfast.errors import QueryError
from holdfast.query.schema import Category, Integer, Real, Schema
from holdfast.query.select import parse_select

SCHEMA = Schema(age=Integer(0, 120), income=Real(0, 9), smoker=Category("no", "yes"))
SAME = [
    (
        "WITH old AS (SELECT * FROM people WHERE age > 60) SELECT avg(income) AS m FROM old WHERE smoker = 'yes'",
        "SELECT avg(income) AS m FROM people WHERE age > 60 AND smoker = 'yes'",
    ),
    (
        "SELECT smoker, avg(x) FROM (SELECT smoker, age / 2 + 1 AS x FROM people WHERE age > 60) AS s GROUP BY smoker",
        "SELECT smoker, avg(age / 2 + 1) FROM people WHERE age > 60 GROUP BY smoker",
    ),
    (
        "WITH a AS (SELECT age AS x, smoker FROM people WHERE age > 9 OR smoker = 'no'), "
        "b AS (SELECT x * 2 AS y, smoker AS s FROM a WHERE x < 50) "
        "SELECT s, sum(y) AS total FROM b WHERE y > 3 OR s = 'no' GROUP BY s ORDER BY total DESC LIMIT 1",
        "SELECT smoker AS s, sum(age * 2) AS total FROM people WHERE (age > 9 OR smoker = 'no') AND age < 50 "
        "AND (age * 2 > 3 OR smoker = 'no') GROUP BY smoker ORDER BY total DESC LIMIT 1",
    ),
    (
        "SELECT s.band, count(*) FROM (SELECT floor(age / 10) AS band FROM people) s GROUP BY s.band ORDER BY s.band",
        "SELECT floor(age / 10) AS band, count(*) FROM people GROUP BY floor(age / 10) ORDER BY floor(age / 10)",
    ),
    (
        "SELECT avg(age) AS age FROM (SELECT age FROM people) GROUP BY age ORDER BY age",
        "SELECT avg(age) AS age FROM people GROUP BY age ORDER BY 1",
    ),
]


@pytest.mark.parametrize(("nested", "flat"), SAME, ids=range(len(SAME)))
def test_a_flat_statement_asks_the_same(nested: str, flat: str) -> None:
    one, other = parse_select(nested, SCHEMA), parse_select(flat, SCHEMA)
    assert one.by == other.by
    assert one.where == other.where
    assert [(a.kind, a.expression) for a in one.aggregates] == [
        (a.kind, a.expression) for a in other.aggregates
    ]
    assert one.table == "people"
    assert one.arrangement.order == other.arrangement.order
    assert one.arrangement.limit == other.arrangement.limit


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        ("SELECT avg(n) FROM (SELECT smoker, ¦count(*) AS n FROM t GROUP BY smoker)", "ask twice"),
        ("SELECT avg(age) FROM (SELECT age FROM t ¦ORDER BY age)", "put ORDER BY outside"),
        ("SELECT avg(age) FROM (SELECT age FROM t ¦LIMIT 5)", "put LIMIT outside"),
        ("SELECT avg(age) FROM (SELECT ¦DISTINCT age FROM t)", "put DISTINCT outside"),
        ("SELECT avg(¦income) FROM (SELECT age FROM t)", "no column 'income' in the subquery; it has age"),
        ("SELECT avg(¦agee) FROM (SELECT * FROM t)", "did you mean age"),
        ("SELECT avg(x) FROM (SELECT ¦age + 1 FROM t)", "needs a name"),
        ("SELECT avg(x) FROM (SELECT ¦agee + 1 AS x FROM t)", "did you mean age"),
        ("WITH ¦a (SELECT age FROM t) SELECT avg(age) FROM a", "name AS (SELECT"),
        ("WITH a AS (SELECT age FROM t) ¦DELETE FROM a", "no column"),
        ("SELECT avg(age) FROM (SELECT age FROM t) AS a ¦, b", "nothing beside it"),
        ("SELECT avg(age) FROM (SELECT age FROM t ¦JOIN u)", "leave this out"),
        ("SELECT count(*) FROM t WHERE age IN (¦SELECT age FROM t)", "stands in FROM or WITH"),
    ],
)
def test_what_cannot_be_flattened_is_refused(marked: str, message: str) -> None:
    text, place = marked.replace("¦", ""), marked.index("¦")
    with pytest.raises(QueryError) as caught:
        parse_select(text, SCHEMA)
    assert message in str(caught.value)
    assert caught.value.position == place, str(caught.value)


def test_nesting_ends_somewhere() -> None:
    def nested(times: int) -> str:
        inner = "t"
        for _ in range(times):
            inner = f"(SELECT age + 1 AS age FROM {inner})"
        return f"SELECT avg(age) FROM {inner}"

    assert str(parse_select(nested(8), SCHEMA).aggregates[0].expression).count("1") == 8
    with pytest.raises(QueryError, match="16 deep"):
        parse_select(nested(1000), SCHEMA)
    doubled = "t"
    for _ in range(16):
        doubled = f"(SELECT age + age AS age FROM {doubled})"
    with pytest.raises(QueryError, match="too large once"):
        parse_select(f"SELECT avg(age) FROM {doubled}", SCHEMA)
