"""Parts of days: NumPy = Python's calendar = DuckDB, on every day that begins or ends something."""

from __future__ import annotations

import datetime

import duckdb
import numpy as np
import pytest

from holdfast.errors import QueryError
from holdfast.query import calendar
from holdfast.query.temporal import Date, Time, Timestamp
from holdfast.query.time_reading import DAY, STEPS
from query import kleene

EPOCH = datetime.date(1970, 1, 1).toordinal()
YEARS = (1, 2, 4, 100, 400, 1582, 1900, 1969, 1970, 1999, 2000, 2020, 2024, 2026, 2100, 9998, 9999)
DAYS = [
    datetime.date(year, month, day)
    for year in YEARS
    for month in range(1, 13)
    for day in (1, 2, 3, 7, 28, 29, 30, 31)
    if day <= 28 or (datetime.date(year, month, 28) + datetime.timedelta(day - 28) if (year, month) != (9999, 12) else
                     datetime.date(9999, 12, day)).month == month
]  # fmt: skip
NUMBERS = np.array([day.toordinal() - EPOCH for day in DAYS], dtype=np.int64)


@pytest.mark.parametrize("part", sorted(set(calendar.PARTS) - set(calendar.OF_DAY)))
def test_a_part_is_what_the_calendar_says(part: str) -> None:
    expected = [kleene._PARTS[part](day) for day in DAYS]
    assert calendar.compute(part, NUMBERS).tolist() == expected
    low, high = calendar.PARTS[part]
    assert low <= min(expected) <= max(expected) <= high
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE TABLE t AS SELECT unnest(?) AS n", [NUMBERS.tolist()])
    sql = calendar.sql(part, "CAST(n AS BIGINT)")
    assert [value for (value,) in connection.execute(f"SELECT {sql} FROM t").fetchall()] == expected
    off_by_one = calendar.compute(part, NUMBERS + 1).tolist()
    assert off_by_one != expected, "a day too late is noticed"


CLOCKS = [
    datetime.time(),
    datetime.time(0, 0, 0, 1),
    datetime.time(8, 30, 59, 999_999),
    datetime.time(23, 59, 59, 999_999),
]
MOMENTS = [datetime.datetime.combine(day, clock) for day in DAYS[::7] for clock in CLOCKS]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("part", sorted(calendar.PARTS))
def test_a_part_of_a_moment_is_what_the_calendar_says(part: str, step: str) -> None:
    unit = STEPS[step]
    kind = Timestamp("0001-01-01", "9999-12-31", step)
    steps = np.array([kind.code(moment) + kind.lo for moment in MOMENTS], dtype=np.int64)
    floored = [
        datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=n * unit) for n in steps.tolist()
    ]
    expected = [kleene._PARTS[part](moment) for moment in floored]
    assert calendar.compute(part, steps, unit).tolist() == expected
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE TABLE t AS SELECT unnest(?) AS n", [steps.tolist()])
    sql = calendar.sql(part, "CAST(n AS BIGINT)", unit)
    assert [value for (value,) in connection.execute(f"SELECT {sql} FROM t").fetchall()] == expected
    rounded = calendar.compute(part, steps + DAY // (2 * unit), unit).tolist()
    assert rounded != expected or part in ("minute", "second") or max(expected) == 0, (
        "half a day too late is noticed"
    )


@pytest.mark.parametrize("kind", [
    Timestamp("2019-12-30 05:00", "2020-03-02 07:00:30"), Timestamp("1969-12-31 22:00", "1970-01-01 02:30", "minute"),
    Timestamp("2020-02-28", "2020-03-01", "hour"), Date("2019-12-30", "2020-03-02"), Time("05:10", "07:00"),
])  # fmt: skip
def test_where_parts_begin(kind: Date | Time | Timestamp) -> None:
    for part in calendar.TRUNCATED:
        if not calendar.has(part, kind):
            continue
        starts = calendar.starts(part, kind)
        found = np.arange(kind.lo, kind.hi + 1, dtype=np.int64) * kind.unit
        its = starts[np.searchsorted(starts, found, side="right") - 1]
        for name in {"year": ["year"], "week": ["week"], "minute": ["hour", "minute"]}.get(part, [part]):
            computed = [calendar.compute(name, each // kind.unit, kind.unit) for each in (its, found)]
            np.testing.assert_array_equal(*computed)
        assert starts[0] <= found[0] and np.all(np.diff(starts) > 0) and set(its) == set(starts)
    with pytest.raises(QueryError, match="cut it coarser"):
        calendar.starts("day" if isinstance(kind, Date) else "hour", kind, 1)


@pytest.mark.parametrize("part", [part for part in calendar.TRUNCATED if part not in calendar.OF_DAY])
def test_what_begins_it(part: str) -> None:
    whole = {"year": "year", "quarter": "quarter", "month": "month", "week": "week", "day": "doy"}[part]
    begins = calendar.begin(part, NUMBERS)
    assert np.all(begins <= NUMBERS)
    np.testing.assert_array_equal(calendar.compute(whole, begins), calendar.compute(whole, NUMBERS))
    day_before = begins[begins > begins.min()] - 1
    assert np.all(calendar.compute(whole, day_before) != calendar.compute(whole, day_before + 1))


def test_the_bounds_are_those_of_the_declared_days() -> None:
    few = Date("2021-03-05", "2021-04-09")
    assert calendar.bounds("month", few) == (3, 4)
    assert calendar.bounds("year", few) == (2021, 2021)
    assert calendar.bounds("dow", few) == (0, 6)
    assert calendar.bounds("day", Date("0001-01-01", "9999-12-31")) == (1, 31)
