"""Questions across the tables of one unit, in Python and in SQL."""

from __future__ import annotations

import copy

import pytest

import holdfast as hf
from holdfast.errors import QueryError
from holdfast.planning.quantile_question import Quantile
from holdfast.planning.question import Count, Fraction, Histogram, Total
from holdfast.planning.sql_question import Sql
from holdfast.query.across import scope
from holdfast.query.column import Boolean, ColumnType, Integer, Real
from holdfast.query.parse import parse_predicate
from holdfast.query.statistic import Statistic
from holdfast.query.unit_schema import Events, RowSchema, UnitSchema, schema_from_json

PEOPLE = hf.Schema(age=hf.Integer(0, 120), region=hf.Category("north", "south"))
VISITS = hf.Schema(
    cost=hf.Integer(-10, 1000),
    paid=hf.Real(0, 10, step=0.5),
    ward=hf.Category("surgery", "heart"),
    age=hf.Integer(0, 9),
)
DRUGS = hf.Schema(dose=hf.Integer(0, 50), day=hf.Date("2020-01-01", "2020-12-31"))
UNITS = UnitSchema(
    "person", PEOPLE, {"visits": Events(VISITS, 20), "drugs": Events(DRUGS, 3, "day")}, "people"
)
LONE = UnitSchema("tail", {}, {"rows": Events(hf.Schema(delay=hf.Integer(-60, 600)), 5)}, None)


def read(
    asked: Fraction | Count | Total | Histogram | Quantile | Sql, schema: UnitSchema = UNITS
) -> Statistic:
    (found,) = asked.read(schema).statistics
    return found


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("count(visits)", Integer(0, 20)),
        ("count(visits, cost > 100)", Integer(0, 20)),
        ("exists(drugs, dose > 3)", Boolean()),
        ("sum(visits.cost)", Integer(-200, 20_000)),
        ("sum(2 * cost - 5)", Integer(-500, 39_900)),
        ("sum(paid)", Real(0, 200)),
        ("avg(visits.cost)", Real(-10, 1000)),
        ("max(cost, ward = 'heart')", VISITS["cost"]),
        ("min(visits.paid)", VISITS["paid"]),
        ("first(drugs.dose)", DRUGS["dose"]),
        ("last(day, dose > 3)", DRUGS["day"]),
        ("(SELECT count(*) FROM visits WHERE visits.person = people.person)", Integer(0, 20)),
        ("EXISTS (SELECT 1 FROM drugs WHERE people.person = drugs.person AND dose > 3)", Boolean()),
    ],
)
def test_what_events_say_of_a_unit_is_a_column_with_a_range(name: str, kind: ColumnType) -> None:
    assert name in UNITS
    assert UNITS[name] == kind
    assert name not in list(UNITS)
    canonical = UNITS.spelling(name)
    assert canonical is not None and UNITS.spelling(canonical) == canonical


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("count(visits, cost>100 )>= 3", "count(visits, visits.cost >= 101) >= 3"),
        ("NOT exists(visits, ward = 'surgery')", "NOT exists(visits, ward = 'surgery')"),
        ("people.age > 40", "age >= 41"),
        ("sum(cost) + count(drugs) > age", "count(drugs) + sum(visits.cost) > age"),
        (
            "EXISTS (SELECT * FROM visits WHERE ward = 'heart' AND visits.person = people.person)",
            "exists(visits, visits.ward = 'heart')",
        ),
        (
            "(SELECT max(cost) FROM visits WHERE cost BETWEEN 3 AND 5 AND visits.person = people.person) > 3",
            "max(visits.cost, cost BETWEEN 3 AND 5) > 3",
        ),
        (
            "(SELECT count(ward) FROM visits WHERE visits.person = people.person) > 3",
            "count(visits, visits.ward IS NOT NULL) > 3",
        ),
        ("(SELECT min(paid) FROM visits WHERE visits.person = people.person) < 2", "min(visits.paid) < 2"),
        (
            "(SELECT first(dose) FROM drugs WHERE drugs.person = people.person AND dose > 2) = 3",
            "first(drugs.dose, dose > 2) = 3",
        ),
        (
            "(SELECT dose FROM drugs WHERE drugs.person = people.person ORDER BY day LIMIT 1) = 3",
            "first(drugs.dose) = 3",
        ),
        (
            "(SELECT drugs.dose FROM drugs WHERE drugs.person = people.person AND dose > 2 "
            "ORDER BY drugs.day DESC LIMIT 1) = 3",
            "last(drugs.dose, dose > 2) = 3",
        ),
    ],
)
def test_equal_questions_are_equal_values(text: str, canonical: str) -> None:
    found, other = parse_predicate(text, UNITS), parse_predicate(canonical, UNITS)
    assert found == other
    assert parse_predicate(str(found), UNITS) == found
    assert '"' not in str(found)


