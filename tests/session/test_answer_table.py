"""The answers of a SELECT: in its order, under its names, as one table."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from gateway import running

import holdfast as hf
from holdfast.session.answer_table import AnswerTable

TOP = "SELECT smoker, count(*) AS n, avg(age) FROM t GROUP BY smoker HAVING n > -1e9 ORDER BY n DESC LIMIT 2"


@pytest.fixture
def session(table: hf.Table) -> hf.Session:
    return table.session(target="table", rho=1.0)


def test_groups_are_picked_whole(session: hf.Session) -> None:
    all_groups = session.sql_one("SELECT count(*) FROM t GROUP BY smoker", rho=0.01)
    spent = session.spent
    first = session.sql("SELECT count(*) FROM t GROUP BY smoker ORDER BY 1 DESC LIMIT 2", rho=0.01)
    assert session.spent == spent  # the same question: what is done with its answer is free
    order = np.argsort(-all_groups.value, kind="stable")[:2]
    (answer,) = first
    assert answer.labels == tuple(np.array(all_groups.labels)[order])
    for name in ("value", "low", "high"):
        assert np.array_equal(getattr(answer, name), getattr(all_groups, name)[order])
    assert answer[answer.labels[0]].value == all_groups[answer.labels[0]].value
    assert hf.Answer.from_json(answer.to_json()).labels == answer.labels


def test_several_aggregates_are_one_table(session: hf.Session) -> None:
    found = session.sql(TOP, rho=0.01)
    assert isinstance(found, AnswerTable)
    names = ["group", "n", "low_n", "high_n", "avg(age)", "low_avg(age)", "high_avg(age)"]
    columns = found.to_dict()
    assert list(columns) == names
    assert columns["n"] == sorted(columns["n"], reverse=True)
    assert all(len(column) == 2 for column in columns.values())
    for frame in (found.to_pandas(), found.to_polars()):
        assert list(frame.columns) == names
    assert found.to_arrow().column_names == names
    text, page = str(found), found._repr_html_()
    for label in found[0].labels or ():
        assert label in text
        assert label in page
    assert "covers the table at 95%" in text
    assert text.count("rows read") == len({answer.rho for answer in found})


def test_what_shows_nothing_is_shown(session: hf.Session) -> None:
    (none,) = session.sql("SELECT count(*) FROM t GROUP BY smoker HAVING count(*) < -1e9", rho=0.01)
    assert len(none) == 0
    assert none.to_dict()["value"] == []
    assert str(none)
    assert none._repr_html_()


def test_a_gateway_arranges_as_a_session_does() -> None:
    with running(declared={"target": "table"}) as started:
        remote = hf.connect(started.url, started.analyst).session("people")
        by = next(name for name, column in remote.schema.items() if column.kind == "category")
        every = remote.sql(f"SELECT count(*) FROM t GROUP BY {by}", rho=0.001)
        spent = remote.spent
        first = remote.sql(f"SELECT count(*) AS n FROM t GROUP BY {by} ORDER BY n DESC LIMIT 1", rho=0.001)
        assert remote.spent == spent
        assert isinstance(first, AnswerTable)
        assert first.names == ("n",)
        assert first[0].value.tolist() == [max(every[0].value)]


def test_groups_of_several_columns() -> None:
    """One charge, a group for each combination, found by its labels; ends of intervals order and choose."""
    schema = hf.Schema(
        age=hf.Integer(0, 99), smoker=hf.Category("no", "yes"), visit=hf.Date("2020-01-01", "2021-12-31")
    )
    rows = 4000
    ages = np.arange(rows) % 100
    data = {
        "age": ages,
        "smoker": np.where(ages < 30, "yes", "no"),
        "visit": np.datetime64("2020-01-01") + (np.arange(rows) % 731),
    }
    session = hf.open(data, schema).session(target="table", rho=5)
    before = session.spent
    answer = session.count(by=["smoker", "year(visit)"], within=100)
    assert session.spent > before
    assert answer.by == ("smoker", "year(visit)")
    assert answer.labels == ("no, 2020", "no, 2021", "yes, 2020", "yes, 2021")
    truth = Counter(
        zip(data["smoker"].tolist(), data["visit"].astype("datetime64[Y]").astype(str).tolist(), strict=True)
    )
    for key in answer.keys:
        assert abs(answer[key].value - truth[key]) <= 400  # ten standard deviations
    assert answer["yes", 2021].question.endswith("= yes, 2021")
    with pytest.raises(KeyError):
        answer["yes", "1999"]
    assert list(answer.to_dict())[:3] == ["smoker", "year(visit)", "value"]
    again = hf.Answer.from_json(answer.to_json())
    assert (again.keys, again.by, again.labels) == (answer.keys, answer.by, answer.labels)
    shown = session.sql(
        "SELECT smoker, year(visit) AS y, count(*) AS n, low(n) FROM t GROUP BY smoker, y HAVING low(n) > 800 "
        "ORDER BY y DESC, high(n)",
        within=100,
    )
    assert shown[0].keys == (("no", "2021"), ("no", "2020"))
    assert shown[0].repeated, "the same counts were told before"
    old = session.mean("age", by="CASE WHEN age < 50 THEN 'young' ELSE 'old' END", within=5)
    assert old.labels == ("young", "old")
    assert abs(old["young"].value - 24.5) < 25
