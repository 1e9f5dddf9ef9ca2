"""What rows are grouped by: the groups of DuckDB on the values themselves, in NumPy and in SQL over codes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from holdfast.errors import InputError, QueryError, UndiscoveredError
from holdfast.query.computed_groups import Product
from holdfast.query.group_keys import MAX_KEYS, groups_of
from holdfast.query.schema import Category, Date, Integer, Real, Schema, Text

SCHEMA = Schema(
    age=Integer(0, 120),
    visit=Date("2019-12-29", "2021-02-03"),
    smoker=Category("no", "yes"),
    income=Real(0, 100),
    note=Text(9),
)
ROWS = 400
CASES = "CASE WHEN age < 40 THEN 'young' WHEN age < 65 THEN 'older' WHEN age > 100 THEN NULL ELSE 'old' END"
KEYS = [
    ("smoker", "smoker"),
    ("year(visit)", "year(visit)"),
    ("extract(dow FROM visit)", "dayofweek(visit)"),
    ("week(visit)", "week(visit)"),
    ("floor(age / 10)", "CAST(floor(age / 10) AS BIGINT)"),
    ("date_trunc('month', visit)", "CAST(date_trunc('month', visit) AS DATE)"),
    ("date_trunc('week', visit)", "CAST(date_trunc('week', visit) AS DATE)"),
    (CASES, CASES),
    ("age > 40 AND smoker = 'yes'", "age > 40 AND smoker = 'yes'"),
    ("coalesce(age, 121) - 60", "coalesce(age, 121) - 60"),
]


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    random = np.random.default_rng(5)

    def mixed(values: Any) -> list[Any]:
        return [None if random.random() < 0.1 else value for value in values]

    day = np.datetime64("2019-12-29") + random.integers(0, 403, ROWS)
    columns = {
        "age": mixed(random.integers(0, 121, ROWS).tolist()),
        "visit": mixed(day.astype(object).tolist()),
        "smoker": mixed(np.array(["no", "yes"])[random.integers(0, 2, ROWS)].tolist()),
        "income": mixed(random.uniform(0, 100, ROWS).tolist()),
    }
    connection = duckdb.connect(config={"threads": 1})
    frame = pd.DataFrame(columns).astype({"age": "Int64"})
    connection.register("frame", frame)
    connection.execute("CREATE TABLE plain AS SELECT * REPLACE (CAST(visit AS DATE) AS visit) FROM frame")
    codes = {n: SCHEMA[n].encode_array(np.array(v, dtype=object)) for n, v in columns.items()}
    connection.register("coded", pd.DataFrame(codes))
    connection.execute("CREATE TABLE codes AS SELECT * FROM coded")
    connection.execute("CREATE TABLE block (x INTEGER)")
    yield connection
    connection.close()


def block(engine: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    return {
        name: values.astype(SCHEMA[name].dtype)
        for name, values in engine.execute("SELECT * FROM codes").fetchnumpy().items()
    }


def counted(labels: Any) -> Counter[Any]:
    return Counter(label for label in labels if label is not None)


@pytest.mark.parametrize(("ours", "theirs"), KEYS, ids=[ours[:30] for ours, _ in KEYS])
def test_the_groups_are_those_of_a_database(
    engine: duckdb.DuckDBPyConnection, ours: str, theirs: str
) -> None:
    groups = groups_of(SCHEMA, ours)
    text = {"true": True, "false": False}
    expected = counted(value for (value,) in engine.execute(f"SELECT {theirs} FROM plain").fetchall())
    wanted = Counter({str(key): n for key, n in expected.items()})
    places = groups.groups(block(engine))
    assert counted(str(text.get(groups.labels[p], groups.labels[p])) for p in places if p >= 0) == wanted
    in_sql = engine.execute(f"SELECT {groups.sql()} FROM codes").fetchall()
    assert [-1 if place is None else place for (place,) in in_sql] == places.tolist()
    assert groups_of(SCHEMA, ours) == groups


def check_product(engine: duckdb.DuckDBPyConnection, groups: Product, theirs: str) -> None:
    places = groups.groups(block(engine))
    expected = counted(
        tuple(map(str, row))
        for row in engine.execute(f"SELECT {theirs} FROM plain").fetchall()
        if None not in row
    )
    assert counted(groups.keys[place] for place in places if place >= 0) == expected
    in_sql = engine.execute(f"SELECT {groups.sql()} FROM codes").fetchall()
    assert [-1 if place is None else place for (place,) in in_sql] == places.tolist()


def test_several_columns_at_once(engine: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = groups_of(SCHEMA, ["smoker", "year(visit)", CASES])
    assert isinstance(groups, Product)
    assert groups.size == 2 * 3 * 3 == len(groups.labels)
    assert groups.labels[1] == "no, 2019, older"
    check_product(engine, groups, f"smoker, year(visit), {CASES}")

    def twin(self: Product, given: Any) -> Any:
        """Steps by the wrong size."""
        first, *rest = (part.groups(given) for part in self.parts)
        for inner in rest:
            first = np.where((first >= 0) & (inner >= 0), first * self.parts[0].size + inner, -1)
        return first

    monkeypatch.setattr(Product, "groups", twin)
    with pytest.raises((AssertionError, IndexError)):
        check_product(engine, groups, f"smoker, year(visit), {CASES}")


def test_edges_are_by_column() -> None:
    groups = groups_of(SCHEMA, ["income", "age"], {"income": [0, 50, 100], "age": [0, 65, 120]})
    assert groups.labels == (
        "0 to 50, 0 to 64",
        "0 to 50, 65 to 120",
        "50 to 100, 0 to 64",
        "50 to 100, 65 to 120",
    )
    days = groups_of(SCHEMA, "visit", ["2020-01-01", "2020-07-01", "2021-01-01"])
    assert days.labels == ("2020-01-01 to 2020-06-30", "2020-07-01 to 2021-01-01")


@pytest.mark.parametrize(
    ("by", "edges", "error", "message"),
    [
        ([], None, InputError, "a list of names"),
        ([1], None, InputError, "a list of names"),
        (3, None, InputError, "a list of names"),
        (["smoker", "smoker"], None, InputError, "one twice"),
        (["age", "visit", "smoker"], None, InputError, "121 x 403 x 2 = 97,526; give coarser edges"),
        (["smoker"] * (MAX_KEYS + 1), None, InputError, "at most 8 columns"),
        (["smoker", "age"], [0, 5], InputError, "a dict from columns to their edges"),
        (["smoker"], {"age": [0, 5]}, InputError, "edges of what is in by="),
        (["year(visit)"], {"year(visit)": [2019, 2020]}, InputError, "no edges for year"),
        ("visit", ["2020-07-01", "2020-01-01"], InputError, "increasing"),
        ("agee", None, QueryError, "no column 'agee'"),
        ("year(agee)", None, QueryError, "did you mean age"),
        ("income * 2", None, QueryError, "whole numbers"),
        ("age * 1000", None, QueryError, "at most 65,536 may be groups"),
        ("note", None, UndiscoveredError, "note"),
    ],
)
def test_what_has_no_public_groups_is_refused(
    by: Any, edges: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message.replace("(", r"\(").replace(")", r"\)")):
        groups_of(SCHEMA, by, edges)
