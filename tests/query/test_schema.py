"""A schema is a frozen, ordered mapping that survives JSON, TOML and pickling."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import SchemaError
from holdfast.query.schema import Boolean, Category, Date, Integer, Real, Schema

EXAMPLE = Schema(
    age=Integer(0, 120),
    income=Real(0, 500_000),
    smoker=Category("no", "yes"),
    insured=Boolean(),
    visit=Date("2020-01-01", "2026-12-31"),
)

texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1)
labels = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0")) | st.integers()
whole = st.integers(-(2**61), 2**61 - 1)
pairs = st.tuples(st.floats(-1e300, 1e300), st.floats(1e-3, 1e300)).map(
    lambda pair: (pair[0], pair[0] + pair[1])
)
kinds = st.one_of(
    st.tuples(whole, whole).map(lambda pair: Integer(min(pair), max(pair))),
    pairs.filter(lambda pair: pair[0] < pair[1]).map(lambda pair: Real(*pair)),
    st.lists(labels, min_size=1, unique_by=str).map(lambda found: Category(*found)),
    st.just(Boolean()),
    st.tuples(st.dates(), st.dates()).map(lambda pair: Date(min(pair), max(pair))),
)
schemas = st.dictionaries(texts, kinds, min_size=1, max_size=4).map(Schema.from_mapping)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(schema=schemas)
def test_round_trips(schema: Schema, tmp_path: Path) -> None:
    again = Schema.from_json(json.loads(json.dumps(schema.to_json(), sort_keys=True)))
    path = tmp_path / "schema.toml"
    path.write_text(schema.to_toml(), encoding="utf-8")
    for copy in (again, Schema.from_toml(path), pickle.loads(pickle.dumps(schema))):  # noqa: S301 - our own bytes
        assert copy == schema
        assert hash(copy) == hash(schema)
        assert list(copy.items()) == list(schema.items())


def test_it_is_a_frozen_ordered_mapping() -> None:
    assert list(EXAMPLE) == ["age", "income", "smoker", "insured", "visit"]
    assert EXAMPLE["age"] == Integer(0, 120)
    assert len(EXAMPLE) == 5
    assert Schema(a=Boolean(), b=Integer(0, 1)) != Schema(b=Integer(0, 1), a=Boolean())
    assert EXAMPLE != {"age": 1}
    assert repr(Schema(a=Boolean())) == "Schema(a=Boolean())"
    with pytest.raises(AttributeError):
        EXAMPLE.age = 3  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        EXAMPLE["age"] = Boolean()  # type: ignore[index]
    source = {"age": Integer(0, 1)}
    schema = Schema.from_mapping(source)
    source["age"] = Integer(0, 9)
    assert schema["age"] == Integer(0, 1)
    assert Schema(self=Boolean(), cls=Boolean())["self"] == Boolean()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Schema(),
        lambda: Schema(age=int),
        lambda: Schema(age=Integer),
        lambda: Schema(age="integer"),
        lambda: Schema.from_mapping({"": Boolean()}),
        lambda: Schema.from_mapping({"a\nb": Boolean()}),
        lambda: Schema.from_mapping({"a\x7f": Boolean()}),
        lambda: Schema.from_mapping({"\ud800": Boolean()}),
        lambda: Schema.from_mapping({3: Boolean()}),
        lambda: Schema.from_mapping([("a", Boolean())]),
        lambda: Schema.from_json({"columns": {}}),
        lambda: Schema.from_json({"columns": [{"type": "boolean"}]}),
        lambda: Schema.from_json({"columns": [None]}),
        lambda: Schema.from_json({"columns": [{"name": "a", "type": "boolean"}] * 2}),
        lambda: Schema.from_json([]),
    ],
)
def test_declarations_that_contradict_themselves(make: Any) -> None:
    with pytest.raises(SchemaError):
        make()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[columns.age]\ntype = 'integer'\nlo = 5\nhi = 1\n", "'age'"),
        ("[columns.age]\ntype = 'number'\n", "number"),
        ("[columns.age]\nlo = 1", "'age'"),
        ("columns = 3", "columns"),
        ("[column.age]\ntype = 'boolean'", "column"),
        ("[columns]\n", "at least one"),
        ("not toml", "TOML"),
    ],
)
def test_bad_schema_files(tmp_path: Path, text: str, word: str) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(text)
    with pytest.raises(SchemaError, match=word):
        Schema.from_toml(path)


def test_missing_and_binary_schema_files(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="cannot be read"):
        Schema.from_toml(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SchemaError, match="TOML"):
        Schema.from_toml(tmp_path / "binary.toml")
