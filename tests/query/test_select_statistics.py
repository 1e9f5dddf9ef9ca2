"""SQL's names for statistics of several sums ask what the calls ask."""

from __future__ import annotations

import pytest

import holdfast as hf
from holdfast.errors import QueryError
from holdfast.planning.question import Fraction, Interval, Paired, Ratio, Spread, Total
from holdfast.planning.sql_question import Sql

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
}


@pytest.mark.parametrize("text", SAME)
def test_it_is_the_same_question(text: str) -> None:
    plain = Sql(text=f"SELECT {text} AS found FROM t WHERE x < 5").read(SCHEMA)
    asked = SAME[text]
    (called,) = type(asked)(**(asked.to_json() | {"where": "x < 5"})).read(SCHEMA).statistics
    assert plain.statistics == [called]
    assert plain.statistics[0].identity == called.identity
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
        ("sum(x) / count(*)", "expected an aggregate"),
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
