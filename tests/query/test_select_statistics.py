"""SQL's names for statistics of several sums ask what the calls ask."""

from __future__ import annotations

import re

import pytest

import holdfast as hf
from holdfast.errors import QueryError
from holdfast.planning.quantile_question import Quantile
from holdfast.planning.question import (
    Count,
    Difference,
    Fraction,
    Interval,
    Paired,
    Ratio,
    Regression,
    Spread,
    Total,
)
from holdfast.planning.sql_question import Sql
from holdfast.query.other_ways import OTHER_WAYS
from holdfast.query.predicate import Always
from holdfast.query.statistic import workload

SCHEMA = hf.Schema(x=hf.Integer(0, 9), y=hf.Real(0.0, 2.0), g=hf.Category("a", "b"), t=hf.Boolean())
SAME: dict[str, Interval] = {
    "variance(x)": Spread(kind="variance", column="x", sample=True),
    "var_samp(x + 1)": Spread(kind="variance", column="x + 1", sample=True),
    "var_pop(y)": Spread(kind="variance", column="y"),
    "stddev(y)": Spread(kind="std", column="y", sample=True),
    "stddev_samp(y)": Spread(kind="std", column="y", sample=True),
    "stddev_pop(y)": Spread(kind="std", column="y"),
    "covar_pop(x, y)": Paired(kind="covariance", column="x", other="y"),
    "covar_samp(x, y)": Paired(kind="covariance", column="x", other="y", sample=True),
    "corr(x, y)": Paired(kind="correlation", column="x", other="y"),
    "avg(t)": Total(kind="mean", column="t"),
    "avg(x > 3 AND t)": Total(kind="mean", column="x > 3 AND t"),
    "sum(x) / sum(y)": Ratio(column="x", divisor="y"),
    "quantile_disc(x, 0.9)": Quantile(column="x", rank=0.9),
    "percentile_disc(0.9) WITHIN GROUP (ORDER BY x)": Quantile(column="x", rank=0.9),
    "approx_quantile(x, 0.9)": Quantile(column="x", rank=0.9),
    "count_if(t)": Count(where="x < 5 AND t"),
    "countif(y > 1)": Count(where="x < 5 AND y > 1"),
    "regr_count(y, x)": Count(where="x < 5 AND x IS NOT NULL AND y IS NOT NULL"),
    "regr_avgx(y, x)": Total(kind="mean", column="x", where="x < 5 AND y IS NOT NULL AND x IS NOT NULL"),
    "regr_avgy(y, x)": Total(kind="mean", column="y", where="x < 5 AND x IS NOT NULL AND y IS NOT NULL"),
}


@pytest.mark.parametrize("text", SAME)
def test_it_is_the_same_question(text: str) -> None:
    plain = Sql(text=f"SELECT {text} AS found FROM t WHERE x < 5").read(SCHEMA)
    asked = SAME[text]
    (called,) = type(asked)(**({"where": "x < 5"} | asked.to_json())).read(SCHEMA).statistics
    assert plain.statistics == [called]
    assert plain.statistics[0].identity == called.identity
    if "x < 5" in str(asked.to_json()):
        return
    grouped = Sql(text=f"SELECT g, {text} FROM t GROUP BY g").read(SCHEMA)
    (by_group,) = type(asked)(**(asked.to_json() | {"by": "g"})).read(SCHEMA).statistics
    assert grouped.statistics == [by_group]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stddev(g)", "not a number"),
        ("corr(x, x)", "one number twice"),
        ("var_pop(x * 0)", "the same number"),
        ("sum(x) / sum(y * 0)", "always"),
        ("sum(x) / count(*)", "a share is avg"),
        ("avg(x) - avg(x)", "a difference is of the same mean"),
        ("avg(x) FILTER (WHERE t) - avg(y) FILTER (WHERE NOT t)", "a difference is of the same mean"),
        ("avg(x) FILTER (WHERE t) - sum(x) FILTER (WHERE NOT t)", "a difference is of the same mean"),
        ("avg(x) FILTER (WHERE t) - avg(t) FILTER (WHERE NOT t)", "a difference is of the same mean"),
        ("avg(x) FILTER (WHERE t) - avg(x) FILTER (WHERE t)", "a difference is of the same mean"),
        ("regr_slope(y)", "takes two numbers"),
        ("regr_slope(y, y)", "one number twice"),
        ("regr_slope(y, g)", "not a number"),
        ("regr_sxx(y, x)", "times the var_pop of x"),
        ("corr(x)", "corr"),
    ],
)
def test_what_is_no_question_is_refused_with_its_place(text: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        Sql(text=f"SELECT {text} FROM t").read(SCHEMA)


def test_a_share_of_a_fraction_is_another_question() -> None:
    """In a mean what is unknown is left out; in a fraction it counts against."""
    (mean,) = Sql(text="SELECT avg(t) FROM t WHERE x > 3").read(SCHEMA).statistics
    (fraction,) = Fraction(where="t", given="x > 3").read(SCHEMA).statistics
    assert mean != fraction and mean.identity != fraction.identity


def test_a_mean_less_a_mean_is_a_difference() -> None:
    """SQL's own way to ask it: two FILTERs."""
    text = "SELECT avg({0}) FILTER (WHERE g = 'a') - avg({0}) FILTER (WHERE g = 'b') FROM t{1}"
    for of in ("x", "x + y", "t", "x > 3"):
        (plain,) = Sql(text=text.format(of, "")).read(SCHEMA).statistics
        (called,) = Difference(where="g = 'a'", other="g = 'b'", of=of).read(SCHEMA).statistics
        assert plain == called
    (narrowed,) = Sql(text=text.format("x", " WHERE t")).read(SCHEMA).statistics
    assert [narrowed] == Difference(where="t AND g = 'a'", other="t AND g = 'b'", of="x").read(
        SCHEMA
    ).statistics
    (rest,) = Sql(text="SELECT avg(x) FILTER (WHERE t) - avg(x) FROM t").read(SCHEMA).statistics
    assert isinstance(rest.compared, Always)
    with pytest.raises(QueryError, match="without GROUP BY"):
        Sql(text=f"{text.format('x', '')} GROUP BY g").read(SCHEMA)


def test_a_line_is_told_as_a_regression_is() -> None:
    """Nothing is told for a slope, an intercept or an r2 that the regression with one feature does not tell."""
    (regression,) = Regression(column="y", features=["x"]).read(SCHEMA).statistics
    told = workload(regression, SCHEMA, 100)
    for name in ("slope", "intercept", "r2"):
        (asked,) = Sql(text=f"SELECT regr_{name}(y, x) FROM t").read(SCHEMA).statistics
        assert asked.kind == name
        found = workload(asked, SCHEMA, 100)
        assert (found.measurements, found.joint) == (told.measurements, told.joint)
        assert asked.identity != regression.identity


def test_what_is_refused_names_the_way_that_works() -> None:
    """Each advice is of a name that is not in the language, and of statements that are."""
    assert not set(OTHER_WAYS) & {
        token.lower() for token in ("avg", "count", "regr_slope", "count_if", *SAME)
    }
    for name, advice in OTHER_WAYS.items():
        with pytest.raises(QueryError) as refusal:
            Sql(text=f"SELECT {name}(x) FROM t").read(SCHEMA)
        assert str(refusal.value).startswith(advice), name
        for statement in re.findall(r"SELECT x.*?(?:LIMIT \d|GROUP BY x)", advice):
            assert Sql(text=statement).read(SCHEMA).statistics, name