def test_what_a_question_is_about() -> None:
    assert read(Fraction(where="age > 4")).over is None
    assert read(Fraction(where="exists(visits)")).over is None
    assert read(Count(where="visits.age > 4")).over is not None
    events = read(
        Total(kind="mean", column="visits.cost", where="people.age > 40 AND region = 'north'", by="region")
    )
    assert events.over is not None and (events.over.table, events.over.most) == ("visits", 20)
    assert str(events).endswith("by region over rows of visits, at most 20 a person")
    assert read(Histogram(column="visits.ward")).over == events.over
    assert read(Quantile(column="dose", by="region")).over is not None
    assert str(read(Total(kind="mean", column="avg(visits.cost)"))) == "mean(avg(visits.cost))"
    assert isinstance(scope(UNITS, ["dose > 3 AND age > count(visits)"]), RowSchema)
    assert str(read(Count(where="delay > 15"), LONE)) == "count where delay >= 16 over rows, at most 5 a tail"
    assert read(Fraction(where="count(rows, delay > 15) >= 3"), LONE).over is None


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        (
            "SELECT ward, max(cost) FROM visits GROUP BY ward ORDER BY max(cost) DESC LIMIT 1",
            "quantile(visits.cost, 999/1000) by visits.ward over rows of visits, at most 20 a person",
        ),
        ("SELECT max(ward), count(*) FROM people GROUP BY max(ward)", "count by max(visits.ward)"),
        (
            "SELECT max(ward), count(*) FROM people GROUP BY max( ward ) ORDER BY count(*) LIMIT 1",
            "count by max(visits.ward)",
        ),
        ("SELECT count(visits), count(*) FROM people GROUP BY count(visits)", "count by count(visits)"),
        ("SELECT region, min(age) FROM people GROUP BY region", "quantile(age, 1/1000) by region"),
        ("SELECT region, avg(max(cost)) FROM people GROUP BY region", "mean(max(visits.cost)) by region"),
    ],
)
def test_a_selected_aggregate_is_asked_unless_it_is_grouped_by(statement: str, found: str) -> None:
    assert str(read(Sql(text=statement))) == found


def test_sql_is_the_same_question() -> None:
    joined = (
        "SELECT avg(cost) FROM visits JOIN people USING (person) WHERE people.age > 40 GROUP BY people.region"
    )
    on = (
        "SELECT region, avg(visits.cost) FROM people JOIN visits ON people.person = visits.person "
        "WHERE people.age > 40 GROUP BY region"
    )
    python = Total(kind="mean", column="visits.cost", where="people.age > 40", by="region")
    assert read(Sql(text=joined)) == read(Sql(text=on)) == read(python)
    assert read(Sql(text="SELECT count(*) FROM people")).over is None
    assert read(Sql(text="SELECT count(*) FROM visits")).over is not None
    exists = (
        "SELECT count(*) FROM people WHERE EXISTS (SELECT 1 FROM drugs WHERE drugs.person = people.person)"
    )
    assert read(Sql(text=exists)) == read(Count(where="exists(drugs)"))
    ordered = f"{joined} HAVING avg(cost) > 3 ORDER BY avg(cost) DESC LIMIT 1"
    assert read(Sql(text=ordered)) == read(python)
    assert read(Sql(text="SELECT avg(delay) FROM anything"), LONE).over is not None
    for least, column in (
        ("max(cost) FROM visits", "visits.cost"), ("min(age) FROM people", "age"),
        ("max(min(paid)) FROM people", "min(visits.paid)"), ("min(delay) FROM flights", "delay"),
    ):  # fmt: skip
        found = read(Sql(text=f"SELECT {least}"), LONE if column == "delay" else UNITS)
        assert f"quantile({column}, " in str(found) and (found.over is None) == (
            column in ("age", "min(visits.paid)")
        )
    assert read(Sql(text="SELECT avg(count(drugs)) FROM people")) == read(
        Total(kind="mean", column="count(drugs)")
    )


