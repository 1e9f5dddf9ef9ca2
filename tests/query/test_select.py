"""SELECT statements: what they ask, and where everything else is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InputError, QueryError
from holdfast.query.arrangement import Arrangement, Combined, Compared
from holdfast.query.expression import Add, Column, Constant
from holdfast.query.parse import parse_predicate
from holdfast.query.predicate import Always
from holdfast.query.schema import Boolean, Category, Date, Integer, Real, Schema
from holdfast.query.select import MAX_AGGREGATES, Aggregate, Select, parse_select

SCHEMA = Schema(
    age=Integer(0, 120),
    income=Real(0, 500_000),
    smoker=Category("no", "yes"),
    insured=Boolean(),
    visit=Date("2020-01-01", "2026-12-31"),
    count=Integer(0, 9),
)
COUNT = Aggregate("count", None, "count(*)")


def test_what_statements_ask() -> None:
    over = parse_predicate("age > 40", SCHEMA)
    mean = Aggregate("avg", Column("income"), "avg(income)")
    for text, select in [
        (
            "SELECT smoker, avg(income) FROM t WHERE age > 40 GROUP BY smoker",
            Select((mean,), ("smoker",), over),
        ),
        (
            "select Avg(INCOME), smoker from T where 40 < age group  by smoker",
            Select((mean,), ("smoker",), over),
        ),
        ("SELECT count(*) FROM people", Select((COUNT,), (), Always())),
        ('SELECT COUNT(*) AS n FROM "my table"', Select((Aggregate("count", None, "n"),), (), Always())),
        (
            "SELECT count(smoker) FROM t",
            Select((Aggregate("count", Column("smoker"), "count(smoker)"),), (), Always()),
        ),
        (
            "SELECT median(age) FROM t",
            Select((Aggregate("quantile", Column("age"), "median(age)", 0.5),), (), Always()),
        ),
        (
            "SELECT quantile_cont(visit, 0.9) AS late, sum(age + 1) FROM t GROUP BY insured",
            Select(
                (
                    Aggregate("quantile", Column("visit"), "late", 0.9),
                    Aggregate("sum", Add(Column("age"), Constant(1)), "sum(age + 1)"),
                ),
                ("insured",),
                Always(),
            ),
        ),
        (
            "SELECT sum(count) FROM count GROUP BY age",
            Select((Aggregate("sum", Column("count"), "sum(count)"),), ("age",), Always()),
        ),
        ("SELECT count(*) FROM t GROUP BY visit", Select((COUNT,), ("visit",), Always())),
    ]:
        assert parse_select(text, SCHEMA) == select


def test_what_is_done_with_the_groups() -> None:
    def arrangement(tail: str) -> Arrangement:
        text = f"SELECT smoker, count(*) AS n, median(visit) FROM t GROUP BY smoker {tail}"
        return parse_select(text, SCHEMA).arrangement

    names = ("n", "median(visit)")
    shown = (("smoker", -1), ("n", 0), ("median(visit)", 1))
    assert arrangement("") == Arrangement(names, shown=shown)
    assert not arrangement("").changes
    for tail, order in [
        ("ORDER BY n", ((0, False),)),
        ("ORDER BY 2 DESC, smoker", ((0, True), (-1, False))),
        ("ORDER BY 1 ASC, 3 DESC", ((-1, False), (1, True))),
        ("order  by COUNT(*) desc, median(visit)", ((0, True), (1, False))),
    ]:
        assert arrangement(tail) == Arrangement(names, order, shown=shown)
    assert arrangement("LIMIT 7") == Arrangement(names, limit=7, shown=shown)
    few = Compared(0, "<", 5.0)
    for tail, having in [
        ("HAVING n < 5", few),
        ("HAVING NOT (5 <= count(*))", few),
        ("HAVING n < 5 AND n > -1", Combined((few, Compared(0, ">", -1.0)), True)),
        ("HAVING NOT (n >= 5 AND n = 2)", Combined((few, Compared(0, "<>", 2.0)), False)),
    ]:
        assert arrangement(tail).having == having
    # An alias stands before a column of the same name, after SELECT only.
    both = "SELECT avg(age) AS income FROM t WHERE income > 3 GROUP BY smoker ORDER BY income"
    assert parse_select(both, SCHEMA).arrangement.order == ((0, False),)


REFUSED: list[tuple[str, str]] = [
    # The mark ¦ stands before the place that must be pointed at.
    ("¦", "empty"),
    ("¦age > 3", "starts with SELECT"),
    ("SELECT¦", "FROM"),
    ("SELECT count(*)¦", "FROM"),
    ("¦SELECT FROM t", "between 1 and 64"),
    ("SELECT ¦* FROM t", "expected an aggregate"),
    ("SELECT ¦age FROM t", "in an aggregate"),
    ("SELECT ¦age, count(*) FROM t GROUP BY smoker", "in an aggregate"),
    ("¦SELECT smoker FROM t GROUP BY smoker", "between 1 and 64"),
    ("SELECT ¦DISTINCT age FROM t", "not part"),
    ("SELECT ¦ALL count(*) FROM t", "not part"),
    ("SELECT sum(¦DISTINCT age) FROM t", "not part"),
    ("SELECT ¦count(DISTINCT age, smoker) FROM t", "DISTINCT takes one"),
    ("SELECT ¦1 FROM t", "expected an aggregate"),
    ("SELECT ¦count(*) + 1 FROM t", "a share is avg(c)"),
    ("SELECT ¦abs(age) FROM t", "expected an aggregate"),
    ("SELECT min(¦smoker) FROM t", "no order"),
    ("SELECT ¦skewness(age) FROM t", "skewness is read off"),
    ("SELECT ¦string_agg(smoker) FROM t", "string_agg lists the values"),
    ("SELECT sum(¦smoker) FROM t", "not a number"),
    ("SELECT sum(¦insured) FROM t", "not a number"),
    ("SELECT sum(¦visit) FROM t", "not a number"),
    ("SELECT sum(¦*) FROM t", "expected a column"),
    ("SELECT sum(¦count(*)) FROM t", "expected a column"),
    ("SELECT sum(¦) FROM t", "cannot read"),
    ("SELECT ¦count() FROM t", "argument"),
    ("SELECT ¦count(age, income) FROM t", "argument"),
    ("SELECT count(¦age + 1) FROM t", "expected a column"),
    ("SELECT median(¦smoker) FROM t", "no order"),
    ("SELECT median(¦age + 1) FROM t", "expected a column"),
    ("SELECT ¦quantile_cont(income) FROM t", "column and a rank"),
    ("SELECT quantile_cont(income, ¦1) FROM t", "strictly between"),
    ("SELECT quantile_cont(income, ¦'a') FROM t", "strictly between"),
    ("SELECT quantile_cont(income, ¦age) FROM t", "strictly between"),
    ("SELECT sum(income) FILTER (WHERE ¦agee > 1) FROM t", "did you mean age"),
    ("SELECT smoker FILTER ¦(WHERE age > 1) FROM t GROUP BY smoker", "cannot read"),
    ("SELECT ¦sum(income) OVER () FROM t", "a running total is"),
    ("SELECT count(*), ¦FROM t", "comma"),
    ("SELECT count(*) ¦n m FROM t", "no column"),
    ("SELECT count(*) AS ¦'n' FROM t", "AS needs"),
    ("SELECT count(*) FROM ¦'people.csv'", "FROM needs"),
    ("SELECT count(*) FROM ¦read_csv('x')", "read_csv"),
    ("SELECT count(*) FROM (SELECT ¦1)", "FROM and a table"),
    ("SELECT count(*) FROM a¦.b", "not part"),
    ("SELECT count(*) FROM t, ¦u", "no column"),
    ("SELECT count(*) FROM t, ¦age", "not in the language"),
    ("SELECT count(*) FROM t ¦u", "no column"),
    ("SELECT count(*) FROM ¦t AS u", "plain table"),
    ("SELECT count(*) FROM t ¦JOIN u ON TRUE", "not part"),
    ("SELECT count(*) FROM t ¦TABLESAMPLE (10)", "function"),
    ("SELECT count(*) FROM t WHERE¦", "too early"),
    ("SELECT count(*) FROM t WHERE ¦age", "not a condition"),
    ("SELECT count(*) FROM t WHERE ¦agee > 3", "did you mean age"),
    ("SELECT count(*) FROM t WHERE ¦count(*) > 1", "expected a column"),
    ("SELECT count(*) FROM t WHERE age > (¦SELECT 1)", "inside another"),
    ("SELECT count(*) FROM t GROUP BY ¦income", "floor(income / 10)"),
    ("SELECT count(*) FROM t GROUP BY age, ¦agee", "did you mean age"),
    ("SELECT ¦count(*) FROM t GROUP BY 1", "makes none"),
    ("SELECT count(*) FROM t GROUP BY ¦2", "from 1 to 1"),
    ("SELECT count(*) FROM t GROUP BY ¦income + 1", "whole numbers"),
    ("SELECT count(*) FROM t GROUP BY ¦age * 10000", "divide it"),
    ("SELECT count(*) FROM t GROUP BY CASE WHEN age > 1 THEN 'a' ELSE ¦2 END", "texts only"),
    ("SELECT ¦year(visit), count(*) FROM t GROUP BY month(visit)", "in GROUP BY"),
    ("SELECT low(¦age), count(*) FROM t", "expected an aggregate"),
    ("SELECT ¦low(count(*), 2) FROM t", "takes one aggregate"),
    ("SELECT count(*) FROM t GROUP BY age ORDER BY ¦high(sum(age))", "something that is selected"),
    ("SELECT count(*) FROM t GROUP BY age ORDER BY ¦age / 2", "whole numbers"),
    ("SELECT count(*) FROM t GROUP BY age, ¦ALL", "not part"),
    ("SELECT count(*) FROM t GROUP BY ¦ROLLUP (age)", "a SELECT of its own"),
    ("SELECT count(*) FROM t GROUP BY age HAVING ¦TRUE", "HAVING compares"),
    ("SELECT count(*) FROM t ORDER BY ¦age", "something that is selected"),
    ("SELECT count(*) FROM t LIMIT ¦0", "at least 1"),
    ("SELECT count(*) FROM t GROUP BY age LIMIT ¦0.5", "at least 1"),
    ("SELECT count(*) FROM t GROUP BY age LIMIT ¦age", "at least 1"),
    ("SELECT count(*) FROM t GROUP BY age LIMIT 5 OFFSET ¦2.5", "OFFSET takes a whole number"),
    ("SELECT count(*) FROM t HAVING ¦count(*) > 2", "no GROUP BY"),
    ("SELECT count(*) FROM t GROUP BY age ORDER BY ¦2", "something that is selected"),
    ("SELECT count(*) FROM t GROUP BY age ORDER BY ¦avg(income)", "something that is selected"),
    ("SELECT count(*) FROM t GROUP BY age HAVING ¦avg(income) > 2", "something that is selected"),
    ("SELECT count(*) FROM t GROUP BY age HAVING ¦age > 2", "HAVING compares"),
    ("SELECT count(*) FROM t GROUP BY age HAVING ¦count(*) > income", "HAVING compares"),
    ("SELECT median(visit) AS v FROM t GROUP BY age HAVING ¦v > 2", "HAVING compares"),
    ("SELECT count(*) AS n FROM t WHERE ¦n > 2 GROUP BY age", "no column"),
    ("SELECT count(*) FROM t ¦WINDOW w AS (age)", "not part"),
    ("SELECT count(*) ¦INTO x FROM t", "not part"),
    ("SELECT count(*) FROM t ¦UNION SELECT count(*) FROM t", "not part"),
    ("SELECT count(*) FROM t ¦EXCEPT SELECT count(*) FROM t", "not part"),
    ("WITH x AS (SELECT ¦1) SELECT count(*) FROM t", "FROM and a table"),
    ("SELECT count(*) FROM t¦;", "not part"),
    ("SELECT count(*) FROM t¦; SELECT count(*) FROM t", "not part"),
    ("SELECT count(*) FROM t ¦-- x", "comments"),
    ("¦INSERT INTO t VALUES (1)", "not part"),
    ("¦COPY t TO 'x'", "not part"),
    ("¦PRAGMA table_info", "not part"),
]


@pytest.mark.parametrize(("marked", "message"), REFUSED, ids=[repr(marked)[:60] for marked, _ in REFUSED])
def test_refusals_point_at_the_place(marked: str, message: str) -> None:
    text, place = marked.replace("¦", ""), marked.index("¦")
    with pytest.raises(QueryError) as caught:
        parse_select(text, SCHEMA)
    assert message in str(caught.value)
    assert caught.value.position == place, str(caught.value)


def test_limits() -> None:
    many = ", ".join(f"count(*) AS c{i}" for i in range(MAX_AGGREGATES))
    assert len(parse_select(f"SELECT {many} FROM t", SCHEMA).aggregates) == MAX_AGGREGATES
    with pytest.raises(QueryError, match="between 1 and 64"):
        parse_select(f"SELECT {many}, count(*) FROM t", SCHEMA)
    with pytest.raises(QueryError, match="characters"):
        parse_select("SELECT count(*) FROM t WHERE " + "age > 1 AND " * 1_000_000, SCHEMA)
    with pytest.raises(QueryError, match="nested"):
        parse_select(f"SELECT count(*) FROM t WHERE {'(' * 500}age = 1{')' * 500}", SCHEMA)


@pytest.mark.parametrize("text", [None, 3, b"SELECT 1"])
def test_only_text_is_a_statement(text: Any) -> None:
    with pytest.raises(InputError):
        parse_select(text, SCHEMA)
    with pytest.raises(InputError):
        parse_select("SELECT count(*) FROM t", {"age": 1})  # type: ignore[arg-type]


SOUP = """SELECT FROM WHERE GROUP BY AS count sum avg median quantile_cont ( ) * , age smoker income t 0.5
1 AND > = 'no' JOIN ON HAVING LIMIT DISTINCT UNION ; . "t" ORDER DESC NOT"""


def refusal(text: str) -> QueryError | None:
    try:
        parse_select(text, SCHEMA)
    except QueryError as error:
        return error
    return None


@settings(max_examples=120, deadline=None)
@given(
    st.text()
    | st.lists(st.sampled_from(SOUP.split()), max_size=15).map(lambda words: "SELECT " + " ".join(words))
)
def test_any_text_is_read_or_refused(text: str) -> None:
    error = refusal(text)
    if error is None:
        assert parse_select(text, SCHEMA).aggregates
    else:
        assert error.position is not None
        assert 0 <= error.position <= len(text)
