"""Tables that are called otherwise in a statement."""

from __future__ import annotations

import pytest

import holdfast as hf
from holdfast.errors import QueryError
from holdfast.planning.sql_question import Sql
from holdfast.query.lookup_schema import Joined, LookupSchema
from holdfast.query.schema import Schema
from holdfast.query.table_aliases import without_aliases
from query.test_across import LONE, UNITS

ROWS = hf.Schema(age=hf.Integer(0, 120), region=hf.Category("north", "south"))
BESIDE = LookupSchema(ROWS, [Joined("towns", (("region", "region"),), (("size", hf.Integer(0, 9)),), "0")])


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("SELECT count(*) FROM t", "SELECT count(*) FROM t"),
        ("SELECT avg(v.cost) FROM visits AS v", "SELECT avg(visits.cost) FROM visits"),
        ("SELECT avg(V.cost) FROM visits v WHERE v . x > 3", "SELECT avg(visits.cost) FROM visits WHERE visits. x > 3"),
        ('SELECT avg("a ""b".cost) FROM visits "a ""b"', "SELECT avg(visits.cost) FROM visits"),
        (
            "SELECT avg(v.cost) FROM visits v JOIN people p ON v.person = p.person WHERE town = 'v.p'",
            "SELECT avg(visits.cost) FROM visits JOIN people ON visits.person = people.person WHERE town = 'v.p'",
        ),
        (
            "SELECT count(*) FROM people x WHERE EXISTS (SELECT 1 FROM visits x WHERE x.day = 3) AND x.age > 3",
            "SELECT count(*) FROM people WHERE EXISTS (SELECT 1 FROM visits WHERE visits.day = 3) AND people.age > 3",
        ),
        (
            "EXISTS (SELECT 1 FROM visits v WHERE v.person = p.person) AND v.age > 3",
            "EXISTS (SELECT 1 FROM visits WHERE visits.person = p.person) AND v.age > 3",
        ),
        *((text, text) for text in (
            "SELECT count(*) FROM visits GROUP BY ward",
            "SELECT count(*) FROM visits TABLESAMPLE (10 PERCENT)",
            "SELECT count(*) FROM visits OFFSET 3",
            "SELECT count(*) FROM people SEMI JOIN visits USING (person)",
            "SELECT count(*) FROM people ANTI JOIN visits USING (person)",
            "SELECT count(*) FROM people POSITIONAL JOIN visits",
            "SELECT count(*) FROM visits v, people p",
            "SELECT avg(x) FROM (SELECT age AS x FROM t) AS v",
            "SELECT avg(mean.age) AS mean FROM t",
            "SELECT count(*) FROM main.visits",
            "SELECT count(*) FROM visits v.visits",
        )),
    ],
)  # fmt: skip
def test_tables_are_called_by_their_names(text: str, without: str) -> None:
    assert without_aliases(text) == without


@pytest.mark.parametrize(
    ("text", "same", "schema"),
    [
        ("SELECT avg(x.age) FROM t x WHERE x.age > 3", "SELECT avg(age) FROM t WHERE age > 3", ROWS),
        ("SELECT t.region, sum(t.age) FROM t GROUP BY 1", "SELECT region, sum(age) FROM t GROUP BY region", ROWS),
        (
            "WITH old AS (SELECT p.age * 2 AS twice FROM t p WHERE p.age > 60) SELECT avg(o.twice) FROM old o",
            "SELECT avg(age * 2) FROM t WHERE age > 60",
            ROWS,
        ),
        (
            "SELECT avg(w.size) FROM t AS r LEFT JOIN towns AS w ON r.region = w.region",
            "SELECT avg(size) FROM t LEFT JOIN towns USING (region)",
            BESIDE,
        ),
        ("SELECT avg(f.delay) FROM it f WHERE f.delay > 3", "SELECT avg(delay) FROM it WHERE delay > 3", LONE),
        (
            "SELECT p.region, avg(v.cost) FROM visits AS v JOIN people AS p ON v.person = p.person GROUP BY p.region",
            "SELECT region, avg(cost) FROM visits JOIN people USING (person) GROUP BY region",
            UNITS,
        ),
        (
            "SELECT count(*) FROM people p WHERE NOT EXISTS "
            "(SELECT 1 FROM visits v WHERE v.person = p.person AND v.cost > p.age)",
            "SELECT count(*) FROM people WHERE NOT exists(visits, cost > people.age)",
            UNITS,
        ),
        (
            "SELECT avg(cost) FROM visits v "
            "WHERE EXISTS (SELECT 1 FROM drugs d WHERE d.person = v.person AND dose > 9)",
            "SELECT avg(cost) FROM visits WHERE exists(drugs, dose > 9)",
            UNITS,
        ),
    ],
)  # fmt: skip
def test_a_statement_with_aliases_is_the_same_question(text: str, same: str, schema: Schema) -> None:
    found, other = (Sql(text=each).read(schema).statistics for each in (text, same))
    assert found == other and [each.key for each in found] == [each.key for each in other]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT avg(visits.cost) FROM main.visits", "expected JOIN"),
        ("SELECT avg(a.cost) FROM visits a JOIN visits b USING (person)", "visits joined with itself"),
        ("SELECT count(*) FROM visits JOIN visits USING (person)", "visits joined with itself"),
        ("SELECT count(*) FROM people a JOIN people b USING (person)", "joined twice"),
        ("SELECT count(*) FROM people p SEMI JOIN visits USING (person)", "expected JOIN"),
        ("SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.person = v.person)", "joined to"),
        ("SELECT avg(x.cost) FROM visits v", "no table 'x'"),
    ],
)  # fmt: skip
def test_what_is_no_alias_and_tables_twice_are_refused(text: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        Sql(text=text).read(UNITS)


def test_a_public_table_is_joined_once() -> None:
    with pytest.raises(QueryError, match="joined twice"):
        Sql(text="SELECT avg(a.size) FROM t JOIN towns a USING (region) JOIN towns b USING (region)").read(
            BESIDE
        )