REFUSED = [
    ("visits.cost > 3 AND drugs.dose > 3", "rows of one table"),
    ("nothere.cost > 3", "no table 'nothere'"),
    ("visits.nope > 3", "visits has cost"),
    ("count(nothere) > 3", "no table of events 'nothere'"),
    ("count(visits, count(drugs) > 3) > 3", "inside another"),
    ("first(visits.cost) > 3", "none was declared"),
    ("max(cost + 1) > 3", "no cost"),
    ("sum(age) > 3", "column of events"),
    ("sum(visits.ward) > 3", "category"),
    ("count() > 3", "no table"),
    ("count(visits, cost > 3, cost > 4) > 3", "perhaps a condition"),
    ("EXISTS (SELECT 1 FROM visits WHERE cost > 3)", "joined to its unit"),
    ("EXISTS (SELECT 1 FROM visits WHERE visits.cost = people.person)", "joined to its unit"),
    ("EXISTS (SELECT 1 FROM visits WHERE visits.person = people.person OR cost > 3)", "AND"),
    ("EXISTS (SELECT 1 FROM visits, drugs WHERE visits.person = people.person)", "one table"),
    ("(SELECT cost FROM visits WHERE visits.person = people.person) > 3", "scalar subquery"),
    *(
        (
            f"(SELECT {what} FROM drugs WHERE drugs.person = people.person {order}) > 3",
            "write ORDER BY day LIMIT 1",
        )
        for what, order in (
            ("dose", "LIMIT 1"),
            ("dose", "ORDER BY dose LIMIT 1"),
            ("dose", "ORDER BY day LIMIT 2"),
            ("dose", "ORDER BY day"),
            ("dose", "ORDER BY day, dose LIMIT 1"),
            ("dose", "ORDER BY people.day LIMIT 1"),
        )
    ),
    ("(SELECT dose + 1 FROM drugs WHERE drugs.person = people.person ORDER BY day LIMIT 1) > 3", "no dose"),
    (
        "(SELECT paid FROM visits WHERE visits.person = people.person ORDER BY age LIMIT 1) > 3",
        "which is none",
    ),
    ("count(visits", "not in the language"),
    ("visits > 3", "no column"),
    ("visits.cost > 3 AND age > 3", "two columns"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_what_is_not_in_the_language_is_refused_with_its_reason(text: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        Fraction(where=text).read(UNITS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT avg(cost) FROM visits JOIN drugs USING (person)", "rows of one table"),
        ("SELECT avg(cost) FROM visits JOIN people USING (ward)", "unit's key"),
        ("SELECT avg(cost) FROM visits JOIN people ON visits.age = people.age", "unit's key"),
        ("SELECT avg(cost) FROM visits LEFT JOIN people USING (person)", "plain JOIN"),
        ("SELECT avg(cost) FROM visits JOIN people USING (person) JOIN drugs USING (person)", "no third"),
        ("SELECT avg(cost) FROM nothere", "no table 'nothere'"),
        ("SELECT avg(cost) FROM people", "column of the rows of visits"),
        ("SELECT count(*) FROM", "FROM"),
    ],
)
def test_joins_by_another_key_or_of_two_tables_of_events_are_refused(text: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        Sql(text=text).read(UNITS)


def test_a_column_of_events_is_no_column_of_units() -> None:
    with pytest.raises(QueryError, match="asked of each person; write count"):
        parse_predicate("cost > 3", UNITS)
    with pytest.raises(QueryError, match="asked of each person; write count"):
        parse_predicate("visits.cost > 3", UNITS)
    assert "cost" not in UNITS and "visits.cost" not in UNITS


def test_the_declaration_travels() -> None:
    for schema in (UNITS, LONE):
        again = schema_from_json(schema.to_json())
        assert again == schema == copy.deepcopy(schema)
        assert hash(again) == hash(schema) and again != PEOPLE
    assert schema_from_json(PEOPLE.to_json()) == PEOPLE
    assert list(LONE) == ["count(rows)"]
    other = UnitSchema(
        "person", PEOPLE, {"visits": Events(VISITS, 21), "drugs": Events(DRUGS, 3, "day")}, "people"
    )
    assert other != UNITS
