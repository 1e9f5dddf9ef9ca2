"""The same generated table has the same codes through every door.

Exceptions, all documented: CSV cannot tell an empty text from NULL, and NumPy's fixed-width texts cannot end
in NUL characters.
"""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.tables import FROM_CSV, LABELS, SCHEMA, SOURCES, TEXTS, Columns, whole
from holdfast.data.source import Source

integers = st.integers(-200, 300) | st.integers(-(2**63), 2**63 - 1)
texts = st.sampled_from(LABELS) | st.text(
    alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6
)
ROW = st.fixed_dictionaries(
    {
        "age": st.none() | integers,
        "wide": st.none() | integers,
        "income": st.none() | st.floats(),
        'kind of "thing"': st.none() | texts,
        "insured": st.none() | st.booleans(),
        "visit": st.none() | st.dates(date(1900, 1, 1), date(2200, 1, 1)),
        "note": st.none() | texts | st.sampled_from(TEXTS),
    }
)


def columns_of(rows: list[dict[str, Any]]) -> Columns:
    return {name: [row[name] for row in rows] for name in SCHEMA}


def expected_codes(columns: Columns) -> dict[str, Any]:
    return {name: SCHEMA[name].encode_array(np.array(columns[name], dtype=object)) for name in SCHEMA}


def check(source: Source, columns: Columns) -> None:
    found = whole(source)
    for name, codes in expected_codes(columns).items():
        np.testing.assert_array_equal(found[name], codes)
    source.close()


@pytest.mark.parametrize("kind", sorted(SOURCES))
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(ROW, min_size=1, max_size=30))
def test_every_door_gives_the_same_codes(kind: str, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    if kind in FROM_CSV:  # an empty field is NULL there
        rows = [row | {"note": row["note"] or None} for row in rows]
    columns = columns_of(rows)
    check(SOURCES[kind](columns, tmp_path), columns)


def test_csv_cannot_tell_an_empty_text_from_null(tmp_path: Path) -> None:
    from holdfast.data.open import open_source
    from holdfast.query.schema import Category, Schema

    schema = Schema(kind=Category("", "x"))
    path = tmp_path / "x.csv"
    path.write_text('kind,other\n"",1\n,2\nx,3\n')
    assert whole(open_source(path, schema))["kind"].tolist() == [2, 2, 1]
    assert whole(open_source({"kind": ["", None, "x"]}, schema))["kind"].tolist() == [0, 2, 1]
    assert set(SOURCES) > FROM_CSV


def test_the_check_catches_a_door_that_drops_a_value(tmp_path: Path) -> None:
    columns = columns_of(
        [
            {
                "age": 3,
                "wide": 2**60 - 1,
                "income": math.nan,
                'kind of "thing"': "no",
                "insured": None,
                "visit": None,
                "note": "a",
            },
            {
                "age": 121,
                "wide": 5,
                "income": math.inf,
                'kind of "thing"': None,
                "insured": True,
                "visit": None,
                "note": "b",
            },
        ]
    )
    for name, wrong in (
        ("age", 4),
        ("wide", 2**60 - 2),
        ("income", 0.0),
        ('kind of "thing"', "yes"),
        ("insured", False),
        ("note", "c"),
    ):
        check(SOURCES["dict"](columns, tmp_path), columns)
        bent = {**columns, name: [wrong, *columns[name][1:]]}
        with pytest.raises(AssertionError):
            check(SOURCES["dict"](bent, tmp_path), columns)
