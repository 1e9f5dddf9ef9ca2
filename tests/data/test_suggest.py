"""A first draft of a schema holds all values of the file."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from data.tables import whole
from holdfast.data.open import open_source, suggest_schema, suggest_toml
from holdfast.errors import DataError, HoldfastError
from holdfast.query.schema import Boolean, Category, Date, Integer, Real, Schema, Text

LARGEST = sys.float_info.max


SUGGESTED = Schema.from_mapping(
    {
        "age": Integer(10, 100),
        "income": Real(0, 100_000),
        "smoker": Category("it's", "no", "yes"),
        "insured": Boolean(),
        "visit": Date("2019-01-01", "2023-12-31"),
        "one": Integer(7, 7),
    }
)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_suggest(tmp_path: Path, suffix: str) -> None:
    frame = pl.DataFrame(
        {
            "age": [18, 93, None, 41],
            "income": [1000.5, 98_765.25, 0.0, None],
            "smoker": ["yes", "no", "it's", None],
            "insured": [True, False, True, None],
            "visit": [date(2019, 5, 1), date(2023, 2, 28), None, date(2020, 1, 1)],
            "name": [f"person {i}" for i in range(4)],
            "one": [7, 7, 7, 7],
            "nothing": pl.Series([None] * 4, dtype=pl.String),
        }
    )
    frame = pl.concat([frame] + [frame.with_columns(name=pl.lit(f"other {i}")) for i in range(60)])
    path = tmp_path / f"people.{suffix}"
    frame.write_csv(path) if suffix == "csv" else frame.write_parquet(path)
    suggested = suggest_schema(path)
    assert suggested == SUGGESTED
    (tmp_path / "people.toml").write_text(suggested.to_toml())
    assert Schema.from_toml(tmp_path / "people.toml") == suggested
    assert open_source(path, suggested).rows == 244


@pytest.mark.parametrize("seed", range(3))
def test_suggested_bounds_hold_all_values(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    scale = 10.0 ** random.integers(-6, 9)
    reals = random.standard_normal(200) * scale + random.normal() * scale * 10
    integers = np.rint(reals * 1e7 / scale).astype(np.int64)
    path = tmp_path / "x.csv"
    pl.DataFrame({"real": reals, "whole": integers}).write_csv(path)
    schema = suggest_schema(path)
    for name, values in (("real", reals), ("whole", integers)):
        lo, hi = schema[name].lo, schema[name].hi
        assert lo <= values.min()
        assert values.max() <= hi
        assert hi - lo <= 1.5 * (values.max() - values.min())


EXTREMES: list[list[float]] = [
    *([size] * 3 for size in (0.0, 0.1, -7.5, 1e16, 1e18, -1e18, 1e300, 1.6e308, LARGEST, -LARGEST, 5e-324)),
    [1e16, 1e16 + 2],
    [1.0, 1.0 + 2**-52],
    [1.75e308, LARGEST],
    [-LARGEST, -1.75e308],
    [0.0, 5e-324],
    [-1e-320, 1e-310],
]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("values", EXTREMES, ids=repr)
def test_a_constant_or_an_extreme_column_gets_a_valid_schema(
    tmp_path: Path, values: list[float], suffix: str
) -> None:
    path, frame = tmp_path / f"x.{suffix}", pl.DataFrame({"x": values})
    frame.write_csv(path) if suffix == "csv" else frame.write_parquet(path)
    suggested = suggest_schema(path)
    assert suggested["x"].lo <= min(values) <= max(values) <= suggested["x"].hi
    (tmp_path / "x.toml").write_text(suggested.to_toml())
    assert Schema.from_toml(tmp_path / "x.toml") == suggested
    np.testing.assert_array_equal(whole(open_source(path, suggested))["x"], values)


def test_a_constant_of_many_digits(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("small,wide\n" + f"7.5,{10**18}\n" * 3)
    assert suggest_schema(path) == Schema(small=Real(7.0, 8.0), wide=Real(1e18, 1.1e18))


@pytest.mark.parametrize(
    "content", ["", "a\n", "name\n" + "".join(f"person {i}\n" for i in range(99)), "a,b\n1\n"]
)
def test_nothing_to_suggest(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(content)
    with pytest.raises(HoldfastError, match="expected"):
        suggest_schema(path)
    with pytest.raises(DataError, match="expected"):
        suggest_schema(tmp_path / "nothing.parquet")


def test_texts_with_many_values_are_proposed_as_comments(tmp_path: Path) -> None:
    path = tmp_path / "flights.csv"
    path.write_text("dest,delay\n" + "".join(f"port {i},{i}\n" for i in range(60)))
    proposed = suggest_toml(path)
    assert '# [columns."dest"]\n# type = "text"\n# max_length = 8\n' in proposed
    assert list(suggest_schema(path)) == ["delay"]
    (tmp_path / "as it is.toml").write_text(proposed)
    assert list(Schema.from_toml(tmp_path / "as it is.toml")) == ["delay"]
    taken = proposed.replace("# [", "[").replace("# type", "type").replace("# max", "max")
    (tmp_path / "edited.toml").write_text(taken)
    assert Schema.from_toml(tmp_path / "edited.toml")["dest"] == Text(8)
