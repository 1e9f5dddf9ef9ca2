"""Columns of moments and times of day, asked from end to end: quantiles, groups, what is written down and read back."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import holdfast as hf
from holdfast.data.open import ingest

N = 4000
_random = np.random.default_rng(7)
LEFT = np.datetime64("2013-01-01T00:00") + _random.integers(0, 365 * 1440, N).astype("timedelta64[m]")
MINUTES = _random.integers(300, 1300, N)
FRAME = pd.DataFrame(
    {"left": LEFT, "at": [datetime.time(int(m) // 60, int(m) % 60) for m in MINUTES], "delay": MINUTES % 60}
)
SCHEMA = hf.Schema(
    left=hf.Timestamp("2013-01-01", "2013-12-31"), at=hf.Time(step="minute"), delay=hf.Integer(0, 59)
)


def session(data: object = FRAME) -> hf.Session:
    return hf.open(data, SCHEMA).session(rho=50, target="table")


def test_a_quantile_is_a_moment_or_a_time_of_day() -> None:
    truths = {
        "left": np.sort(LEFT)[N // 2].item(),
        "at": datetime.time(*divmod(int(np.sort(MINUTES)[N // 2]), 60)),
    }
    asked = session()
    for column, kind in {"left": datetime.datetime, "at": datetime.time}.items():
        answer = asked.quantile(column, 0.5, rho=1)
        assert type(answer.value) is kind
        assert answer.low <= truths[column] <= answer.high
        assert datetime.timedelta(0) < answer.width < datetime.timedelta(days=30)
        assert hf.Answer.from_json(answer.to_json()) == answer
        assert str(answer.low) in str(answer) and str(answer.low) in answer._repr_html_()
        assert answer.to_pandas()["low"][0] == answer.low
        assert (
            answer.to_polars()["high"][0] == answer.high
            and answer.to_arrow()["value"][0].as_py() == answer.value
        )
        assert answer.plot() is not None
        with pytest.raises(hf.errors.InputError, match="a date or a time"):
            float(answer)


def test_quantiles_by_the_hour_have_widths() -> None:
    answer = session().quantile("at", 0.5, by="quarter(left)", rho=1)
    assert all(isinstance(width, datetime.timedelta) for width in answer.width)
    again = hf.Answer.from_json(answer.to_json())
    assert list(again) == list(answer)


@pytest.mark.parametrize("door", ["frame", "csv", "parquet", "store"])
def test_one_answer_through_every_door(tmp_path: Path, door: str) -> None:
    data: object = FRAME
    if door == "csv":
        FRAME.to_csv(data := str(tmp_path / "t.csv"), index=False)
    elif door != "frame":
        FRAME.to_parquet(data := str(tmp_path / "t.parquet"))
    if door == "store":
        ingest(data, tmp_path / "t.hf", SCHEMA)
        data = tmp_path / "t.hf"
    asked = hf.open(data).session(rho=1e6, target="table") if door == "store" else session(data)
    where = "hour(at) >= 12 AND left >= TIMESTAMP '2013-06-01 12:30' AND left::date < DATE '2013-07-01'"
    kept = (
        (MINUTES >= 720) & (np.datetime64("2013-06-01T12:30") <= LEFT) & (np.datetime64("2013-07-01") > LEFT)
    )
    answer = asked.count(where, rho=20)
    assert answer.low <= kept.sum() <= answer.high and answer.width < 5
    hours = np.bincount(MINUTES[kept] // 60, minlength=24)
    (told,) = asked.sql(f"SELECT hour(at) AS h, count(*) FROM t WHERE {where} GROUP BY h", rho=20)
    assert told.labels == tuple(map(str, range(24)))
    assert np.all((told.low <= hours) & (hours <= told.high))
    late = np.bincount(MINUTES[kept] // 60 + 1, minlength=25)[:24]
    assert not np.all((told.low <= late) & (late <= told.high)), "an hour too late is noticed"


@pytest.mark.parametrize("name", ["slope", "intercept", "r2"])
def test_a_line_holds_what_numpy_finds_in_every_group(name: str) -> None:
    """regr_slope and its kin: the interval of each group holds the line of its own rows, and would not hold another."""
    draw = np.random.default_rng(8)
    x, g = draw.integers(0, 20, 6000), draw.integers(0, 2, 6000)
    y = np.clip(3 + np.where(g == 0, 1.5, 0.5) * x + draw.normal(0, 2, 6000), 0, 40)
    rows = {"x": x, "y": y, "g": np.where(g == 0, "a", "b")}
    schema = hf.Schema(x=hf.Integer(0, 20), y=hf.Real(0, 40), g=hf.Category("a", "b"))
    session = hf.open(rows, schema).session(rho=1000, target="table")
    found = session.sql_one(f"SELECT g, regr_{name}(y, x) FROM t GROUP BY g", rho=100)
    for place in (0, 1):
        slope, intercept = np.polyfit(x[g == place], y[g == place], 1)
        r2 = np.corrcoef(x[g == place], y[g == place])[0, 1] ** 2
        truth = {"slope": slope, "intercept": intercept, "r2": r2}
        assert found.low[place] <= truth[name] <= found.high[place]
        assert not found.low[place] <= truth[name] * 0.8 <= found.high[place]
    (alone,) = session.sql(f"SELECT regr_{name}(y, x) FROM t WHERE g = 'a'", rho=100)
    assert alone.low <= found.high[0] and found.low[0] <= alone.high
    constant = session.sql_one(f"SELECT regr_{name}(y, x) FROM t WHERE x = y AND y < 1 AND x > 18", rho=1)
    assert constant.too_few
