"""Groups: every code falls where the edges say, exactly, in NumPy and in SQL."""

from __future__ import annotations

import datetime
from typing import Any

import duckdb
import numpy as np
import pytest

import holdfast as hf
from holdfast.query.grouping import Cross, Grouping, grouping

SCHEMA = hf.Schema(
    age=hf.Integer(10, 29),
    huge=hf.Integer(0, 2**61),
    weight=hf.Real(-1.0, 2.5),
    colour=hf.Category("red", "green"),
    day=hf.Date("2020-01-01", "2020-12-31"),
    ok=hf.Boolean(),
)


_CONNECTION = duckdb.connect()


def by_sql(groups: Grouping | Cross, block: dict[str, Any]) -> list[int]:
    columns = ", ".join(f'? AS "{name}"' for name in groups.columns)
    found = []
    for row in zip(*(block[name].tolist() for name in groups.columns), strict=True):
        values = [None if value != value else value for value in row]
        (group,) = _CONNECTION.execute(
            f"SELECT {groups.sql()} FROM (SELECT {columns}) AS t", values
        ).fetchone()
        found.append(-1 if group is None else group)
    return found


@pytest.mark.parametrize(
    ("column", "edges", "codes", "expected"),
    [
        ("age", None, [0, 19, 20], [0, 19, -1]),
        ("age", [10, 15, 20], [0, 4, 5, 10, 11, 20], [0, 0, 1, 1, -1, -1]),
        ("huge", [0, 2**60 + 1, 2**61], [2**60, 2**60 + 1, 2**61], [0, 1, 1]),
        ("weight", [-1, 0, 2.5], [-1.0, -1e-300, 0.0, 2.5, np.nan], [0, 0, 1, 1, -1]),
        ("weight", [0, 1], [-0.5, 0.0, 1.0, 1.0000001], [-1, 0, 0, -1]),
        ("colour", None, [0, 1, 2], [0, 1, -1]),
        ("ok", None, [0, 1, 2], [0, 1, -1]),
        ("day", ["2020-01-01", "2020-02-01", datetime.date(2020, 12, 31)], [30, 31, 365, 366], [0, 1, 1, -1]),
    ],
)
def test_codes_fall_into_their_groups(
    column: str, edges: Any, codes: list[float], expected: list[int]
) -> None:
    groups = grouping(SCHEMA, column, edges)
    block = {column: np.array(codes, dtype=SCHEMA[column].dtype)}
    assert groups.groups(block).tolist() == expected
    assert by_sql(groups, block) == expected
    assert len(groups.labels) == len(groups.starts) == len(groups.ends) == groups.size


def test_labels_are_what_the_user_wrote() -> None:
    assert grouping(SCHEMA, "age", [10, 15, 20]).labels == ("10 to 14", "15 to 20")
    assert grouping(SCHEMA, "colour").labels == ("red", "green")
    assert grouping(SCHEMA, "day", ["2020-01-01", "2020-01-02", "2020-01-05"]).labels == (
        "2020-01-01",
        "2020-01-02 to 2020-01-05",
    )


def test_two_columns_at_once() -> None:
    groups = Cross(grouping(SCHEMA, "colour"), grouping(SCHEMA, "age", [10, 20, 29]))
    block = {
        "colour": np.array([0, 1, 2, 1], dtype=np.uint8),
        "age": np.array([3, 12, 12, 20], dtype=np.uint8),
    }
    assert groups.size == 4
    assert groups.groups(block).tolist() == by_sql(groups, block) == [0, 3, -1, -1]


def test_a_constant_has_no_sum() -> None:
    session = hf.open({"age": np.arange(10, 30)}, hf.Schema(age=hf.Integer(10, 29))).session(rho=1.0)
    with pytest.raises(hf.QueryError, match="always the same"):
        session.mean("0.5", rho=0.1)
    assert session.spent == 0


@pytest.mark.parametrize("says", [True, False])
def test_a_plan_says_when_values_are_not_told_apart(monkeypatch: pytest.MonkeyPatch, says: bool) -> None:
    """The broken twin cuts them without a word, as it was before."""
    if not says:
        monkeypatch.setattr("holdfast.planning.plan.wide_bins", lambda groups: "")
    schema = hf.Schema(id=hf.Integer(0, 9999), day=hf.Date("2000-01-01", "2019-12-31"), age=hf.Integer(0, 9))
    data = {"id": [1, 2], "day": ["2001-01-01", "2002-02-02"], "age": [1, 2]}
    session = hf.open(data, schema).session(rho=1.0, target="table")
    words = "id by 3 values each: more than 4,096 values are not told apart by themselves"
    answer = session.count(by="id", rho=0.01)
    assert (
        (words in answer.explain()) is says is (words in session.estimate.count(by="id", rho=0.01).explain())
    )
    assert answer.labels is not None and answer.labels[:2] == ("0 to 2", "3 to 5")
    day = session.estimate.histogram("day", rho=0.01).explain()
    assert ("day by 2 values each" in day) is says
    both = session.estimate.sql_one("SELECT id, age, count(*) FROM t GROUP BY id, age", rho=0.01).explain()
    assert ("Grouped id by 3 values each:" in both) is says
    for how in ({"by": "age"}, {"by": "id", "edges": [0, 5000, 9999]}, {"by": "floor(id / 100)"}):
        assert "not told apart" not in session.estimate.count(**how, rho=0.01).explain()
